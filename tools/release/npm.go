package main

import (
	"bytes"
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
	OS           []string          `json:"os"`
	CPU          []string          `json:"cpu"`
	Bin          map[string]string `json:"bin"`
	PreferUnplug bool              `json:"preferUnplugged"` // Yarn: a program must be a file
}

// npm returns a package that holds the program and installs it as the command lutra. It has
// no script that npm runs, so it installs with --ignore-scripts too.
func npm(b bundle) ([]artifact, error) {
	word := func(s string) string {
		if w, ok := npmWords[s]; ok {
			return w
		}
		return s
	}
	os, cpu := word(b.target.os), word(b.target.arch)
	var manifest bytes.Buffer
	enc := json.NewEncoder(&manifest)
	enc.SetIndent("", "  ")
	err := enc.Encode(npmPackage{
		Name: fmt.Sprintf("%s-%s-%s", distribution, os, cpu), Version: b.version.String(), Description: summary, License: "Apache-2.0", Homepage: projectPage,
		OS: []string{os}, CPU: []string{cpu}, Bin: map[string]string{"lutra": "bin/" + b.target.binary()}, PreferUnplug: true,
	})
	if err != nil {
		return nil, err
	}
	data, err := tarGz([]file{
		{"package/package.json", 0o644, manifest.Bytes()},
		{"package/README.md", 0o644, b.read("README.md")},
		{"package/LICENSE", 0o644, b.read("LICENSE")},
		{"package/bin/" + b.target.binary(), 0o755, b.binary},
	}, b.time)
	return []artifact{{fmt.Sprintf("%s-%s-%s-%s.tgz", distribution, os, cpu, b.version), data}}, err
}
