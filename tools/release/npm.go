package main

import (
	"bytes"
	_ "embed" // launcher.js
	"encoding/json"
	"fmt"
)

// npmWords are Node's names of systems where they differ from Go's.
var npmWords = map[string]string{"amd64": "x64", "windows": "win32"}

// npmPackage is package.json.
type npmPackage struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Description  string            `json:"description"`
	License      string            `json:"license"`
	Homepage     string            `json:"homepage"`
	OS           []string          `json:"os,omitempty"`
	CPU          []string          `json:"cpu,omitempty"`
	Bin          map[string]string `json:"bin"`
	PreferUnplug bool              `json:"preferUnplugged,omitempty"` // Yarn: a program must be a file
	Optional     map[string]string `json:"optionalDependencies,omitempty"`
	Engines      map[string]string `json:"engines,omitempty"`
}

// npmName returns the name of a target's package, as the launcher makes it of process.platform
// and process.arch.
func npmName(t target) (name, os, cpu string) {
	word := func(s string) string {
		if w, ok := npmWords[s]; ok {
			return w
		}
		return s
	}
	os, cpu = word(t.os), word(t.arch)
	return fmt.Sprintf("%s-%s-%s", distribution, os, cpu), os, cpu
}

// npm returns a package that holds the program and installs it as the command lutra. It has
// no script that npm runs, so it installs with --ignore-scripts too.
func npm(b bundle) ([]artifact, error) {
	name, os, cpu := npmName(b.target)
	return npmTarball(npmPackage{
		Name: name, OS: []string{os}, CPU: []string{cpu}, Bin: map[string]string{"lutra": "bin/" + b.target.binary(b.program)}, PreferUnplug: true,
	}, file{"bin/" + b.target.binary(b.program), 0o755, b.binary}, b)
}

//go:embed launcher.js
var launcher []byte

// umbrella returns the package that all systems install: it names those of the targets, of which
// npm takes the one that fits, and starts its program.
func umbrella(bundles []bundle) ([]artifact, error) {
	programs := map[string]string{}
	var last bundle
	for _, b := range bundles {
		if b.target.os != "android" {
			name, _, _ := npmName(b.target)
			programs[name], last = b.version.String(), b
		}
	}
	if len(programs) == 0 {
		return nil, nil
	}
	return npmTarball(npmPackage{
		Name: "lutra", Bin: map[string]string{"lutra": "bin/lutra.js"}, Optional: programs, Engines: map[string]string{"node": ">=18"},
	}, file{"bin/lutra.js", 0o755, launcher}, last)
}

// npmTarball returns a package with one program.
func npmTarball(p npmPackage, program file, b bundle) ([]artifact, error) {
	p.Version, p.Description, p.License, p.Homepage = b.version.String(), summary, "Apache-2.0", projectPage
	var manifest bytes.Buffer
	enc := json.NewEncoder(&manifest)
	enc.SetIndent("", "  ")
	if err := enc.Encode(p); err != nil {
		return nil, err
	}
	program.path = "package/" + program.path
	data, err := tarGz([]file{
		{"package/package.json", 0o644, manifest.Bytes()},
		{"package/README.md", 0o644, b.read("README.md")},
		{"package/LICENSE", 0o644, b.read("LICENSE")},
		program,
	}, b.time)
	return []artifact{{fmt.Sprintf("%s-%s.tgz", p.Name, b.version), data}}, err
}
