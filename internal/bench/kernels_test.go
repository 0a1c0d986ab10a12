package bench

import (
	"testing"
	"time"

	kernelbench "github.com/lutra-lm/lutra/kernels/bench"
)

func TestTheUsualBenchmarkOfKernelsIsShort(t *testing.T) {
	usual, full := kernelbench.DefaultOptions(), kernelbench.FullOptions()
	if spent := time.Duration(usual.Rows()) * usual.Budget; spent > time.Minute {
		t.Errorf("%d rows of %v each are %v", usual.Rows(), usual.Budget, spent)
	}
	if full.Rows() <= 2*usual.Rows() {
		t.Errorf("%d rows in full, %d usually", full.Rows(), usual.Rows())
	}
	usual.Shapes, usual.Tokens, usual.Threads, usual.Budget = [][2]int{{64, 256}}, []int{4, 8}, []int{1}, 1
	n := 0
	for _, err := range kernelbench.Products(kernelbench.Machine{}, usual) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != usual.Rows() {
		t.Errorf("%d rows were measured, %d announced", n, usual.Rows())
	}
}
