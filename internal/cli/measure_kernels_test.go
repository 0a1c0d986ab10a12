package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/kernels/bench"
)

func TestAnInterruptedBenchmarkOfKernelsPrintsWhatItHas(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, format := range []string{"", "--json"} {
		var out bytes.Buffer
		root := newRoot(&out, io.Discard)
		root.SetArgs(strings.Fields("bench kernels --shapes 64x256 --tokens 4,8,32 --packings I2 --threads 1 --budget 1ns " + format))
		if err := root.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v", format, err)
		}
		var rows []bench.Row
		switch {
		case format == "" && strings.Count(out.String(), "\n") != 2:
			t.Errorf("its table is %s", &out)
		case format != "" && (json.Unmarshal(out.Bytes(), &rows) != nil || len(rows) != 1):
			t.Errorf("its JSON is %s", &out)
		}
	}
}

func TestTheUsualBenchmarkOfKernelsIsShort(t *testing.T) {
	usual, full := bench.DefaultOptions(), bench.FullOptions()
	if spent := time.Duration(usual.Rows()) * usual.Budget; spent > time.Minute {
		t.Errorf("%d rows of %v each are %v", usual.Rows(), usual.Budget, spent)
	}
	if full.Rows() <= 2*usual.Rows() {
		t.Errorf("%d rows in full, %d usually", full.Rows(), usual.Rows())
	}
	usual.Shapes, usual.Tokens, usual.Threads, usual.Budget = [][2]int{{64, 256}}, []int{4, 8}, []int{1}, 1
	n := 0
	for _, err := range bench.Products(bench.Machine{}, usual) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != usual.Rows() {
		t.Errorf("%d rows were measured, %d announced", n, usual.Rows())
	}
}
