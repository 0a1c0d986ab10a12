package main

import (
	"slices"
	"testing"
)

// nested is a loop of two instructions, and a branch back, within another.
var nested = []instruction{
	{0, "mov\tx0, x1", 0},
	{4, "ldr\tq0, [x0]", 0},
	{8, "sdot\tv1.4s, v0.16b, v2.4b[0]", 0},
	{12, "b.ne\t0x8 <f+0x8>", 8},
	{16, "b.ne\t0x4 <f+0x4>", 4},
	{20, "ret", 0},
}

func TestATurnOfALoopHasItsInnerLoopsWrittenOut(t *testing.T) {
	got, err := turn(nested, 0, []int{2})
	want := []string{"top:", "ldr\tq0, [x0]", "sdot\tv1.4s, v0.16b, v2.4b[0]", "b.ne\ttop", "sdot\tv1.4s, v0.16b, v2.4b[0]", "b.ne\ttop", "b.ne\ttop"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("turn() = %q, %v, want %q", got, err, want)
	}
	if n := multiplyAdds(got); n != 32 {
		t.Errorf("multiplyAdds() = %d, want those of two SDOT", n)
	}
	if _, err := turn(nested, 0, []int{1, 2}); err == nil {
		t.Error("turn() took turns of two loops where there is one")
	}
	if _, err := turn(nested, 2, nil); err == nil {
		t.Error("turn() found a second loop")
	}
}

func TestBoundsHaveTheirStepsForEverySum(t *testing.T) {
	for _, table := range tables {
		for _, b := range table.bounds {
			sums := 16
			if b.steps != nil {
				sums = 8
			}
			if got, want := len(b.block()), sums*(b.times+len(b.steps)); got != want {
				t.Errorf("%s: %s has %d instructions, want %d", table.title, b.label, got, want)
			}
		}
	}
}
