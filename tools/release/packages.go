package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk" // nfpm.Get knows the formats that are imported
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// packages returns packages of Debian, Fedora and Alpine, with units of systemd in the first
// two. None depends on anything: the program is static.
func packages(b bundle) (made []artifact, err error) {
	dir, err := os.MkdirTemp("", "lutra-package-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for _, format := range []string{"deb", "rpm", "apk"} {
		info, err := describe(b, format, dir)
		if err != nil {
			return nil, err
		}
		packager, err := nfpm.Get(format)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		if err := packager.Package(info, &out); err != nil {
			return nil, fmt.Errorf("%s: %w", format, err)
		}
		made = append(made, artifact{packager.ConventionalFileName(info), out.Bytes()})
	}
	return made, nil
}

// describe returns what nfpm makes a package of; its files are written to dir.
func describe(b bundle, format, dir string) (*nfpm.Info, error) {
	info := &nfpm.Info{
		Name: "lutra", Arch: b.target.arch, Platform: "linux", Version: b.version.String(), Release: "1",
		Section: "net", Priority: "optional", Maintainer: "The Lutra authors <lutra@localhost>",
		Description: summary + "\nOne program that serves them behind an OpenAI-compatible HTTP API.",
		Homepage:    projectPage, License: "Apache-2.0", MTime: b.time, DisableGlobbing: true,
	}
	info.RPM.Summary, info.RPM.BuildHost = summary, "localhost"
	installed := []file{{"/usr/bin/lutra", 0o755, b.binary}, {"/usr/share/doc/lutra/sbom.cdx.json", 0o644, b.sbom}}
	for _, f := range b.common {
		if to := place(f.path, format); to != "" {
			data := f.data
			if strings.HasPrefix(f.path, "man/") {
				var err error
				if data, err = zippedAlone(data, b.time); err != nil {
					return nil, err
				}
			}
			installed = append(installed, file{to, f.mode, data})
		}
	}
	settings, err := os.ReadFile(filepath.Join(b.root, "deploy/systemd/config.yaml"))
	if err != nil {
		return nil, err
	}
	installed = append(installed, file{"/etc/lutra/config.yaml", 0o644, settings})
	if format != "apk" { // Alpine has no systemd
		for _, unit := range []string{"lutra.service", "lutra.socket"} {
			data, err := os.ReadFile(filepath.Join(b.root, "deploy/systemd", unit))
			if err != nil {
				return nil, err
			}
			installed = append(installed, file{"/usr/lib/systemd/system/" + unit, 0o644, data})
		}
		scripts := filepath.Join(b.root, "deploy/systemd")
		info.Scripts = nfpm.Scripts{
			PostInstall: filepath.Join(scripts, "postinstall.sh"), PreRemove: filepath.Join(scripts, "preremove.sh"), PostRemove: filepath.Join(scripts, "postremove.sh"),
		}
	}
	for i, f := range installed {
		from := filepath.Join(dir, fmt.Sprintf("%s-%d", format, i))
		if err := os.WriteFile(from, f.data, f.mode); err != nil {
			return nil, err
		}
		kind := files.TypeFile
		if strings.HasPrefix(f.path, "/etc/") {
			kind = files.TypeConfigNoReplace
		}
		info.Contents = append(info.Contents, &files.Content{
			Source: from, Destination: f.path, Type: kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.mode, MTime: b.time},
		})
	}
	return nfpm.WithDefaults(info), nfpm.PrepareForPackager(info, format)
}

// place returns where a file of the archive lies on a system; empty: nowhere.
func place(name, format string) string {
	zsh := "/usr/share/zsh/site-functions/"
	if format == "deb" {
		zsh = "/usr/share/zsh/vendor-completions/"
	}
	switch base := path.Base(name); base {
	case "LICENSE":
		return "/usr/share/doc/lutra/copyright"
	case "config.yaml":
		return "/usr/share/doc/lutra/config.yaml" // all settings; those of a machine are in /etc, which an upgrade leaves
	case "lutra.bash":
		return "/usr/share/bash-completion/completions/lutra"
	case "_lutra":
		return zsh + base
	case "lutra.fish":
		return "/usr/share/fish/vendor_completions.d/lutra.fish"
	default:
		if strings.HasPrefix(name, "man/") {
			return "/usr/share/man/man1/" + base + ".gz"
		}
		return ""
	}
}

// zippedAlone compresses one file, as man reads it.
func zippedAlone(data []byte, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	zw, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	zw.ModTime = at
	if _, err := zw.Write(data); err != nil {
		return nil, err
	}
	err = zw.Close()
	return out.Bytes(), err
}
