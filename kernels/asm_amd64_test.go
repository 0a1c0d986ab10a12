//go:build amd64

package kernels

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// beyondVEX matches the registers that AVX-512 alone can name. What the generator says a
// routine requires does not tell them.
var beyondVEX = regexp.MustCompile(`\b([XY](1[6-9]|2[0-9]|3[01])|Z[0-9]+|K[0-7])\b`)

// The generator hands out registers and takes an AVX-512 encoding where it
// has to: a kernel that says AVX2 or AVXVNNI must not need one.
func TestAVX2KernelsNeedNoAVX512(t *testing.T) {
	files, err := filepath.Glob("*/asm*_amd64.s")
	tiles, _ := filepath.Glob("../hexagon/hmx/tiles/asm*_amd64.s")
	if files = append(files, tiles...); err != nil || len(tiles) == 0 {
		t.Fatalf("no generated assembly: %v", err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		kernels, needs, kernel := 0, "", ""
		for s := bufio.NewScanner(f); s.Scan(); {
			switch line := s.Text(); {
			case strings.HasPrefix(line, "// Requires: "):
				needs = line
			case strings.HasPrefix(line, "TEXT "):
				kernels++
				if !strings.Contains(line, "AVX512") && strings.Contains(needs, "AVX512") {
					t.Errorf("%s: %s: %s", name, line, needs)
				}
				needs, kernel = "", line
			case kernel != "" && !strings.Contains(kernel, "AVX512") && beyondVEX.MatchString(line):
				t.Errorf("%s: %s:%s: a register of AVX-512", name, kernel, line)
			}
		}
		if kernels == 0 {
			t.Errorf("%s: no kernels", name)
		}
	}
}
