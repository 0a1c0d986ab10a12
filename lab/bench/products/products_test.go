package products

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/bench"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

func TestBenchKernelsMeasuresEveryKernelAgainstTheMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	machine := bench.Measure(time.Millisecond)
	if machine.ReadOne <= 0 || machine.ReadAll < machine.ReadOne {
		t.Errorf("memory read rates %v and %v", machine.ReadOne, machine.ReadAll)
	}
	o := Options{Packings: matrix.Packings(), Shapes: [][2]int{{256, 1024}}, Tokens: []int{4, 16}, Threads: []int{1}}
	var kernels, packings []string
	rows := 0
	for row, err := range Products(machine, o) {
		if err != nil {
			t.Fatal(err)
		}
		rows++
		name := row.ISA + ":" + strings.TrimPrefix(row.Kernel, "lut+")
		if row.ISA == row.Kernel {
			name = row.ISA
		}
		if !slices.Contains(kernels, name) {
			kernels = append(kernels, name)
		}
		if !slices.Contains(packings, row.Packing) {
			packings = append(packings, row.Packing)
		}
		if row.GMACs <= 0 || row.Peak > 0 && row.Ratio != row.GMACs/row.Peak {
			t.Errorf("%+v", row)
		}
	}
	var want []string
	wantRows := 0
	for _, p := range matrix.Packings() {
		for _, name := range benchedKernels(p) {
			if wantRows += 2; !slices.Contains(want, name) {
				want = append(want, name)
			}
		}
		if w := blank(p); routine(w, "mad", 16) == "lut" && !slices.Contains(want, cpu.Active().String()+":lut") {
			want = append(want, cpu.Active().String()+":lut")
		}
	}
	if slices.Sort(kernels); !reflect.DeepEqual(kernels, slices.Sorted(slices.Values(want))) || rows != wantRows {
		t.Errorf("measured %v in %d rows, want %v in %d", kernels, rows, want, wantRows)
	}
	if len(packings) != len(matrix.Packings()) {
		t.Errorf("measured packings %v, want %v", packings, matrix.Packings())
	}
}

func TestBenchKernelsMeasuresNamedKernelsAlone(t *testing.T) {
	all := Kernels()
	o := Options{Packings: matrix.Packings(), Kernels: all[:1], Shapes: [][2]int{{64, 256}}, Tokens: []int{1, 2}, Threads: []int{1}}
	rows := 0
	for _, p := range o.Packings {
		for _, name := range o.kernels(p) {
			if rows += len(o.Tokens); name != all[0] {
				t.Errorf("%v: %s, want %s alone", p, name, all[0])
			}
		}
	}
	if rows == 0 || o.Rows() != rows {
		t.Errorf("%d rows, want %d", o.Rows(), rows)
	}
}

func blank(p matrix.Packing) *matrix.Matrix {
	return &matrix.Matrix{Rows: 16, Cols: 1024, Packing: p, Levels: grouped.LevelsIQ4}
}

func TestTheNameOfAGroupKernelIsThatOfTheRoutineThatRuns(t *testing.T) {
	defer cpu.Override(cpu.Active())()
	for _, isa := range cpu.Supported() {
		cpu.Override(isa)
		check := func(p matrix.Packing, n int, want string) {
			if got := routine(blank(p), "mad", n); got != want {
				t.Errorf("%v on %v with %d tokens: %q, want %q", p, isa, n, got, want)
			}
		}
		check(matrix.Q4, 64, "mad")
		check(matrix.Q1G128, 1, "mad")
		if k, ok := grouped.NewKernel(blank(matrix.Q1G128)).(bands.TableKernel); ok && k.TableTokens() > 0 {
			per := k.TableTokens()
			check(matrix.Q1G128, per-1, "mad")
			check(matrix.Q1G128, per, "lut")
			check(matrix.Q1G128, 2*per+1, "lut+mad")
		}
	}
	if got := routine(blank(matrix.F16), "fma", 64); got != "fma" {
		t.Errorf("floats are multiplied by %q", got)
	}
}

func TestBenchKernelsRefusesAShapeItCannotPack(t *testing.T) {
	for _, err := range Products(bench.Machine{}, Options{Packings: []matrix.Packing{matrix.I2}, Shapes: [][2]int{{0, 5}}, Tokens: []int{1}, Threads: []int{1}}) {
		if !errors.Is(err, matrix.ErrShape) {
			t.Errorf("error %v, want ErrShape", err)
		}
	}
}

func TestBenchKernelsRefusesColumnsThatAPackingCannotHave(t *testing.T) {
	for _, err := range Products(bench.Machine{}, Options{Packings: []matrix.Packing{matrix.Q6}, Shapes: [][2]int{{16, 288}}, Tokens: []int{1}, Threads: []int{1}}) {
		if !errors.Is(err, matrix.ErrShape) {
			t.Errorf("error %v, want ErrShape", err)
		}
	}
}

func TestBenchRowsHaveTheNamesReportsUse(t *testing.T) {
	b, err := json.Marshal(Row{})
	const want = `{"isa":"","kernel":"","packing":"","m":0,"k":0,"n":0,"threads":0,"gmacs":0,"peak_gmacs":0,"ratio":0}`
	if err != nil || string(b) != want {
		t.Errorf("%s, %v; want %s", b, err, want)
	}
}
