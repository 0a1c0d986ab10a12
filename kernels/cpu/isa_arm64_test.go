//go:build arm64 && !purego

package cpu

import (
	"slices"
	"testing"
)

func TestFeaturesAreWhatEachSystemSaysAndNoMore(t *testing.T) {
	var none, base, dot, all = features{}, features{asimd: true}, features{asimd: true, dotProd: true}, features{true, true, true}
	for _, c := range []struct {
		name  string
		found features // by x/sys/cpu
		goos  string
		says  []uint32 // Windows
		want  features
	}{
		{"Cortex-A72, Raspberry Pi 4", base, "linux", nil, base},
		{"Neoverse N1, Graviton 2", dot, "linux", nil, dot},
		{"Neoverse V1, Graviton 3", all, "linux", nil, all},
		{"Snapdragon 8 Gen 1", all, "android", nil, all},
		{"a number of winnt.h means nothing elsewhere", dot, "linux", []uint32{pfI8MM}, dot},
		{"no vectors at all", none, "linux", nil, none},
		{"M1, macOS 11 without names of features", base, "darwin", nil, dot},
		{"M1", dot, "darwin", nil, dot},
		{"M2", all, "darwin", nil, all},
		{"A11, which has no SDOT", base, "ios", nil, base},
		{"Snapdragon 8cx Gen 2, Windows", dot, "windows", []uint32{43}, dot},
		{"Snapdragon X, Windows", dot, "windows", []uint32{43, pfI8MM}, all},
		{"Windows that knows no number of SDOT", base, "windows", []uint32{pfI8MM}, base},
		{"a system that says nothing", base, "freebsd", nil, base},
	} {
		present := func(id uint32) bool { return slices.Contains(c.says, id) }
		if got := completed(c.found, c.goos, present); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
