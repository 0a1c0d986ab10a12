package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// fromDockerfile is what the last stage of the Dockerfile says, as its instructions write it.
func fromDockerfile(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(string(text), "FROM scratch\n")
	said := map[string]string{}
	for line := range strings.Lines(last) {
		if word, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok && word != "#" {
			said[word] = rest
		}
	}
	return said
}

func TestTheImageIsTheDockerfiles(t *testing.T) {
	said, c := fromDockerfile(t), imageConfig()
	words := func(list []string) string {
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(text), `","`, `", "`)
	}
	got := map[string]string{
		"ENV": strings.Join(c.Env, " "), "USER": c.User, "ENTRYPOINT": words(c.Entrypoint), "CMD": words(c.Cmd), "COPY": said["COPY"],
		"HEALTHCHECK": "--interval=" + c.Healthcheck.Interval.String() + " --timeout=" + c.Healthcheck.Timeout.String() + " --start-period=1h " +
			c.Healthcheck.Test[0] + " " + words(c.Healthcheck.Test[1:]),
	}
	for v := range c.Volumes {
		got["VOLUME"] = v
	}
	for p := range c.ExposedPorts {
		got["EXPOSE"] = strings.TrimSuffix(p, "/tcp")
	}
	if !reflect.DeepEqual(got, said) || c.Healthcheck.StartPeriod.Hours() != 1 {
		t.Errorf("the image has %q, want %q", got, said)
	}
}

func TestTheImageIsSoundForEachTargetOfLinux(t *testing.T) {
	var bundles []bundle
	for _, on := range []target{{"linux", "amd64"}, {"darwin", "arm64"}, {"linux", "arm64"}} {
		bundles = append(bundles, sample(t, on))
	}
	made, err := image(bundles)
	if err != nil {
		t.Fatal(err)
	}
	again, err := image(bundles)
	if err != nil || len(made) != 1 || made[0].name != "lutra-1.2.0-image.tar" || !bytes.Equal(made[0].data, again[0].data) {
		t.Fatalf("%d files, not the same each time: %v", len(made), err)
	}
	if !bytes.HasSuffix(made[0].data, make([]byte, 1024)) {
		t.Error("the tar file has no end") // Go reads it all the same
	}
	dir := t.TempDir()
	for tr := tar.NewReader(bytes.NewReader(made[0].data)); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	outer, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	inner, err := index.ImageIndex(outer.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	m, err := inner.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, d := range m.Manifests {
		platforms = append(platforms, d.Platform.String())
		one, err := inner.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		c, err := one.ConfigFile()
		if err != nil || c.Architecture != d.Platform.Architecture || !c.Created.Time.Equal(bundles[0].time) || c.Config.Labels["org.opencontainers.image.version"] != "1.2.0" {
			t.Errorf("%v: %+v, %v", d.Platform, c, err)
		}
		layers, err := one.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("%d layers, %v", len(layers), err)
		}
		r, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		modes := map[string]int64{}
		for tr := tar.NewReader(r); ; {
			h, err := tr.Next()
			if err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			modes[h.Name] = h.Mode
		}
		if !reflect.DeepEqual(modes, map[string]int64{"lutra": 0o755, "models/": 0o1777, "etc/ssl/certs/ca-certificates.crt": 0o644}) {
			t.Errorf("%v holds %v", d.Platform, modes)
		}
	}
	if got := strings.Join(platforms, " "); got != "linux/amd64 linux/arm64" {
		t.Errorf("the image is for %s", got)
	}
	if n := bytes.Count(certificates(), []byte("BEGIN CERTIFICATE")); n < 100 {
		t.Errorf("%d root certificates", n)
	}
}

func TestNpmsPackageOfAllSystemsNamesThoseOfEach(t *testing.T) {
	made, err := umbrella([]bundle{sample(t, target{"linux", "amd64"}), sample(t, target{"windows", "arm64"}), sample(t, target{"android", "arm64"})})
	if err != nil || len(made) != 1 || made[0].name != "lutra-1.2.0.tgz" {
		t.Fatalf("%d files, %v", len(made), err)
	}
	p := manifestOf(t, made[0].data)
	if want := map[string]string{"lutra-lm-linux-x64": "1.2.0", "lutra-lm-win32-arm64": "1.2.0"}; !reflect.DeepEqual(p.Optional, want) || p.Name != "lutra" || len(p.OS)+len(p.CPU) > 0 || p.Bin["lutra"] != "bin/lutra.js" {
		t.Errorf("package.json = %+v", p)
	}
}
