package main

import (
	"fmt"
	"slices"
	"strings"
)

// target is a system that a binary is built for.
type target struct{ os, arch string }

// targets are those that Go builds without C. android/amd64, an emulator's system, is linked
// by a C compiler alone.
var targets = []target{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
	{"android", "arm64"},
}

func (t target) String() string { return t.os + "/" + t.arch }

// binary returns the name of a program's file there.
func (t target) binary(p program) string {
	if t.os == "windows" {
		return p.name + ".exe"
	}
	return p.name
}

// choose returns the targets that list names, with commas; all for an empty one.
func choose(list string) ([]target, error) {
	if list == "" {
		return targets, nil
	}
	var chosen []target
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(targets, func(t target) bool { return t.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("-targets: %q is none of %v", name, targets)
		}
		if slices.Contains(chosen, targets[i]) {
			return nil, fmt.Errorf("-targets: %q is named twice", name)
		}
		chosen = append(chosen, targets[i])
	}
	return chosen, nil
}
