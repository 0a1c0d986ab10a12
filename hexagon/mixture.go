package hexagon

import (
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/models"
)

// mixturePlan says where and in which groups the experts of a model are computed.
type mixturePlan struct {
	plan  *experts.Plan
	dense int // layers without experts, the first
	gated gatedPlan
}

// leastChunk is the fewest rows of a sequence in a step that are a chunk of a prompt.
// Fewer are not worth a launch: the host computes them, and rows of a stream with
// the tokens that are guessed for it.
const leastChunk = 32

// Sizes of the plan that is made where there is none.
const (
	defaultChunk = 256
	defaultGroup = 4
)

// Mixtures implements models.Accelerator. It reports a plan for other mixtures.
func (b *Backend) Mixtures(s models.MixtureShape) error {
	shape := experts.Shape{Model: s.Model, Layers: s.Layers, Experts: s.Experts, Chosen: s.Chosen, Hidden: s.Hidden, Width: s.Width}
	given := b.opt.Plan
	if given != nil {
		if err := given.Shape.Fits(shape); err != nil {
			return fmt.Errorf("the plan of experts: %w", err)
		}
	}
	chunk := defaultChunk
	if given != nil {
		chunk = given.Chunk
	}
	p := &mixturePlan{dense: s.Dense}
	switch {
	case b.opt.Placement == PlacementNaive:
		p.plan = uniform(shape, chunk, 1, chunk)
	case given != nil:
		p.plan = given
	default:
		p.plan = uniform(shape, chunk, defaultGroup, (chunk*shape.Chosen+shape.Experts-1)/shape.Experts)
	}
	p.gated.begin(p.plan)
	b.plan.mixture, b.experts.mixture, b.session.counts = p, p, &experts.Counts{}
	b.experts.gated.mixture, b.experts.gated.mem = p, &p.gated.device
	b.experts.beside.mixture, b.experts.beside.mem = p, &p.gated.host
	return nil
}

// uniform returns a plan of equal groups with room for rows of each expert.
func uniform(s experts.Shape, chunk, group, rows int) *experts.Plan {
	capacity := roundUp(rows, layout.Tile)
	p := &experts.Plan{Kind: experts.PlanKind, Shape: s, Chunk: chunk, GroupSize: min(group, s.Experts), Layers: make([]experts.Layer, s.Layers)}
	for i := range p.Layers {
		for e := 0; e < s.Experts; e += group {
			g := experts.Group{Capacity: capacity, Placement: experts.NPU}
			for j := e; j < min(e+group, s.Experts); j++ {
				g.Experts = append(g.Experts, j)
			}
			p.Layers[i].Groups = append(p.Layers[i].Groups, g)
		}
	}
	return p
}

// Expert implements models.Accelerator.
func (b *Backend) Expert(layer, expert int) kernels.Backend {
	if g := b.plan.mixture.group(layer, expert); !b.opt.Placement.experts() || g.Placement != experts.NPU {
		return nil
	}
	return expertLoader{b}
}

// group returns the group of an expert.
func (m *mixturePlan) group(layer, expert int) *experts.Group {
	groups := m.plan.Layers[layer].Groups
	for i := range groups {
		for _, e := range groups[i].Experts {
			if e == expert {
				return &groups[i]
			}
		}
	}
	panic(fmt.Sprintf("hexagon: expert %d of layer %d is in no group", expert, layer)) // Plan.Check has seen to it
}

// expertLoader loads matrices whatever the placement of the others is.
type expertLoader struct{ *Backend }

// Load implements kernels.Backend. A launch multiplies all rows of a matrix by one packet.
func (l expertLoader) Load(w *matrix.Matrix) (kernels.Linear, error) {
	if w.Rows > device.MaxDim {
		return nil, fmt.Errorf("%w: %d rows", matrix.ErrUnsupported, w.Rows)
	}
	return l.load(w)
}

// regions lays out what launches exchange with the device: of experts that it computes whole, and of matrices.
func (m *mixturePlan) regions(p *plan, opt *Options) {
	if !opt.Placement.experts() {
		return
	}
	parts := 2 // of the columns, each with results of 2 bytes by tiles; by lookups they have 4
	for _, l := range p.matrices {
		parts = max(parts, l.tile(1, 0).parts(l.K))
	}
	m.gated.reserve(&p.arena, m.plan)
	s, rows, results := &m.plan.Shape, 0, 0
	for i := m.dense; i < len(m.plan.Layers); i++ {
		for j := range m.plan.Layers[i].Groups {
			g := &m.plan.Layers[i].Groups[j]
			if g.Placement != experts.NPU || !slices.ContainsFunc(g.Experts, func(e int) bool { return m.gated.of[i][e] == nil }) {
				continue
			}
			k := roundUp(max(s.Hidden, s.Width), layout.TableCols)
			m := roundUp(max(2*s.Width, s.Hidden), layout.Strip)
			rows = max(rows, len(g.Experts)*rowBytes(g.Capacity, k))
			results = max(results, len(g.Experts)*outBytes(g.Capacity, m, parts))
		}
	}
	p.launch.x, p.launch.y = p.region(rows), p.region(results)
}
