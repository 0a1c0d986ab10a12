package qemu

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/hexagon/device"
)

var faults = flag.Int("faults", 0, "seed one in so many faults into hexagon/dsp, others each day; 1: all, which takes clang-19 and two minutes")

const program = "build/lutra-emulator.elf"

// concerns are the operations that the code of a file computes: its faults show in these. Faults of other
// files show wherever.
var concerns = map[string][]device.Op{
	"kernels/precompute.c": {device.OpPrecompute, device.OpGEMV},
	"kernels/gemv.c":       {device.OpPrecompute, device.OpGEMV},
	"kernels/lines.h":      {device.OpPrecompute, device.OpGEMV},
	"kernels/dequant.c":    {device.OpCopy, device.OpDequant, device.OpByteTiles}, // which has codes that are copied
	"kernels/vlut16.c":     {device.OpVLUT16},
	"kernels/exp.c":        {device.OpExpTable},
	"kernels/softmax.c":    {device.OpExpTable, device.OpSoftmax},
	"kernels/cap.c":        {device.OpSoftCap},
	"kernels/rows.c": {device.OpRMSNorm, device.OpLayerNorm, device.OpQuantize, device.OpScale, device.OpAdd, device.OpRope,
		device.OpGLU, device.OpToTiles, device.OpFromTiles, device.OpFold},
	"kernels/turn.c":      {device.OpRowsToTiles, device.OpTilesToRows},
	"kernels/sigmoid.h":   {device.OpGLU, device.OpConv, device.OpGates},
	"kernels/recurrent.c": {device.OpMul, device.OpConv, device.OpGates, device.OpDelta},
}

// A tree is a copy of hexagon/dsp, with what is built of it.
type tree string

// clone copies it beside itself, times too: make then builds what a change concerns. (A test's own folder
// may have a name that no shell takes.)
func (d tree) clone(t *testing.T) tree {
	to, err := os.MkdirTemp(filepath.Dir(string(d)), "fault")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(to) })
	if out, err := exec.Command("cp", "-a", string(d)+"/.", to).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return tree(to)
}

func (d tree) build(t *testing.T, program string) []byte {
	t.Helper()
	if out, err := exec.Command("make", "-s", "-j2", "-C", string(d), program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(string(d), program))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// replace replaces a text in a file.
func (d tree) replace(t *testing.T, file, from, to string) {
	t.Helper()
	file = filepath.Join(string(d), file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(from)) {
		t.Fatalf("%s has no %q any more", file, from)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte(from), []byte(to)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSeededFaultsAreCaught(t *testing.T) {
	if *faults <= 0 {
		t.Skip("only with -faults: it builds the program once for each fault")
	}
	open(t, Options{KeepTCM: true}).Close()
	right := tree(filepath.Join(t.TempDir(), "dsp"))
	if err := os.CopyFS(string(right), os.DirFS(sources)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(string(right), "build")); err != nil {
		t.Fatal(err)
	}
	// Loops that stay loops compile in a fifth of the time, and compute the same. A changed header has
	// those files compiled that include it.
	right.replace(t, "kernels/hvx.h", `_Pragma("unroll")`, "")
	right.replace(t, "Makefile", "$(TARGET) -O2 ", "$(TARGET) -O1 -MMD ")
	right.replace(t, "Makefile", ".c $(HEADERS) Makefile\n", ".c\n")
	right.replace(t, "Makefile", "runtime.o: $(SOURCES)\n", "runtime.o: emulator/runtime.c\n-include $(wildcard build/*/*/*.d)\n")
	const mistakes = "build/mistakes.elf"
	e := newExercise()
	// What shards do to each other is looked for last: that takes eight times as long.
	// A program that a fault keeps in a loop has had enough of the processor, however long it waited for it.
	emulator := cmp.Or(os.Getenv(EmulatorEnv), "qemu-hexagon -cpu v67")
	passes := func(t *testing.T, built []byte, ops ...device.Op) bool {
		for _, o := range []Options{{Emulator: fmt.Sprintf("prlimit --cpu=%.0f %s", hung.Seconds(), emulator)}, {Seed: 1}} {
			o.Program, o.KeepTCM, o.Workers, o.Limit = built, true, 3, patient
			d := open(t, o)
			err := e.run(t, d, ops...)
			d.Close()
			if errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			if err != nil {
				t.Log(err)
				return false
			}
		}
		return true
	}
	if !passes(t, right.build(t, program)) {
		t.Fatal("without a fault it fails")
	}
	left := int(time.Now().Unix()/86400) % *faults
	built := map[string]bool{program: true}
	// with seeds a fault, if it is its turn, into what a program is made of.
	with := func(program, name, from, to string, noticed func(t *testing.T, d tree) bool) {
		if left = (left + 1) % *faults; left != 0 {
			return
		}
		if !built[program] { // what a fault does not concern is compiled once
			built[program] = true
			right.build(t, program)
		}
		t.Run(filepath.Base(name)+" "+from, func(t *testing.T) {
			t.Parallel()
			wrong := right.clone(t)
			wrong.replace(t, name, from, to)
			if !noticed(t, wrong) {
				t.Errorf("%q in its place is not noticed", to)
			}
		})
	}
	for _, f := range seeded {
		with(program, f.file, f.from, f.to, func(t *testing.T, d tree) bool {
			return !passes(t, d.build(t, program), concerns[f.file]...)
		})
	}
	for _, f := range seededGathers {
		with(strict, f.file, f.from, f.to, func(t *testing.T, d tree) bool {
			return !passes(t, d.build(t, strict), concerns[f.file]...)
		})
	}
	for _, f := range seededMappings {
		with(program, f.file, f.from, f.to, func(t *testing.T, d tree) bool {
			err := mappingsDiffer(t, open(t, Options{Program: d.build(t, program), Memory: MaxMemory, KeepTCM: true, Limit: patient}))
			t.Log(err)
			return err != nil
		})
	}
	for _, f := range seededLines {
		with(skel, f.file, f.from, f.to, func(t *testing.T, d tree) bool {
			err := libraryDiffers(t, d.build(t, skel))
			t.Log(err)
			return err != nil
		})
	}
	for _, f := range seededQfloat {
		with(qfloatProgram, f.file, f.from, f.to, func(t *testing.T, d tree) bool {
			dev := open(t, Options{Program: d.build(t, qfloatProgram), KeepTCM: true, Limit: patient})
			if err := differsFromModel(t, dev, 8); err != nil {
				t.Log(err)
				return true
			}
			most, err := mostApart(t, dev, 8)
			for op, by := range most {
				if by > inQfloat[op].most {
					t.Log(op, by)
					return true
				}
			}
			return err != nil
		})
	}
	for _, f := range seededThreads {
		with(mistakes, f.file, f.from, f.to, func(t *testing.T, d tree) bool {
			d.build(t, mistakes)
			out, _ := mistake(t, filepath.Join(string(d), mistakes), f.shows, hung)
			return !bytes.Equal(out, rights[f.shows])
		})
	}
}
