package models

import (
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/attention"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/recurrent"
)

// Accelerator is a kernels.Backend that computes attention too, and the experts of mixtures by a plan of
// its own. The plan says which experts it takes, how many rows of each at once, and what computes the
// others. hexagon.Backend is one; it imports this package, which knows it by this interface alone.
type Accelerator interface {
	kernels.Backend
	// Attend sets a.Out. It returns false, and has done nothing, where it leaves
	// that to the CPU.
	Attend(a *Attention) bool
	// Mixtures tells what mixtures the model has, before anything is loaded. An error
	// refuses the model.
	Mixtures(s MixtureShape) error
	// Expert loads the matrices of an expert. Nil: the CPU computes it.
	Expert(layer, expert int) kernels.Backend
	// GatedExpert tells of an expert whose matrices it has loaded, or some of them, or of SharedExpert. It returns
	// whether it computes the expert whole, its biases too: of down, where that is the CPU's, the product stays there.
	GatedExpert(layer, expert int, x *GatedExpert) bool
	// Begin tells of the rows of the step that begins.
	Begin(rows []RowPos)
	// RunExperts computes the experts that x names, in every step; they may be none. The CPU has the others meanwhile: it
	// touches no place of these, and only reads what x reads.
	RunExperts(x *Experts)
	// Layers tells of the layers that may be computed as one each, once all is loaded. It
	// returns whether any will be.
	Layers(m *DenseLayers) bool
	// RunLayers computes layers of m from s.First on, and the head behind the last one, and
	// returns the first that it has not: for those there are the methods above. With the head
	// that is one more than there are layers.
	RunLayers(s *DenseStep) (next int)
}

// Attention is grouped-query attention of rows over one layer of a cache, which holds their
// own keys and values already, and of rows with RowPos.All those behind them.
type Attention struct {
	Out    []float32 // [rows][Heads*HeadDim]
	QKV    []float32 // [rows][Width], queries [Heads][HeadDim] first
	Width  int
	Heads  int // of queries
	Rows   []RowPos
	Cache  *kv.Cache
	Layer  int
	Scale  float32   // of scores
	Cap    float32   // scores are drawn into (-Cap, Cap); 0: they are not
	Window int       // keys that are seen, the row's own included; 0: all
	Both   bool      // a window lies on both sides, as attention.Mask has it
	Slopes []float32 // [Heads] by how much scores sink with the distance; nil: they do not
	Sinks  []float32 // [Heads] one more score for each, which adds nothing; nil: none
	Drift  *Drift    // of keys, which the cache lacks; nil: none
}

// RowPos is where a row's token stands.
type RowPos = attention.RowPos

// Drift is the part of all keys of a layer that a cache lacks.
type Drift = attention.Drift

// RecurrentSpan is consecutive rows of one sequence, and its recurrent state.
type RecurrentSpan = recurrent.Span

// FaultError says that a backend has failed, and the step with it. What the step and
// those before it have computed is not to be trusted.
type FaultError struct {
	Err   error
	Spare bool // the CPU computes all steps from now on
}

// Error returns the backend's words.
func (e *FaultError) Error() string { return "models: " + e.Err.Error() }

// Unwrap gives the backend's error.
func (e *FaultError) Unwrap() error { return e.Err }

// device is where an executor's matrices are, if that is not the CPU.
type device struct {
	backend     kernels.Backend // nil: the CPU
	accelerator Accelerator     // backend, if it is one
	spare       bool            // the CPU has all matrices too
	reported    bool            // the fault has been
	request     Attention
	step        DenseStep
	adapted     bool // adapters are loaded, or hidden states are read: no layer is computed whole
}

func newDevice(opt *LoadOptions) *device {
	d := &device{backend: opt.Backend, spare: opt.Spare}
	d.accelerator, _ = opt.Backend.(Accelerator)
	return d
}

// begin tells the backend of a step of rows.
func (d *device) begin(rows []RowPos) {
	if d.accelerator != nil {
		d.accelerator.Begin(rows)
	}
}

// err returns the backend's fault: once where the CPU goes on, else from every step.
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

// MixtureShape holds what the mixtures of a model share.
type MixtureShape struct {
	Model           string // general.name
	Layers, Dense   int    // Dense of them, the first, have feed-forwards
	Experts, Chosen int    // of a layer, and how many of them a row takes
	Hidden, Width   int    // what an expert reads and makes, and what its gate and up make
}

// GatedExpert is the weights of an expert: Down·unit(GateUp·h), with biases.
type GatedExpert struct {
	GateUp     []kernels.Linear // one product, or gate and up
	Down       kernels.Linear   // nil: several products
	Unit       GatedUnit
	Width      int       // of what gate and up make
	GateUpBias []float32 // [2·Width] of gate and of up; nil: none
	DownBias   []float32 // [Hidden]; nil: none
}

// SharedExpert is the number of the expert that all rows take.
const SharedExpert = -1

// Experts are the rows of a step that chose experts of a backend, grouped by expert: rows of expert e stand at
// places [First[e], First[e+1]).
type Experts struct {
	Layer  int
	Rows   []RowPos  // of the step
	H      []float32 // [rows][Hidden] what experts read
	List   []int32   // experts that rows chose and the backend has
	First  []int32   // [experts+1]
	RowAt  []int32   // [places]
	GateUp []float32 // [places][2·Width] memory for what gate and up make
	Gate   []float32 // [places][Width] for what GLU makes of that
	Out    []float32 // [places][Hidden] to be set
	Shared []float32 // [rows][Hidden] to be set to what SharedExpert makes; nil: the CPU has it, or there is none
	Hidden int
	Width  int

	// How the outputs become what is added to the stream: SharedWeights[i]·Shared[i] + Σ Weights[i][j]·Out[Places[i][j]].
	Chosen        int
	Weights       []float32 // [rows][Chosen]
	Places        []int32   // [rows][Chosen]
	SharedWeights []float32 // [rows]

	set *expertSet
}

// Matrices returns the products of expert e.
func (x *Experts) Matrices(e int32) (gateUp, down kernels.Linear) {
	w := x.set.expert(e)
	return w.gateUp.Device(), w.down.Device()
}

// GLU sets Gate of a place of expert e from GateUp.
func (x *Experts) GLU(e int32, place int) {
	both, m := rowOf(x.GateUp, place, 2*x.Width), x.set
	if m.downBias != nil {
		vector.AddInto(both, rowOf(m.gateUpBias, int(e), 2*x.Width))
	}
	m.unit.row(rowOf(x.Gate, place, x.Width), both)
}

// AddBias adds to Out of a place of expert e the bias of what it makes, if there is one.
func (x *Experts) AddBias(e int32, place int) {
	if m := x.set; m.downBias != nil {
		vector.AddInto(rowOf(x.Out, place, x.Hidden), rowOf(m.downBias, int(e), x.Hidden))
	}
}
