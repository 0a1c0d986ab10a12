package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// sample is a bundle with a small program.
func sample(t *testing.T, on target) bundle { return sampleOf(t, lutra, on) }

func sampleOf(t *testing.T, p program, on target) bundle {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	s := source{root: root, commit: strings.Repeat("ab", 20), time: time.Unix(1795265667, 0).UTC(), version: version{core: "1.2.0"}}
	common, err := commonFiles(s, p)
	if err != nil {
		t.Fatal(err)
	}
	return bundle{s, p, on, []byte("program"), []byte("{}"), common}
}

func TestTheSameBundleGivesTheSameBytes(t *testing.T) {
	for on, want := range map[target]int{{"linux", "amd64"}: 7, {"windows", "arm64"}: 4, {"android", "arm64"}: 2} {
		made := 0
		for _, form := range forms {
			if !form.fits(on) {
				continue
			}
			first, err := form.pack(sample(t, on))
			if err != nil {
				t.Fatal(err)
			}
			again, err := form.pack(sample(t, on))
			if err != nil {
				t.Fatal(err)
			}
			for i, a := range first {
				if a.name != again[i].name || !bytes.Equal(a.data, again[i].data) {
					t.Errorf("%s and %s differ", a.name, again[i].name)
				}
			}
			made += len(first)
		}
		if made != want {
			t.Errorf("%s: %d files, want %d", on, made, want)
		}
	}
}

func TestAnArchiveHoldsProgramManualAndCompletion(t *testing.T) {
	for _, c := range []struct {
		program
		page string
	}{{lutra, "man/lutra-serve.1"}, {laboratory, "man/lutra-lab-bench-engine.1"}} {
		made, err := archive(sampleOf(t, c.program, target{"darwin", "arm64"}))
		if err != nil {
			t.Fatal(err)
		}
		modes := map[string]os.FileMode{}
		for _, f := range untar(t, made[0].data) {
			modes[strings.TrimPrefix(f.path, c.name+"-1.2.0-darwin-arm64/")] = f.mode
		}
		for name, mode := range map[string]os.FileMode{c.name: 0o755, "LICENSE": 0o644, "config.yaml": 0o644, "sbom.cdx.json": 0o644, "man/" + c.name + ".1": 0o644, c.page: 0o644, "completions/_" + c.name: 0o644, "completions/" + c.name + ".ps1": 0o644} {
			if modes[name] != mode {
				t.Errorf("%s has mode %o, want %o", name, modes[name], mode)
			}
		}
	}
}

// untar returns the files of a tar.gz that this module has made, which are root's and of sample's time.
func untar(t *testing.T, tgz []byte) (files []file) {
	t.Helper()
	zr, err := gzip.NewReader(bytes.NewReader(tgz))
	if err != nil {
		t.Fatal(err)
	}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return files
		} else if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(time.Unix(1795265667, 0)) || h.Uid != 0 || h.Uname != "" {
			t.Errorf("%s: %v of %d %q", h.Name, h.ModTime, h.Uid, h.Uname)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file{h.Name, os.FileMode(h.Mode), data})
	}
}

// TestAWheelsRecordIsThatOfItsFiles checks what installers check.
func TestAWheelsRecordIsThatOfItsFiles(t *testing.T) {
	for on := range wheelPlatforms {
		made, err := wheel(sample(t, on))
		if err != nil {
			t.Fatal(err)
		}
		zr, err := zip.NewReader(bytes.NewReader(made[0].data), int64(len(made[0].data)))
		if err != nil {
			t.Fatal(err)
		}
		contents := map[string][]byte{}
		for _, f := range zr.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			if contents[f.Name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
			if program := strings.Contains(f.Name, ".data/scripts/"); program != (f.Mode().Perm() == 0o755) {
				t.Errorf("%s: mode %v", f.Name, f.Mode())
			}
		}
		const record = "lutra_lm-1.2.0.dist-info/RECORD"
		lines := strings.Split(strings.TrimSpace(string(contents[record])), "\n")
		if len(lines) != len(contents) {
			t.Errorf("%d lines for %d files", len(lines), len(contents))
		}
		for _, line := range lines {
			part := strings.Split(line, ",")
			sum := sha256.Sum256(contents[part[0]])
			if want := "sha256=" + base64.RawURLEncoding.EncodeToString(sum[:]); part[0] != record && part[1] != want {
				t.Errorf("%s: %s, want %s", part[0], part[1], want)
			}
		}
	}
}

func TestAPackageOfNpmNamesItsSystem(t *testing.T) {
	made, err := npm(sample(t, target{"windows", "amd64"}))
	if err != nil {
		t.Fatal(err)
	}
	p := manifestOf(t, made[0].data)
	if p.Name != "lutra-lm-win32-x64" || p.Version != "1.2.0" || p.Bin["lutra"] != "bin/lutra.exe" || !slices.Equal(p.OS, []string{"win32"}) || !slices.Equal(p.CPU, []string{"x64"}) {
		t.Errorf("package.json = %+v", p)
	}
}

// manifestOf is package.json, the first file of a package.
func manifestOf(t *testing.T, tgz []byte) (p npmPackage) {
	t.Helper()
	zr, err := gzip.NewReader(bytes.NewReader(tgz))
	if err != nil {
		t.Fatal(err)
	}
	tr := tar.NewReader(zr)
	if h, err := tr.Next(); err != nil || h.Name != "package/package.json" {
		t.Fatalf("%v, %v", h, err)
	}
	if err := json.NewDecoder(tr).Decode(&p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAnSBOMListsTheModulesInTheBinary(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	b := sample(t, target{"linux", "amd64"})
	text, err := sbom(b.source, b.program, b.target, binary)
	if err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range *bom.Components {
		if names = append(names, c.Name); c.Version == "" || c.PackageURL == "" {
			t.Errorf("%s has no version or URL", c.Name)
		}
	}
	for _, want := range []string{"std", "github.com/spf13/cobra", "github.com/goreleaser/nfpm/v2"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not among %q", want, names)
		}
	}
}

func TestVersionsAreWrittenAsEachPlaceWantsThem(t *testing.T) {
	for _, c := range []struct {
		v             version
		plain, python string
	}{
		{version{core: "1.2.0"}, "1.2.0", "1.2.0"},
		{version{core: "1.2.0", rc: "3"}, "1.2.0-rc.3", "1.2.0rc3"},
		{version{core: "0.0.0", snapshot: "20261126021048-d989953c1234"}, "0.0.0-20261126021048-d989953c1234", "0.0.0.dev20261126021048+gd989953c1234"},
	} {
		if c.v.String() != c.plain || c.v.python() != c.python {
			t.Errorf("%+v = %s and %s, want %s and %s", c.v, c.v, c.v.python(), c.plain, c.python)
		}
		if c.v.snapshot == "" {
			if got, err := parseVersion("v" + c.plain); err != nil || got != c.v {
				t.Errorf("parseVersion(v%s) = %+v, %v", c.plain, got, err)
			}
		}
	}
	for _, bad := range []string{"1.2.0", "v1.2", "v1.2.0-beta", "v1.2.0\n", "v1.2.0/../x"} {
		if v, err := parseVersion(bad); err == nil {
			t.Errorf("parseVersion(%q) = %+v", bad, v)
		}
	}
}

func TestAndroidsProgramHasFastRPCWhereThereIsACompilerForIt(t *testing.T) {
	for _, c := range []struct {
		on       target
		cc, cgo  string
		wantTags string
	}{
		{target{"android", "arm64"}, "clang", "CGO_ENABLED=1", "fastrpc"},
		{target{"android", "arm64"}, "", "CGO_ENABLED=0", ""},
		{target{"linux", "arm64"}, "clang", "CGO_ENABLED=0", ""},
	} {
		env, tags := system(c.on, c.cc)
		if tags != c.wantTags || !slices.Contains(env, c.cgo) || slices.Contains(env, "CC="+c.cc) != (c.wantTags != "") {
			t.Errorf("%s with %q: %q, tags %q", c.on, c.cc, env, tags)
		}
	}
}

func TestUnknownTargetsAreRefused(t *testing.T) {
	for _, bad := range []string{"android/amd64", "linux", "linux/amd64,linux/amd64", ","} {
		if got, err := choose(bad); err == nil || !strings.Contains(err.Error(), "-targets") {
			t.Errorf("choose(%q) = %v, %v", bad, got, err)
		}
	}
}
