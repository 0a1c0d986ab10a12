package mixtures

import (
	"fmt"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/lab/npu"
	"github.com/lutra-lm/lutra/lab/npu/calibration"
	"github.com/lutra-lm/lutra/lab/npu/planning"
)

// Planning says how a mixture is planned. What is zero, Weigh chooses.
type Planning struct {
	Device    string
	Chunk     int
	GroupSize int
	Capacity  int     // of all experts; 0: tiers
	Headroom  float64 // of tiers
	Ratio     float64 // in place of each layer's imbalance
	Launch    float64 // ms of a launch, in place of the device's
	// MostOverflow is the share of rows that may overflow.
	MostOverflow float64
	Context      int // tokens whose keys and values are on the device too
}

// DefaultPlanning has everything weighed.
func DefaultPlanning() Planning {
	return Planning{Device: "8gen3", MostOverflow: planning.MostOverflow, Context: 1024}
}

// mostContext bounds the tokens whose keys and values are planned.
const mostContext = 1 << 20

// What is planned where no calibration says better.
const (
	guessedChunk = 256
	guessedGroup = 8
	guessedRatio = 2 // about what NPUMoE's Figure 5 has for many layers
)

// NewPlan plans m by a calibration. Without one, which is nil, all experts count as
// equal.
func NewPlan(m *npu.Mixture, c *calibration.Calibration, o Planning) (*experts.Plan, error) {
	d, err := planning.NamedDevice(o.Device)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", experts.ErrOptions, err)
	}
	switch {
	case o.Capacity != 0 && o.Headroom != 0:
		return nil, fmt.Errorf("%w: a capacity of all experts has no headroom", experts.ErrOptions)
	case o.Context < 0 || o.Context > mostContext:
		return nil, fmt.Errorf("%w: a context of %d tokens is outside 0 to %d", experts.ErrOptions, o.Context, mostContext)
	}
	if o.Launch != 0 {
		d.Costs.Launch, d.Source = o.Launch, d.Source+"; the launch as asked for"
	}
	use := planning.Options{Shape: m.Shape, Device: d, Ratio: o.Ratio, ExpertBytes: m.ExpertBytes(d), Reserved: m.DenseBytes(o.Context)}
	if c == nil {
		return withoutCalibration(use, o)
	}
	s := planning.Space{MostOverflow: o.MostOverflow}
	if o.Chunk != 0 {
		s.Chunks = []int{o.Chunk}
	}
	if o.GroupSize != 0 {
		s.GroupSizes = []int{o.GroupSize}
	}
	if o.Capacity != 0 || o.Headroom != 0 {
		s.Sizings = []planning.Sizing{{Uniform: o.Capacity, Headroom: o.Headroom}}
	}
	return planning.Weigh(c, use, s)
}

func withoutCalibration(use planning.Options, o Planning) (*experts.Plan, error) {
	or := func(n, otherwise int) int {
		if n == 0 {
			return otherwise
		}
		return n
	}
	use.Chunk, use.GroupSize = or(o.Chunk, guessedChunk), or(o.GroupSize, min(guessedGroup, use.Shape.Experts))
	use.Sizing = planning.Sizing{Uniform: o.Capacity, Headroom: max(1, o.Headroom)}
	if use.Ratio == 0 {
		use.Ratio = min(guessedRatio, float64(use.Shape.Experts))
	}
	p, err := planning.New(nil, use)
	if err == nil {
		p.Why = fmt.Sprintf("there is no calibration: every expert counts as %g times as popular as on average", use.Ratio)
	}
	return p, err
}
