package npu

import (
	"sync"

	"github.com/lutra-lm/lutra/lab/npu/soc"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// Meter models the cost on an NPU of the batches that models compute: the rows and contexts of every step of every model, one
// after the other.
type Meter struct {
	mu      sync.Mutex
	machine *soc.Machine
	sum     soc.Cost
}

// NewMeter returns a meter of that chip's time.
func NewMeter(chip string) (*Meter, error) {
	c, err := soc.Named(chip)
	if err != nil {
		return nil, err
	}
	return &Meter{machine: soc.NewMachine(c)}, nil
}

// Watch returns m, whose batches are metered as x's.
func (t *Meter) Watch(m models.Model, x soc.Model) models.Model { return &metered{m, t, x} }

// Take returns the modelled cost of all batches since the last Take.
func (t *Meter) Take() soc.Cost {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.sum
	t.sum = soc.Cost{}
	return c
}

type metered struct {
	models.Model
	meter *Meter
	shape soc.Model
}

// Forward implements models.Model.
func (m *metered) Forward(b *models.Batch, cache *kv.Cache) error {
	work := make([]soc.Work, 0, len(b.Spans))
	for _, s := range b.Spans {
		if n := s.End - s.Start; n > 0 {
			work = append(work, soc.Work{Rows: n, Context: int(b.Positions[s.End-1]) + 1})
		}
	}
	err := m.Model.Forward(b, cache)
	m.meter.add(&m.shape, work, b.Outputs())
	return err
}

func (t *Meter) add(x *soc.Model, work []soc.Work, outputs int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum.Add(t.machine.Step(x, work, outputs))
}
