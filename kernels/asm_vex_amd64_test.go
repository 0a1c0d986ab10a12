//go:build amd64

package kernels

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
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
	const registers = 16
	var lines []string
	for i := range registers * registers * registers {
		lines = append(lines, fmt.Sprintf("VPDPBUSD_VEX(%d, %d, %d)", i/registers/registers, i/registers%registers, i%registers))
	}
	zero := vpdpbusdGNU[0][0]
	for i, code := range assemble(t, "vex_amd64.h", lines) {
		a, b, c := i/registers/registers, i/registers%registers, i%registers
		want := zero ^ (vpdpbusdGNU[0][a] ^ zero) ^ (vpdpbusdGNU[1][b] ^ zero) ^ (vpdpbusdGNU[2][c] ^ zero)
		if got := binary.BigEndian.Uint64(append(make([]byte, 8-len(code)), code...)); got != want {
			t.Fatalf("VPDPBUSD Y%d, Y%d, Y%d is %x, want %x", a, b, c, got, want)
		}
	}
}

// assemble returns the bytes of each of some lines that macros of a header make.
func assemble(t *testing.T, header string, lines []string) [][]byte {
	t.Helper()
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no Go toolchain to assemble with")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source := fmt.Sprintf("#include %q\nTEXT ·all(SB), 4, $0-0\n%s\nRET\n", header, strings.Join(lines, "\n"))
	file := filepath.Join(dir, "all.s")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	asm := exec.Command(goTool, "tool", "asm", "-p", "all", "-S", "-I", filepath.Join(here, "_gen", "headers"), "-o", filepath.Join(dir, "all.o"), file)
	asm.Env = append(os.Environ(), "GOARCH=amd64")
	listing, err := asm.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%.500s", asm, err, listing)
	}
	const first = 3 // line
	codes := make([][]byte, len(lines))
	data := regexp.MustCompile(`all\.s:(\d+)\)\t(BYTE|LONG)\t\$(\d+)$`)
	for s := bufio.NewScanner(bytes.NewReader(listing)); s.Scan(); {
		if m := data.FindStringSubmatch(s.Text()); m != nil {
			line, _ := strconv.Atoi(m[1])
			v, _ := strconv.ParseUint(m[3], 10, 32)
			code := &codes[line-first]
			if m[2] == "BYTE" {
				*code = append(*code, byte(v))
			} else {
				*code = binary.LittleEndian.AppendUint32(*code, uint32(v))
			}
		}
	}
	return codes
}
