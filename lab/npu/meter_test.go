package npu

import (
	"errors"
	"math"
	"testing"

	"github.com/lutra-lm/lutra/lab/npu/soc"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// silent is a model that computes nothing.
type silent struct{ err error }

func (silent) Config() models.Config                    { return models.Config{} }
func (s silent) Forward(*models.Batch, *kv.Cache) error { return s.err }
func (silent) TakeBack(*models.Batch, []int)            {}

func TestAMeterAddsTheCostOfEveryBatch(t *testing.T) {
	x := named(t, "tiny")
	meter, err := NewMeter("8gen3")
	if err != nil {
		t.Fatal(err)
	}
	failure := errors.New("failed")
	m := meter.Watch(silent{failure}, x)
	var prompt, step models.Batch
	prompt.Add(nil, 0, 1, make([]int32, 40)...)
	for i := range 4 {
		step.Add(nil, 40+i, 1, 7)
	}
	for _, b := range []*models.Batch{&prompt, &step} {
		if err := m.Forward(b, nil); err != failure {
			t.Fatalf("the model's own answer became %v", err)
		}
	}
	chip, _ := soc.Named("8gen3")
	machine := soc.NewMachine(chip)
	a := machine.Step(&x, []soc.Work{{Rows: 40, Context: 40}}, 1)
	b := machine.Step(&x, []soc.Work{{Rows: 1, Context: 41}, {Rows: 1, Context: 42}, {Rows: 1, Context: 43}, {Rows: 1, Context: 44}}, 4)
	if got := meter.Take(); math.Abs(got.Seconds-a.Seconds-b.Seconds) > 1e-12 || !(got.Joules > 0) {
		t.Errorf("%v s, want %v", got.Seconds, a.Seconds+b.Seconds)
	}
	if got := meter.Take(); got.Seconds != 0 {
		t.Error("what was taken is there again")
	}
	if _, err := NewMeter("z80"); err == nil {
		t.Error("an unknown chip is metered")
	}
}
