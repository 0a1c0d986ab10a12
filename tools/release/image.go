package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	roots "golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageConfig is what the Dockerfile says; its comments say why.
func imageConfig() v1.Config {
	return v1.Config{
		Env:          []string{"LUTRA_SERVER_ADDR=0.0.0.0:8080", "HF_HOME=/models"},
		User:         "65532:65532",
		Volumes:      map[string]struct{}{"/models": {}},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Healthcheck:  &v1.HealthConfig{Test: []string{"CMD", "/lutra", "health"}, Interval: 10e9, Timeout: 5e9, StartPeriod: 3600e9},
		Entrypoint:   []string{"/lutra"},
		Cmd:          []string{"serve"},
	}
}

// image returns an OCI layout in a tar file, with an image for each target of Linux.
func image(bundles []bundle) ([]artifact, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var src source
	n := 0
	for _, b := range bundles {
		if b.target.os != "linux" {
			continue
		}
		src, n = b.source, n+1
		one, err := imageOf(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.target, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: b.target.os, Architecture: b.target.arch}}})
	}
	if n == 0 {
		return nil, nil
	}
	data, err := layoutTar(index, src)
	return []artifact{{fmt.Sprintf("lutra-%s-image.tar", src.version), data}}, err
}

// imageOf returns the image of a target, of one layer: the program, certificates that downloads
// want, and a folder for models that everybody may write to.
func imageOf(b bundle) (v1.Image, error) {
	data, err := tarGz([]file{{"etc/ssl/certs/ca-certificates.crt", 0o644, certificates()}, {"lutra", 0o755, b.binary}, {"models/", 0o1777, nil}}, b.time)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	at := v1.Time{Time: b.time}
	one, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{Created: at, CreatedBy: "lutra release"}})
	if err != nil {
		return nil, err
	}
	c, err := one.ConfigFile()
	if err != nil {
		return nil, err
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Created, c.Config = b.target.os, b.target.arch, at, imageConfig()
	c.Config.Labels = map[string]string{
		"org.opencontainers.image.version": b.version.String(), "org.opencontainers.image.revision": b.commit,
		"org.opencontainers.image.source": projectPage, "org.opencontainers.image.description": summary, "org.opencontainers.image.licenses": "Apache-2.0",
	}
	return mutate.ConfigFile(one, c)
}

// certificates are Mozilla's roots, as a module has them that go.mod pins: those of the machine
// would differ from one to the next.
func certificates() []byte {
	var out bytes.Buffer
	for root := range roots.Roots() {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a Buffer takes all
	}
	return out.Bytes()
}

// layoutTar writes an index as an OCI layout into a tar file, in the order of names.
func layoutTar(index v1.ImageIndex, src source) ([]byte, error) {
	dir, err := os.MkdirTemp("", "lutra-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		return nil, err
	}
	// The name by which podman and docker load it.
	name := layout.WithAnnotations(map[string]string{"io.containerd.image.name": "lutra:" + src.version.String(), "org.opencontainers.image.ref.name": src.version.String()})
	if err := at.AppendIndex(index, name); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		return writeTar(tw, file{name, 0o644, data}, src.time)
	})
	if err == nil {
		err = tw.Close()
	}
	return out.Bytes(), err
}
