package bench

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	kernelbench "github.com/lutra-lm/lutra/kernels/bench"
	"github.com/lutra-lm/lutra/lab/bench/products"
)

func TestTheUsualBenchmarkOfKernelsIsShort(t *testing.T) {
	usual, full := products.DefaultOptions(), products.FullOptions()
	if spent := time.Duration(usual.Rows()) * usual.Budget; spent > time.Minute {
		t.Errorf("%d rows of %v each are %v", usual.Rows(), usual.Budget, spent)
	}
	if full.Rows() <= 2*usual.Rows() {
		t.Errorf("%d rows in full, %d usually", full.Rows(), usual.Rows())
	}
	usual.Shapes, usual.Tokens, usual.Threads, usual.Budget = [][2]int{{64, 256}}, []int{4, 8}, []int{1}, 1
	n := 0
	for _, err := range products.Products(kernelbench.Machine{}, usual) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != usual.Rows() {
		t.Errorf("%d rows were measured, %d announced", n, usual.Rows())
	}
}

func TestAnInterruptedBenchmarkOfKernelsHasTheRowsSoFar(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := DefaultKernelOptions()
	o.Shapes, o.Packings, o.Tokens, o.Threads, o.Budget = []string{"64x256"}, []string{"I2"}, []int{4, 8, 32}, []int{1}, 1
	o.machine = func(time.Duration) kernelbench.Machine { return kernelbench.Machine{} } // its memory takes seconds
	r, err := Kernels(ctx, o, io.Discard)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	rows, _ := r.(KernelReport)
	if len(rows) != 1 || rows[0].GMACs <= 0 {
		t.Errorf("it has %+v, want one row", rows)
	}
	var out bytes.Buffer
	if err := rows.Print(&out); err != nil || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("its table is %s, %v", &out, err)
	}
}

func TestChosenKernelsHaveARowForEachNumberOfTokens(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := DefaultKernelOptions()
	o.Chosen, o.Shapes, o.Packings, o.Tokens, o.Threads, o.Budget = true, []string{"64x256"}, []string{"I2"}, nil, []int{1}, 1
	r, err := Kernels(ctx, o, io.Discard)
	rows, _ := r.(ChosenReport)
	if err != nil || len(rows) != len(products.ChosenTokens) {
		t.Fatalf("%d rows, %v, want %d", len(rows), err, len(products.ChosenTokens))
	}
	var out bytes.Buffer
	if err := rows.Print(&out); err != nil || strings.Count(out.String(), "\n") != 1+len(rows) {
		t.Errorf("its table is %s, %v", &out, err)
	}
	cancel()
	if r, err := Kernels(ctx, o, io.Discard); !errors.Is(err, context.Canceled) || len(r.(ChosenReport)) != 1 {
		t.Errorf("interrupted, it has %v, %v, want one row", r, err)
	}
}
