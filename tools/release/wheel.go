package main

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

// distribution is the project's name on PyPI and npm.
const distribution = "lutra-lm"

// wheelPlatforms are the tags of PEP 425 under which pip takes a target's wheel. A static
// program runs with any C library, so Linux has those of glibc and musl; darwin's is the
// oldest system that Go supports.
var wheelPlatforms = map[target]string{
	{"linux", "amd64"}:   "manylinux2014_x86_64.musllinux_1_1_x86_64",
	{"linux", "arm64"}:   "manylinux2014_aarch64.musllinux_1_1_aarch64",
	{"darwin", "amd64"}:  "macosx_12_0_x86_64",
	{"darwin", "arm64"}:  "macosx_12_0_arm64",
	{"windows", "amd64"}: "win_amd64",
	{"windows", "arm64"}: "win_arm64",
}

// wheel returns a wheel (PEP 427) whose only content is the program, which pip installs among
// the environment's commands.
func wheel(b bundle) ([]artifact, error) {
	name, version, platforms := strings.ReplaceAll(distribution, "-", "_"), b.version.python(), wheelPlatforms[b.target]
	stem := name + "-" + version
	var tags strings.Builder
	for platform := range strings.SplitSeq(platforms, ".") {
		fmt.Fprintf(&tags, "Tag: py3-none-%s\n", platform)
	}
	files := []file{
		{stem + ".data/scripts/" + b.target.binary(b.program), 0o755, b.binary},
		{stem + ".dist-info/METADATA", 0o644, fmt.Appendf(nil, `Metadata-Version: 2.4
Name: %s
Version: %s
Summary: %s
License-Expression: Apache-2.0
License-File: LICENSE
Project-URL: Homepage, %s
Requires-Python: >=3.8
Description-Content-Type: text/markdown

%s`, distribution, version, summary, projectPage, b.read("README.md"))},
		{stem + ".dist-info/WHEEL", 0o644, fmt.Appendf(nil, "Wheel-Version: 1.0\nGenerator: lutra-release\nRoot-Is-Purelib: false\n%s", tags.String())},
		{stem + ".dist-info/licenses/LICENSE", 0o644, b.read("LICENSE")},
	}
	var record strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.path, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	record.WriteString(stem + ".dist-info/RECORD,,\n")
	files = append(files, file{stem + ".dist-info/RECORD", 0o644, []byte(record.String())})
	data, err := zipped(files, b.time)
	return []artifact{{fmt.Sprintf("%s-py3-none-%s.whl", stem, platforms), data}}, err
}

// read returns one of the common files.
func (b bundle) read(name string) []byte {
	for _, f := range b.common {
		if f.path == name {
			return f.data
		}
	}
	panic("no common file " + name)
}
