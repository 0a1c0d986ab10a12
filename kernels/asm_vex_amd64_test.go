//go:build amd64

package kernels

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// GNU assembler 2.40 for {vex} vpdpbusd %ymmA, %ymmB, %ymmC, one register from 0 to 15 and the others 0.
var vpdpbusdGNU = [3][16]uint64{
	{0xc4e27d50c0, 0xc4e27d50c1, 0xc4e27d50c2, 0xc4e27d50c3, 0xc4e27d50c4, 0xc4e27d50c5, 0xc4e27d50c6, 0xc4e27d50c7,
		0xc4c27d50c0, 0xc4c27d50c1, 0xc4c27d50c2, 0xc4c27d50c3, 0xc4c27d50c4, 0xc4c27d50c5, 0xc4c27d50c6, 0xc4c27d50c7},
	{0xc4e27d50c0, 0xc4e27550c0, 0xc4e26d50c0, 0xc4e26550c0, 0xc4e25d50c0, 0xc4e25550c0, 0xc4e24d50c0, 0xc4e24550c0,
		0xc4e23d50c0, 0xc4e23550c0, 0xc4e22d50c0, 0xc4e22550c0, 0xc4e21d50c0, 0xc4e21550c0, 0xc4e20d50c0, 0xc4e20550c0},
	{0xc4e27d50c0, 0xc4e27d50c8, 0xc4e27d50d0, 0xc4e27d50d8, 0xc4e27d50e0, 0xc4e27d50e8, 0xc4e27d50f0, 0xc4e27d50f8,
		0xc4627d50c0, 0xc4627d50c8, 0xc4627d50d0, 0xc4627d50d8, 0xc4627d50e0, 0xc4627d50e8, 0xc4627d50f0, 0xc4627d50f8},
}

// The three registers have bits of their own, so what they change adds up.
func TestVPDPBUSDIsEncodedAsGNUAssemblerDoes(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no Go toolchain to assemble with")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source := bytes.NewBufferString("#include \"vex_amd64.h\"\nTEXT ·all(SB), 4, $0-0\n")
	const first, registers = 3, 16
	for i := range registers * registers * registers {
		fmt.Fprintf(source, "\tVPDPBUSD_VEX(%d, %d, %d)\n", i/registers/registers, i/registers%registers, i%registers)
	}
	source.WriteString("\tRET\n")
	file := filepath.Join(dir, "all.s")
	if err := os.WriteFile(file, source.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	asm := exec.Command(goTool, "tool", "asm", "-p", "all", "-S", "-I", filepath.Join(here, "_gen", "headers"), "-o", filepath.Join(dir, "all.o"), file)
	asm.Env = append(os.Environ(), "GOARCH=amd64")
	listing, err := asm.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%.500s", asm, err, listing)
	}
	got := make([]uint64, registers*registers*registers)
	byteLine := regexp.MustCompile(`all\.s:(\d+)\)\tBYTE\t\$(\d+)$`)
	for s := bufio.NewScanner(bytes.NewReader(listing)); s.Scan(); {
		if m := byteLine.FindStringSubmatch(s.Text()); m != nil {
			line, _ := strconv.Atoi(m[1])
			b, _ := strconv.Atoi(m[2])
			got[line-first] = got[line-first]<<8 | uint64(b)
		}
	}
	zero := vpdpbusdGNU[0][0]
	for i, code := range got {
		a, b, c := i/registers/registers, i/registers%registers, i%registers
		if want := zero ^ (vpdpbusdGNU[0][a] ^ zero) ^ (vpdpbusdGNU[1][b] ^ zero) ^ (vpdpbusdGNU[2][c] ^ zero); code != want {
			t.Fatalf("VPDPBUSD Y%d, Y%d, Y%d is %x, want %x", a, b, c, code, want)
		}
	}
}
