//go:build amd64

package kernels

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The generator hands out registers and takes an AVX-512 encoding where it
// has to: a kernel that says AVX2 or AVXVNNI must not need one.
func TestAVX2KernelsNeedNoAVX512(t *testing.T) {
	files, err := filepath.Glob("*/asm*_amd64.s")
	if err != nil || len(files) == 0 {
		t.Fatalf("no generated assembly: %v", err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		kernels, needs := 0, ""
		for s := bufio.NewScanner(f); s.Scan(); {
			switch line := s.Text(); {
			case strings.HasPrefix(line, "// Requires: "):
				needs = line
			case strings.HasPrefix(line, "TEXT "):
				kernels++
				if !strings.Contains(line, "AVX512") && strings.Contains(needs, "AVX512") {
					t.Errorf("%s: %s: %s", name, line, needs)
				}
				needs = ""
			}
		}
		if kernels == 0 {
			t.Errorf("%s: no kernels", name)
		}
	}
}
