package npu

import (
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/selftest"
	"github.com/lutra-lm/lutra/lab/npu/soc"
	"github.com/lutra-lm/lutra/lab/npu/tiling"
	"github.com/lutra-lm/lutra/lab/npu/timeline"
)

// Options say what is planned.
type Options struct {
	Chip            string    `json:"soc"`                         // whose tilings, TCM and timeline are shown
	Clock           float64   `json:"clock_ghz,omitempty"`         // 0: the chip's
	CyclesPerPacket float64   `json:"cycles_per_packet,omitempty"` // 0: the chip's
	Route           soc.Route `json:"route"`
	Prompt          int       `json:"prompt"`  // tokens of the prompt
	Context         int       `json:"context"` // tokens before those that are decoded
	// Measured is the self-test of a device of the chip, whose times become its constants; nil: none.
	Measured *selftest.Report `json:"measured,omitempty"`
}

// DefaultOptions returns the papers' options: a prompt of 1024 tokens on Snapdragon 8 Gen 3.
func DefaultOptions() Options {
	return Options{Chip: "8gen3", Route: soc.ByDMA, Prompt: 1024, Context: 1024}
}

// Most bounds what is planned.
const (
	mostTokens = 1 << 20
	mostGHz    = 10
	mostCycles = 100
)

// Check reports what cannot be planned.
func (o Options) Check() error {
	switch {
	case o.Prompt < 1 || o.Prompt > mostTokens || o.Context < 1 || o.Context > mostTokens:
		return fmt.Errorf("a prompt of %d and a context of %d tokens are outside 1 to %d", o.Prompt, o.Context, mostTokens)
	case !(o.Clock >= 0 && o.Clock <= mostGHz && o.CyclesPerPacket >= 0 && o.CyclesPerPacket <= mostCycles): // NaN, too
		return fmt.Errorf("%v GHz and %v cycles a packet are out of range", o.Clock, o.CyclesPerPacket)
	}
	if _, err := soc.Named(o.Chip); err != nil {
		return err
	}
	return checkMeasured(o.Measured)
}

// Batches are the decoded batches of a plan.
var batches = []int{1, 2, 4, 8, 12, 16}

// timelineTiles is the number of tiles of the timeline that are kept and shown.
const timelineTiles = 8

// Plan is the object of `lutra-lab npu plan --json`. All times and energies are modelled.
type Plan struct {
	Kind     string     `json:"kind"` // "modelled": nothing here was measured on a device
	Model    soc.Model  `json:"model"`
	Options  Options    `json:"options"`
	Weights  int        `json:"weight_bytes"`
	KVBytes  int        `json:"kv_bytes_per_token"`
	Matrices []Tiled    `json:"matrices"`
	TCM      soc.Layout `json:"tcm"` // of the largest matrix
	Timeline Timeline   `json:"timeline"`
	Chips    []Bounds   `json:"socs"`
	Host     []string   `json:"on_the_host,omitempty"` // layers, and the reasons; nil: not asked for
	// Session is the memory that a server opens, in bytes; 0: the model was not loaded, and Estimate is about what it is.
	Session  int64 `json:"session_bytes,omitempty"`
	Estimate int64 `json:"session_estimate_bytes"`
}

// Tiled is the tiling of a matrix.
type Tiled struct {
	soc.Matrix
	Bytes   int              `json:"bytes"`
	Tiling  tiling.Tiling    `json:"tiling"`
	Rows    int              `json:"tile_rows"`
	Cols    int              `json:"tile_cols"`
	Tiles   int              `json:"tiles"`
	Legal   int              `json:"legal"`
	Refused []tiling.Refusal `json:"refused"`
	Why     []string         `json:"why"`
	One     soc.Path         `json:"path_of_one_row"`
	Sixteen soc.Path         `json:"path_of_sixteen_rows"`
}

// Timeline is a product of the largest matrix with a chunk of tokens.
type Timeline struct {
	Matrix     string          `json:"matrix"`
	Tokens     int             `json:"tokens"`
	Tiles      int             `json:"tiles"`
	Tile       timeline.Costs  `json:"tile_seconds"` // DMA, HVX, HMX
	Sequential float64         `json:"sequential_seconds"`
	Pipelined  float64         `json:"pipelined_seconds"`
	First      []timeline.Span `json:"first_jobs"`
	apart      []timeline.Span // the same jobs one after the other, for the drawing
}

// Bounds are a chip's least times.
type Bounds struct {
	Name    string            `json:"soc"`
	ID      string            `json:"id"`
	Arch    string            `json:"npu"`
	Numbers []soc.NamedNumber `json:"constants"`
	Fits    bool              `json:"fits"` // Session, or Estimate, in what a session maps
	Prefill Bound             `json:"prefill"`
	Decode  []Bound           `json:"decode"`
}

// Bound is the modelled cost of a prompt, or of a decoding step.
type Bound struct {
	Tokens int `json:"tokens"` // that the cost is of
	soc.Cost
	TokensPerSecond float64 `json:"tok_s"`
	JoulesPerToken  float64 `json:"joules_per_token"`
	Watts           float64 `json:"watts"`
	Limit           string  `json:"bound_by"`
}

func bound(tokens int, c soc.Cost) Bound {
	return Bound{tokens, c, float64(tokens) / c.Seconds, c.Joules / float64(tokens), c.Joules / c.Seconds, c.Bound()}
}

// machine returns a chip with the options' changes.
func (o Options) machine(c soc.Chip) *soc.Machine {
	given := func(n *soc.Number, v float64) {
		if v > 0 {
			*n = soc.Number{Value: v, Unit: n.Unit, Source: soc.Assumed, Note: "as asked for"}
		}
	}
	if o.Measured != nil && c.ID == o.Chip {
		measured(&c, o.Measured)
	}
	given(&c.Clock, o.Clock)
	given(&c.CyclesPerPacket, o.CyclesPerPacket)
	m := soc.NewMachine(c)
	m.Route = o.Route
	return m
}

// NewPlan plans a model.
func NewPlan(x soc.Model, o Options) (*Plan, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	chip, err := soc.Named(o.Chip)
	if err != nil {
		return nil, err
	}
	x = mapped(x)
	p := &Plan{Kind: "modelled", Model: x, Options: o, Weights: x.Bytes(), KVBytes: x.KVBytes(), Estimate: int64(x.Bytes()) + besideWeights}
	m := o.machine(chip)
	if err := p.tile(m); err != nil {
		return nil, err
	}
	for _, c := range soc.Chips() {
		p.Chips = append(p.Chips, p.bounds(o.machine(c)))
	}
	return p, nil
}

// mapped leaves to the host the matrices that a device does not map at once.
func mapped(x soc.Model) soc.Model {
	x.Matrices = slices.Clone(x.Matrices)
	for i := range x.Matrices {
		m := &x.Matrices[i]
		p := m.Padded()
		m.Host = m.Host || p.M*p.K/8*p.Bits > device.MappingBytes // its codes
	}
	return x
}

// besideWeights is about what a session maps beside a model's weights: TCM's addresses, kept keys and values, tables, norms, and
// what host and device exchange.
const besideWeights = device.TCMBytes + hexagon.DefaultKeys + 64<<20

// An estimate and the session of a loaded model differ by at most this share of the larger one, or these bytes of small models.
const (
	estimated      = 0.1
	estimatedBytes = 48 << 20
)

// tile plans the matrices, and the largest one of the layers in detail.
func (p *Plan) tile(m *soc.Machine) error {
	largest := -1
	for i, x := range p.Model.Matrices {
		if x.Host {
			continue
		}
		l, err := m.Plan(x, soc.Chunk)
		if err != nil {
			return err
		}
		c := l.Search.Choice
		t := Tiled{Matrix: x, Bytes: x.Bytes(), Tiling: c, Rows: c.Rows(), Cols: c.Cols(), Tiles: c.Tiles(x.Tiled()),
			Legal: len(l.Search.Legal), Refused: l.Search.Refused, Why: l.Search.Why, One: m.Path(x, 1), Sixteen: m.Path(x, 16)}
		p.Matrices = append(p.Matrices, t)
		if x.Input != soc.Logits && (largest < 0 || x.Bytes() > p.Model.Matrices[largest].Bytes()) {
			largest, p.TCM = i, l
		}
	}
	if largest < 0 {
		return fmt.Errorf("%s: no matrix is for the device", p.Model.Name)
	}
	p.TCM.Search.Legal = nil // thousands
	x := p.Model.Matrices[largest]
	p.Timeline = timelineOf(m, x, p.TCM.Search.Choice)
	return nil
}

func timelineOf(m *soc.Machine, x soc.Matrix, t tiling.Tiling) Timeline {
	costs, tiles := m.Stages(x, soc.Chunk, t)
	l := Timeline{Matrix: x.Name, Tokens: soc.Chunk, Tiles: tiles, Tile: costs}
	l.Sequential, l.Pipelined = timeline.Total(tiles, costs, false), timeline.Total(tiles, costs, true)
	shown := min(tiles, timelineTiles)
	l.First, _ = timeline.Simulate(shown, costs, true)
	l.apart, _ = timeline.Simulate(shown, costs, false)
	return l
}

// opens notes the bytes of the model's session, which are those of the server's own layout, and which chips have room for them.
func (p *Plan) opens(bytes int64) {
	p.Session = bytes
	for i, c := range soc.Chips() {
		p.Chips[i].Fits = float64(bytes) <= c.Addresses.Value
	}
}

func (p *Plan) bounds(m *soc.Machine) Bounds {
	x, o := &p.Model, p.Options
	b := Bounds{Name: m.Name, ID: m.ID, Arch: m.Arch, Numbers: m.Numbers(), Prefill: bound(o.Prompt, m.Prefill(x, o.Prompt))}
	b.Fits = float64(p.Estimate) <= m.Addresses.Value
	for _, n := range batches {
		b.Decode = append(b.Decode, bound(n, m.Decode(x, n, o.Context)))
	}
	return b
}
