package main

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"path"
	"text/template"
)

// The recipes of Homebrew, winget and Nix install the release's archives: each names their
// addresses and checksums. All are filled from one value.

//go:embed recipes
var recipeFiles embed.FS

var recipeTemplates = template.Must(template.ParseFS(recipeFiles, "recipes/*"))

// wingetName is the package's identifier there.
const wingetName = "LutraLM.Lutra"

// recipe is what the templates are filled with.
type recipe struct {
	Summary, Page, License, WinGet, Version, Date string
	Systems                                       map[string]string    // of Homebrew and Nix → Homebrew's word
	Archives                                      map[string][]located // by system
}

// located is a published archive.
type located struct {
	URL, Sum, Folder string
	arch             string
}

// Word returns another program's word for the archive's processor.
func (l located) Word(amd64, amd64Word, arm64, arm64Word string) string {
	return map[string]string{amd64: amd64Word, arm64: arm64Word}[l.arch]
}

// recipes returns the recipes for archives that have been made, where they will be published.
func recipes(bundles []bundle, made []artifact) ([]artifact, error) {
	src := bundles[0].source
	r := recipe{
		Summary: summary, Page: projectPage, License: "Apache-2.0", WinGet: wingetName, Version: src.version.String(), Date: src.time.Format("2006-01-02"),
		Systems: map[string]string{"darwin": "macos", "linux": "linux"}, Archives: map[string][]located{},
	}
	for _, b := range bundles {
		name := b.archiveName()
		for _, a := range made {
			if a.name == name+".tar.gz" || a.name == name+".zip" {
				url := fmt.Sprintf("%s/releases/download/v%s/%s", projectPage, src.version, a.name)
				r.Archives[b.target.os] = append(r.Archives[b.target.os], located{url, fmt.Sprintf("%x", sha256.Sum256(a.data)), name, b.target.arch})
			}
		}
	}
	var list []artifact
	fill := func(name, template string) error {
		var text bytes.Buffer
		err := recipeTemplates.ExecuteTemplate(&text, template, r)
		list = append(list, artifact{name, text.Bytes()})
		return err
	}
	if len(r.Archives["windows"]) > 0 {
		for _, part := range []string{"version", "installer", "locale.en-US"} {
			name := wingetName + "." + part + ".yaml"
			if part == "version" {
				name = wingetName + ".yaml"
			}
			if err := fill(name, part+".yaml"); err != nil {
				return nil, err
			}
		}
	}
	if len(r.Archives["darwin"])+len(r.Archives["linux"]) == 0 {
		return list, nil
	}
	if err := fill("lutra.rb", "lutra.rb"); err != nil {
		return nil, err
	}
	for _, name := range []string{"flake.nix", "package.nix"} {
		if err := fill(name, name); err != nil {
			return nil, err
		}
	}
	return nixArchive(src, list)
}

// nixArchive puts the last two recipes, those of Nix, into one file that nix run takes by its address.
func nixArchive(src source, list []artifact) ([]artifact, error) {
	n := len(list) - 2
	name := fmt.Sprintf("lutra-%s-nix", src.version)
	var files []file
	for _, a := range list[n:] {
		files = append(files, file{path.Join(name, a.name), 0o644, a.data})
	}
	data, err := tarGz(files, src.time)
	return append(list[:n], artifact{name + ".tar.gz", data}), err
}
