package experts

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Options say what a plan is for.
type Options struct {
	Shape     Shape
	Device    Device
	Chunk     int    // B
	GroupSize int    // G
	Sizing    Sizing // of capacities
	// Ratio is in place of each layer's imbalance; 0: the calibration's.
	Ratio float64
	// ExpertBytes is what one expert of each layer takes on the device; 0: the device
	// does not hold it.
	ExpertBytes []int64 // [layers]
	// Reserved is what else of the model takes room on the device, in bytes.
	Reserved int64
}

// ErrOptions says that nothing can be planned as it was asked for.
var ErrOptions = errors.New("experts: bad options")

// Check reports what cannot be planned.
func (o *Options) Check() error {
	err := errors.Join(o.Shape.Check(), o.Device.Check(), o.Sizing.Check())
	switch {
	case err != nil:
	case o.Chunk < 1 || o.Chunk > MostChunk:
		err = fmt.Errorf("chunks of %d tokens are outside 1 to %d", o.Chunk, MostChunk)
	case o.GroupSize < 1 || o.GroupSize > o.Shape.Experts:
		err = fmt.Errorf("groups of %d experts are outside 1 to %d", o.GroupSize, o.Shape.Experts)
	case o.Ratio != 0 && !(o.Ratio >= 1 && o.Ratio <= float64(o.Shape.Experts)):
		err = fmt.Errorf("an imbalance of %v is outside 1 to %d", o.Ratio, o.Shape.Experts)
	case len(o.ExpertBytes) != o.Shape.Layers || slices.ContainsFunc(o.ExpertBytes, func(n int64) bool { return n < 0 || n > mostBytes }):
		err = fmt.Errorf("bytes of the experts of %d layers, want %d", len(o.ExpertBytes), o.Shape.Layers)
	case o.Reserved < 0 || o.Reserved > mostBytes:
		err = fmt.Errorf("%d bytes are reserved", o.Reserved)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return nil
}

// split is the set's tokens in chunks of that size.
func (s *Set) split(size int) (*Split, error) {
	i := slices.IndexFunc(s.Chunks, func(x Split) bool { return x.Size == size })
	if i < 0 {
		return nil, fmt.Errorf("%w: the calibration has no chunks of %d tokens (it has %v)", ErrOptions, size, s.Sizes())
	}
	return &s.Chunks[i], nil
}

// Sizes lists the sizes of the chunks that the set's tokens were counted in.
func (s *Set) Sizes() (list []int) {
	for i := range s.Chunks {
		list = append(list, s.Chunks[i].Size)
	}
	return list
}

// NewPlan plans as asked for, by the calibration's first set. Without a calibration all
// experts are equal, and all that the device has room for are placed there; Ratio then
// says how unequal they may be.
func NewPlan(c *Calibration, o Options) (*Plan, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	p := &Plan{Kind: PlanKind, Shape: o.Shape, Chunk: o.Chunk, GroupSize: o.GroupSize, Sizing: o.Sizing.String(), Device: o.Device}
	var set *Set
	var chunks *Split
	if c != nil {
		if err := c.Shape.Fits(o.Shape); err != nil {
			return nil, fmt.Errorf("%w: the calibration: %w", ErrOptions, err)
		}
		var err error
		set = &c.Sets[0]
		if chunks, err = set.split(o.Chunk); err != nil {
			return nil, err
		}
	}
	for i := range o.Shape.Layers {
		p.Layers = append(p.Layers, newLayer(&o, i, set, chunks))
	}
	p.place(&o, chunks != nil)
	p.Choice = p.sum(p.Layers, set, chunks)
	if c != nil {
		for i := range c.Sets[1:] {
			on, err := p.On(&c.Sets[1+i])
			if err != nil {
				return nil, err
			}
			p.Checks = append(p.Checks, on)
		}
	}
	return p, p.Check()
}

// On is what the plan does to another set of a calibration of the same model.
func (p *Plan) On(set *Set) (Checked, error) {
	chunks, err := set.split(p.Chunk)
	if err != nil {
		return Checked{}, err
	}
	layers := slices.Clone(p.Layers)
	for i := range layers {
		layers[i].Groups = slices.Clone(layers[i].Groups)
		for j := range layers[i].Groups {
			layers[i].Groups[j].expect(set, chunks, i)
		}
	}
	return Checked{Set: set.Name, Choice: p.sum(layers, set, chunks)}, nil
}

// newLayer groups the experts of layer i. chunks may be nil.
func newLayer(o *Options, i int, set *Set, chunks *Split) Layer {
	l := Layer{Imbalance: max(1, o.Ratio)}
	order, shares := make([]int, o.Shape.Experts), make([]float64, o.Shape.Experts)
	for e := range order {
		order[e] = e
		shares[e] = l.Imbalance * float64(o.Shape.Chosen) / float64(o.Shape.Experts) // the popular one's: which it is, nobody knows
	}
	if set != nil {
		order = set.Layers[i].Order
		for e, n := range set.Layers[i].Tokens {
			shares[e] = float64(n) / float64(set.Tokens)
		}
		if o.Ratio == 0 {
			l.Imbalance = set.Layers[i].Imbalance
		}
	}
	capacities := o.Sizing.layer(&l, o, order, shares)
	most := o.GroupSize
	if o.Device.GroupBytes > 0 && o.ExpertBytes[i] > 0 {
		most = max(1, min(most, int(o.Device.GroupBytes/o.ExpertBytes[i])))
	}
	for lo := 0; lo < len(order); {
		hi := lo + 1
		for hi < len(order) && hi-lo < most && capacities[hi] == capacities[lo] {
			hi++
		}
		g := Group{Experts: slices.Clone(order[lo:hi]), Capacity: capacities[lo], Bytes: int64(hi-lo) * o.ExpertBytes[i]}
		if chunks != nil {
			g.expect(set, chunks, i)
		}
		l.Groups = append(l.Groups, g)
		lo = hi
	}
	slices.SortFunc(l.Tiers, func(a, b int) int { return cmp.Compare(b, a) })
	l.Tiers = slices.DeleteFunc(l.Tiers, func(c int) bool { return !slices.Contains(capacities, c) })
	return l
}

// expect counts what the set's chunks did to a group of layer i. The last layer computes
// those rows of a prompt alone that want logits: one, which makes its groups cold.
func (g *Group) expect(set *Set, chunks *Split, i int) {
	rows, beyond := 0.0, 0.0
	for _, e := range g.Experts {
		if i == len(chunks.Layers)-1 {
			rows += float64(set.Layers[i].Tokens[e]) / float64(set.Tokens) * float64(set.Prompts)
			continue
		}
		rows += float64(chunks.Layers[i][e].Beyond(0))
		beyond += float64(chunks.Layers[i][e].Beyond(g.Capacity))
	}
	n := float64(chunks.Count)
	g.Expected = Expected{Rows: rows / n}
	if g.Placement != CPU { // which has neither
		g.Expected.Overflow, g.Expected.Padding = beyond/n, max(0, float64(g.Rows())-(rows-beyond)/n)
	}
}

// place chooses what computes each group (NPUMoE §4.3): the NPU where a launch takes less
// than the CPU would for the rows that are expected to fit. Where memory is short, those
// that gain most by byte have it.
func (p *Plan) place(o *Options, counted bool) {
	type candidate struct {
		*Group
		gain float64
	}
	var list []candidate
	costs, macs := &o.Device.Costs, o.Shape.rowMACs()
	for i := range p.Layers {
		for j := range p.Layers[i].Groups {
			g := &p.Layers[i].Groups[j]
			g.Placement = CPU
			fitting := g.Expected.Rows - g.Expected.Overflow
			launch, host := costs.launch(g.Bytes, g.Rows(), macs), costs.host(fitting, macs)
			switch {
			case g.Bytes == 0:
				g.Why = "the device does not hold its weights as they are stored"
			case o.Device.GroupBytes > 0 && g.Bytes > o.Device.GroupBytes:
				g.Why = fmt.Sprintf("an expert of %d bytes is larger than a graph may be", g.Bytes)
			case counted && host <= launch:
				g.Why = fmt.Sprintf("cold: a launch takes %.3g ms, the CPU %.3g for the %.1f rows expected", launch, host, fitting)
			case counted:
				g.Why = fmt.Sprintf("hot: a launch takes %.3g ms, the CPU %.3g for the %.1f rows expected", launch, host, fitting)
				list = append(list, candidate{g, (host - launch) / float64(g.Bytes)})
			default:
				g.Why = "not calibrated: there is room for it"
				list = append(list, candidate{g, 0})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.gain, a.gain) })
	for _, g := range list {
		if o.Device.Bytes > 0 && p.Bytes+g.Bytes > o.Device.Bytes-o.Reserved {
			g.Why += "; but others have the device's memory"
			continue
		}
		g.Placement = NPU
		p.Bytes += g.Bytes
	}
	for i := range p.Layers {
		for j := range p.Layers[i].Groups {
			if g := &p.Layers[i].Groups[j]; g.Placement == CPU {
				g.Expected.Padding, g.Expected.Overflow = 0, 0
			}
		}
	}
}

// sum is what layers, with what is expected of them, do to the chunks of a set.
func (p *Plan) sum(layers []Layer, set *Set, chunks *Split) Choice {
	c := Choice{Chunk: p.Chunk, GroupSize: p.GroupSize, Sizing: p.Sizing, Bytes: p.Bytes}
	costs, macs := &p.Device.Costs, p.Shape.rowMACs()
	var all, computed, padding, overflow, host, launches, cost float64
	for i := range layers {
		for j := range layers[i].Groups {
			g := &layers[i].Groups[j]
			all += g.Expected.Rows
			if g.Placement == CPU {
				host += g.Expected.Rows
				continue
			}
			launches++
			computed += float64(g.Rows())
			padding += g.Expected.Padding
			overflow += g.Expected.Overflow
			cost += costs.launch(g.Bytes, g.Rows(), macs)
		}
	}
	tokens := float64(p.Chunk)
	if set != nil {
		tokens = float64(set.Tokens) / float64(chunks.Count)
		cost += costs.host(host+overflow, macs)
		c.Overflow, c.Host = overflow/all, host/all
		if computed > 0 {
			c.Padding = padding / computed
		}
	}
	c.Launches, c.Cost = launches/tokens, cost/tokens
	return c
}
