package load

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// Placement decides which backend multiplies a packed matrix, and owns the memory of the CPU's.
type Placement struct {
	backend kernels.Backend // where matrices go first
	cpu     kernels.Backend
	spare   bool       // the CPU multiplies them too once the backend has failed
	memory  *cpu.Arena // of the CPU's matrices
	pool    *pool.Pool
	observe func(of []Part, rows *kernels.Acts)

	totals *Totals
}

// Totals counts what has been loaded.
type Totals struct {
	Params int64 // weights
	Bytes  int64 // of them in memory
	Sent   int64 // of Params: what a backend other than the CPU multiplies

	packings map[string]bool // of the layers' matrices
}

// newPlacement returns the placement that opt asks for.
func newPlacement(opt *Options, totals *Totals) *Placement {
	p := &Placement{spare: opt.Spare, memory: new(cpu.Arena), pool: opt.Pool, observe: opt.Observe, totals: totals}
	if opt.Pool != nil { // else no matrix is read
		p.cpu = kernels.NewCPU(opt.Pool)
	}
	p.Place(opt.Backend)
	return p
}

// Place has the matrices that follow loaded on b; nil: on the CPU.
func (p *Placement) Place(b kernels.Backend) {
	if p.backend = b; b == nil {
		p.backend = p.cpu
	}
}

// Local tells whether the CPU gets the matrices that follow.
func (p *Placement) Local() bool { return p.backend == p.cpu }

// Memory returns where the CPU's matrices lie. Whoever has it frees it.
func (p *Placement) Memory() *cpu.Arena { return p.memory }

// arena returns where matrices are built: in Memory, or in the heap where a backend will have its
// own copy.
func (p *Placement) arena() *cpu.Arena {
	if p.Local() {
		return p.memory
	}
	return nil
}

// load makes w ready to multiply, on the CPU where the backend does not run its packing.
func (p *Placement) load(w *matrix.Matrix) (kernels.Linear, error) {
	lin, err := p.backend.Load(w)
	if errors.Is(err, matrix.ErrUnsupported) {
		return p.loadHere(w)
	}
	if err != nil || p.Local() {
		return lin, err
	}
	p.totals.Sent += w.Weights()
	if !p.spare {
		return lin, nil
	}
	own, err := p.loadHere(w)
	return spare{backend: p.backend, device: lin, cpu: own}, err
}

// loadHere makes w ready to multiply on the CPU.
func (p *Placement) loadHere(w *matrix.Matrix) (kernels.Linear, error) {
	if !p.Local() {
		own, err := kernels.Stack(p.memory, w)
		if err != nil {
			return nil, err
		}
		w = own
	}
	return p.cpu.Load(w)
}

// count adds a packed matrix.
func (t *Totals) count(w *matrix.Matrix) {
	t.Params += int64(w.Rows) * int64(w.Cols)
	t.Bytes += int64(w.Bytes())
}

// account adds a packed matrix, and what it runs as if it is a layer's.
func (t *Totals) account(tensor string, w *matrix.Matrix) {
	t.count(w)
	if strings.HasPrefix(tensor, "blk.") {
		t.packings[w.Packing.String()] = true
	}
}

// Packings returns what the matrices of the layers run as, such as "I2".
func (t *Totals) Packings() string { return strings.Join(slices.Sorted(maps.Keys(t.packings)), "+") }
