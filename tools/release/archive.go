package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// archive returns the target's archive, zip for Windows and else tar.gz, and its SBOM, which
// lies in the archive too. macOS has a service of launchd besides.
func archive(b bundle) ([]artifact, error) {
	name := b.archiveName()
	files := []file{{b.target.binary(b.program), 0o755, b.binary}, {"sbom.cdx.json", 0o644, b.sbom}}
	files = append(files, b.common...)
	if b.target.os == "darwin" && b.program.name == lutra.name {
		job := "launchd/io.github.lutra-lm.lutra.plist"
		data, err := os.ReadFile(filepath.Join(b.root, "deploy", filepath.FromSlash(job)))
		if err != nil {
			return nil, err
		}
		files = append(files, file{job, 0o644, data})
	}
	for i := range files {
		files[i].path = path.Join(name, files[i].path)
	}
	form, ending := tarGz, ".tar.gz"
	if b.target.os == "windows" {
		form, ending = zipped, ".zip"
	}
	data, err := form(files, b.time)
	return []artifact{{name + ending, data}, {name + ".cdx.json", b.sbom}}, err
}

// archiveName returns the name of the archive without its ending, which is its only folder's too.
func (b *bundle) archiveName() string {
	return fmt.Sprintf("%s-%s-%s-%s", b.program.name, b.version, b.target.os, b.target.arch)
}

// tarGz packs files in their order; all are root's, of one time, which must be whole seconds.
func tarGz(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	zw, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	tw := tar.NewWriter(zw)
	for _, f := range files {
		if err := writeTar(tw, f, at); err != nil {
			return nil, err
		}
	}
	if err := tw.Close(); err != nil {
		return nil, err
	}
	if err := zw.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// writeTar adds a file, or a folder where the path ends with a slash.
func writeTar(tw *tar.Writer, f file, at time.Time) error {
	h := tar.Header{Name: f.path, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: at, Typeflag: tar.TypeReg}
	if strings.HasSuffix(f.path, "/") {
		h.Typeflag = tar.TypeDir
	}
	if err := tw.WriteHeader(&h); err != nil {
		return err
	}
	_, err := tw.Write(f.data)
	return err
}

// zipped is tarGz for zip.
func zipped(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	zw := zip.NewWriter(&out)
	for _, f := range files {
		h := zip.FileHeader{Name: f.path, Method: zip.Deflate, Modified: at.UTC()}
		h.SetMode(f.mode)
		w, err := zw.CreateHeader(&h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := zw.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
