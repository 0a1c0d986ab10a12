package experts

import (
	"fmt"
	"slices"
)

// Plan says which experts of each layer an NPU computes, in which groups, and how many
// rows each has room for.
type Plan struct {
	Kind      string  `json:"kind"` // PlanKind
	Shape     Shape   `json:"shape"`
	Chunk     int     `json:"chunk"`      // B: the most tokens of one prompt that a step computes
	GroupSize int     `json:"group_size"` // G: the most experts of a group
	Sizing    string  `json:"sizing"`     // how capacities were found: "tiers", or "uniform 64"
	Device    Device  `json:"device"`
	Layers    []Layer `json:"layers"`

	Bytes  int64    `json:"bytes"`            // of the experts' weights on the device
	Choice Choice   `json:"choice"`           // what the plan does, by the calibration
	Why    string   `json:"why,omitempty"`    // the choice in words
	Others []Choice `json:"others,omitempty"` // what was weighed, this choice among it

	Checks []Checked `json:"checks,omitempty"` // what it does to the calibration's further sets
}

// PlanKind is the kind of files with plans.
const PlanKind = "lutra-experts-plan"

// Layer is the plan of a layer.
type Layer struct {
	Imbalance float64 `json:"imbalance"` // r, of the calibration or as asked for
	Base      int     `json:"base"`      // C_base: an expert's rows if all had as many
	Busiest   int     `json:"busiest"`   // n_max: r · C_base
	Tiers     []int   `json:"tiers"`     // capacities, the largest first
	Groups    []Group `json:"groups"`    // the most popular first; each expert is in one
}

// Group is experts that one launch computes, or that the CPU computes.
type Group struct {
	Experts   []int     `json:"experts"`  // the most popular first
	Capacity  int       `json:"capacity"` // rows of each expert; the CPU's have no bound
	Placement Placement `json:"placement"`
	Bytes     int64     `json:"bytes"` // of the experts' weights on the device
	Expected  Expected  `json:"expected"`
	Why       string    `json:"why"` // the placement in words
}

// Expected holds the rows of a group from a chunk, on average over the calibration's chunks:
// counted, not estimated.
type Expected struct {
	Rows     float64 `json:"rows"`     // that chose its experts
	Padding  float64 `json:"padding"`  // rows of its capacity that nothing fills
	Overflow float64 `json:"overflow"` // rows beyond its capacity
}

// Choice is a way to plan, and what it does to the calibration's chunks.
type Choice struct {
	Chunk     int    `json:"chunk"`
	GroupSize int    `json:"group_size"`
	Sizing    string `json:"sizing"`

	Launches float64 `json:"launches"` // by token, all layers together
	Padding  float64 `json:"padding"`  // share of the rows that the device computes
	Overflow float64 `json:"overflow"` // share of all rows that experts are chosen for
	Host     float64 `json:"host"`     // share of these rows that is placed on the CPU
	Bytes    int64   `json:"bytes"`    // of the experts' weights on the device
	Cost     float64 `json:"cost_ms"`  // of the experts, modelled, by token; what overflows on the CPU
	Front    bool    `json:"front"`    // no other choice is better in one of the first four and worse in none
}

// Checked holds the results of a plan on a data set that it was not made of.
type Checked struct {
	Set string `json:"set"`
	Choice
}

// Placement says what computes a group.
type Placement string

// The placements.
const (
	NPU Placement = "npu"
	CPU Placement = "cpu"
)

// Rows returns the rows of a launch of g.
func (g *Group) Rows() int { return len(g.Experts) * g.Capacity }

// MostChoices bounds the ways to plan that a file lists.
const MostChoices = 1 << 10

const mostWhy = 1 << 10 // bytes of a reason

// Check reports what no plan says, and what the device cannot have.
func (p *Plan) Check() error {
	if p.Kind != PlanKind {
		return fmt.Errorf("its kind is %.40q, want %q", p.Kind, PlanKind)
	}
	if err := p.Shape.Check(); err != nil {
		return err
	}
	if err := p.Device.Check(); err != nil {
		return err
	}
	switch {
	case p.Chunk < 1 || p.Chunk > MostChunk:
		return fmt.Errorf("chunks of %d tokens are outside 1 to %d", p.Chunk, MostChunk)
	case p.GroupSize < 1 || p.GroupSize > p.Shape.Experts:
		return fmt.Errorf("groups of %d experts of %d", p.GroupSize, p.Shape.Experts)
	case len(p.Sizing) > MostName:
		return fmt.Errorf("a sizing of %d bytes", len(p.Sizing))
	case p.Bytes < 0 || p.Device.Bytes > 0 && p.Bytes > p.Device.Bytes:
		return fmt.Errorf("%d bytes of weights are more than the device's %d", p.Bytes, p.Device.Bytes)
	case len(p.Why) > mostWhy || len(p.Others) > MostChoices || len(p.Checks) > mostSets:
		return fmt.Errorf("a reason of %d bytes, %d other choices and %d checks", len(p.Why), len(p.Others), len(p.Checks))
	case len(p.Layers) != p.Shape.Layers:
		return fmt.Errorf("it has %d layers, want %d", len(p.Layers), p.Shape.Layers)
	}
	for i := range p.Layers {
		if err := p.Layers[i].check(p); err != nil {
			return fmt.Errorf("layer %d: %w", i, err)
		}
	}
	return nil
}

func (l *Layer) check(p *Plan) error {
	seen := make([]bool, p.Shape.Experts)
	for i := range l.Groups {
		g := &l.Groups[i]
		if err := g.check(p); err != nil {
			return fmt.Errorf("group %d: %w", i, err)
		}
		for _, e := range g.Experts {
			switch {
			case e < 0 || e >= p.Shape.Experts:
				return fmt.Errorf("group %d: there is no expert %d of %d", i, e, p.Shape.Experts)
			case seen[e]:
				return fmt.Errorf("group %d: expert %d is in a group already", i, e)
			}
			seen[e] = true
		}
	}
	if e := slices.Index(seen, false); e >= 0 {
		return fmt.Errorf("expert %d is in no group", e)
	}
	if !(l.Imbalance >= 0 && l.Imbalance <= float64(mostExperts)) || l.Base < 0 || l.Base > MostChunk || l.Busiest < 0 || l.Busiest > MostChunk {
		return fmt.Errorf("imbalance %v, base %d and busiest %d are out of range", l.Imbalance, l.Base, l.Busiest)
	}
	if len(l.Tiers) > len(l.Groups) {
		return fmt.Errorf("%d tiers for %d groups", len(l.Tiers), len(l.Groups))
	}
	return nil
}

func (g *Group) check(p *Plan) error {
	most := up(p.Chunk, p.Device.Rows)
	switch {
	case len(g.Experts) < 1 || len(g.Experts) > p.Shape.Experts:
		return fmt.Errorf("it has %d experts", len(g.Experts))
	case g.Placement != NPU && g.Placement != CPU:
		return fmt.Errorf("the placement is %.40q, want %q or %q", g.Placement, NPU, CPU)
	case g.Capacity < 1 || g.Capacity > most || g.Capacity%p.Device.Rows != 0:
		return fmt.Errorf("a capacity of %d is not a multiple of %d in 1 to %d", g.Capacity, p.Device.Rows, most)
	case g.Placement == NPU && len(g.Experts) > p.GroupSize:
		return fmt.Errorf("it has %d experts, more than %d", len(g.Experts), p.GroupSize)
	case g.Bytes < 0 || g.Placement == NPU && p.Device.GroupBytes > 0 && g.Bytes > p.Device.GroupBytes:
		return fmt.Errorf("%d bytes of weights are more than the %d of a graph", g.Bytes, p.Device.GroupBytes)
	case len(g.Why) > mostWhy:
		return fmt.Errorf("a reason of %d bytes", len(g.Why))
	}
	for _, x := range []float64{g.Expected.Rows, g.Expected.Padding, g.Expected.Overflow} {
		if !(x >= 0 && x <= MostChunk*mostExperts) {
			return fmt.Errorf("%v expected rows", x)
		}
	}
	return nil
}

func up(n, unit int) int { return (n + unit - 1) / unit * unit }
