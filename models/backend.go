package models

import (
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/models/attention"
	"github.com/lutra-lm/lutra/models/kv"
)

// AttentionBackend is a kernels.Backend that computes attention too.
type AttentionBackend interface {
	// Attend sets a.Out. It returns false, and has done nothing, where it leaves
	// that to the CPU.
	Attend(a *Attention) bool
}

// Attention is causal grouped-query attention of rows over one layer of a cache,
// which holds their own keys and values already.
type Attention struct {
	Out    []float32 // [rows][Heads*HeadDim]
	QKV    []float32 // [rows][Width], queries [Heads][HeadDim] first
	Width  int
	Heads  int // of queries
	Rows   []RowPos
	Cache  *kv.Cache
	Layer  int
	Scale  float32 // of scores
	Cap    float32 // scores are drawn into (-Cap, Cap); 0: they are not
	Window int     // keys that are seen, the row's own included; 0: all
}

// RowPos is where a row's token stands.
type RowPos = attention.RowPos

// FaultError says that a backend has failed, and the step with it. What the step and
// those before it have computed is not to be trusted.
type FaultError struct {
	Err   error
	Spare bool // the CPU computes all steps from now on
}

// Error is that of the backend.
func (e *FaultError) Error() string { return "models: " + e.Err.Error() }

// Unwrap gives the backend's error.
func (e *FaultError) Unwrap() error { return e.Err }

// device is where an executor's matrices are, if that is not the CPU.
type device struct {
	backend  kernels.Backend // nil: the CPU
	attends  AttentionBackend
	experts  ExpertBackend
	spare    bool // the CPU has all matrices too
	reported bool // the fault has been
	request  Attention
}

func newDevice(opt *LoadOptions) *device {
	d := &device{backend: opt.Backend, spare: opt.Spare}
	d.attends, _ = opt.Backend.(AttentionBackend)
	d.experts, _ = opt.Backend.(ExpertBackend)
	return d
}

// begin tells the backend of a step of rows.
func (d *device) begin(rows []RowPos) {
	if d.experts != nil {
		d.experts.Begin(rows)
	}
}

// attend has the backend compute the attention of a shard's rows into s.a.
func (d *device) attend(s *rowShard, a *selfAttention) bool {
	c := s.cfg
	// It knows causal attention alone, without sinks.
	if d.attends == nil || d.backend.Err() != nil || c.Whole || a.mask.Sinks != nil {
		return false
	}
	d.request = Attention{
		Out: s.a[:s.rows*c.Heads*c.HeadDim], QKV: s.qkv, Width: a.qkv.Sum, Heads: c.Heads, Rows: s.rowPos, Cache: s.kv, Layer: a.layer,
		Scale: a.mask.Scale, Cap: a.mask.Cap, Window: a.mask.Window,
	}
	return d.attends.Attend(&d.request)
}

// err is the backend's fault: once where the CPU goes on, else from every step.
func (d *device) err() error {
	if d.backend == nil {
		return nil
	}
	err := d.backend.Err()
	if err == nil || d.spare && d.reported {
		return nil
	}
	d.reported = true
	return &FaultError{Err: err, Spare: d.spare}
}
