package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// sbom returns the modules that are in a binary, which its linker has noted, as CycloneDX 1.6
// (ECMA-424). Its serial number follows from the binary.
func sbom(s source, p program, t target, binary []byte) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("SBOM: %w", err)
	}
	sum := sha256.Sum256(binary)
	module := func(m *debug.Module) (cdx.Component, error) {
		purl := "pkg:golang/" + m.Path + "@" + m.Version
		c := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: purl}
		// What go.sum calls h1 is a hash of the module's files, not of one file.
		if h, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
			raw, err := base64.StdEncoding.DecodeString(h)
			if err != nil {
				return c, fmt.Errorf("SBOM: sum of %s: %w", m.Path, err)
			}
			c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(raw)}}
		}
		return c, nil
	}
	purl := "pkg:golang/" + info.Main.Path + "@v" + s.version.String() + "?goarch=" + t.arch + "&goos=" + t.os
	main := cdx.Component{
		BOMRef: purl, Type: cdx.ComponentTypeApplication, Name: p.name, Version: s.version.String(), PackageURL: purl,
		Description: summary,
		Licenses:    &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		Hashes:      &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		Properties:  &[]cdx.Property{{Name: "git:commit", Value: s.commit}},
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	std := "pkg:golang/std@" + goVersion
	parts := []cdx.Component{{BOMRef: std, Type: cdx.ComponentTypeLibrary, Name: "std", Version: goVersion, PackageURL: std}}
	for _, m := range info.Deps {
		if m.Path == ownModule { // the same commit
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		c, err := module(m)
		if err != nil {
			return nil, err
		}
		parts = append(parts, c)
	}
	refs := make([]string, len(parts))
	for i, c := range parts {
		refs[i] = c.BOMRef
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, sum[:]).String()
	bom.Metadata = &cdx.Metadata{Timestamp: s.time.Format(time.RFC3339), Component: &main}
	bom.Components = &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	var out bytes.Buffer
	err = cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
	return out.Bytes(), err
}
