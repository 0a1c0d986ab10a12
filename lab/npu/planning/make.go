package planning

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/lab/npu/calibration"
)

// Options say what a plan is for.
type Options struct {
	Shape     experts.Shape
	Device    experts.Device
	Chunk     int    // B
	GroupSize int    // G
	Sizing    Sizing // of capacities
	// Ratio is in place of each layer's imbalance; 0: the calibration's.
	Ratio float64
	// ExpertBytes is the size of one expert of each layer on the device; 0: the device does not hold it.
	ExpertBytes []int64 // [layers]
	// Reserved is the room for the rest of the model on the device, in bytes.
	Reserved int64
}

// Check reports what cannot be planned.
func (o *Options) Check() error {
	err := errors.Join(o.Shape.Check(), o.Device.Check(), o.Sizing.Check())
	switch {
	case err != nil:
	case o.Chunk < 1 || o.Chunk > experts.MostChunk:
		err = fmt.Errorf("chunks of %d tokens are outside 1 to %d", o.Chunk, experts.MostChunk)
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
		return fmt.Errorf("%w: %w", experts.ErrOptions, err)
	}
	return nil
}

// mostBytes bounds what weights take.
const mostBytes = 1 << 50

// split returns the tokens of set s in chunks of that size.
func split(s *calibration.Set, size int) (*calibration.Split, error) {
	i := slices.IndexFunc(s.Chunks, func(x calibration.Split) bool { return x.Size == size })
	if i < 0 {
		return nil, fmt.Errorf("%w: the calibration has no chunks of %d tokens (it has %v)", experts.ErrOptions, size, s.Sizes())
	}
	return &s.Chunks[i], nil
}

// New plans as asked for, by the calibration's first set. Without a calibration all
// experts are equal, and all that the device has room for are placed there; Ratio then
// says how unequal they may be.
func New(c *calibration.Calibration, o Options) (*experts.Plan, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	p := &experts.Plan{Kind: experts.PlanKind, Shape: o.Shape, Chunk: o.Chunk, GroupSize: o.GroupSize, Sizing: o.Sizing.String(), Device: o.Device}
	var set *calibration.Set
	var chunks *calibration.Split
	if c != nil {
		if err := c.Shape.Fits(o.Shape); err != nil {
			return nil, fmt.Errorf("%w: the calibration: %w", experts.ErrOptions, err)
		}
		var err error
		set = &c.Sets[0]
		if chunks, err = split(set, o.Chunk); err != nil {
			return nil, err
		}
	}
	for i := range o.Shape.Layers {
		p.Layers = append(p.Layers, newLayer(&o, i, set, chunks))
	}
	place(p, &o, chunks != nil)
	p.Choice = sum(p, p.Layers, set, chunks)
	if c != nil {
		for i := range c.Sets[1:] {
			on, err := On(p, &c.Sets[1+i])
			if err != nil {
				return nil, err
			}
			p.Checks = append(p.Checks, on)
		}
	}
	return p, p.Check()
}

// On counts what plan p does to another set of a calibration of the same model.
func On(p *experts.Plan, set *calibration.Set) (experts.Checked, error) {
	chunks, err := split(set, p.Chunk)
	if err != nil {
		return experts.Checked{}, err
	}
	layers := slices.Clone(p.Layers)
	for i := range layers {
		layers[i].Groups = slices.Clone(layers[i].Groups)
		for j := range layers[i].Groups {
			expect(&layers[i].Groups[j], set, chunks, i)
		}
	}
	return experts.Checked{Set: set.Name, Choice: sum(p, layers, set, chunks)}, nil
}

// newLayer groups the experts of layer i. chunks may be nil.
func newLayer(o *Options, i int, set *calibration.Set, chunks *calibration.Split) experts.Layer {
	l := experts.Layer{Imbalance: max(1, o.Ratio)}
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
		g := experts.Group{Experts: slices.Clone(order[lo:hi]), Capacity: capacities[lo], Bytes: int64(hi-lo) * o.ExpertBytes[i]}
		if chunks != nil {
			expect(&g, set, chunks, i)
		}
		l.Groups = append(l.Groups, g)
		lo = hi
	}
	slices.SortFunc(l.Tiers, func(a, b int) int { return cmp.Compare(b, a) })
	l.Tiers = slices.DeleteFunc(l.Tiers, func(c int) bool { return !slices.Contains(capacities, c) })
	return l
}

// expect counts what the chunks of set did to group g of layer i. The last layer computes
// those rows of a prompt alone that want logits: one, which makes its groups cold.
func expect(g *experts.Group, set *calibration.Set, chunks *calibration.Split, i int) {
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
	g.Expected = experts.Expected{Rows: rows / n}
	if g.Placement != experts.CPU { // which has neither
		g.Expected.Overflow, g.Expected.Padding = beyond/n, max(0, float64(g.Rows())-(rows-beyond)/n)
	}
}

// place chooses what computes each group (NPUMoE §4.3): the NPU where a launch takes less
// than the CPU would for the rows that are expected to fit. Where memory is short, those
// that gain most by byte have it.
func place(p *experts.Plan, o *Options, counted bool) {
	type candidate struct {
		*experts.Group
		gain float64
	}
	var list []candidate
	costs, macs := &o.Device.Costs, rowMACs(o.Shape)
	for i := range p.Layers {
		for j := range p.Layers[i].Groups {
			g := &p.Layers[i].Groups[j]
			g.Placement = experts.CPU
			fitting := g.Expected.Rows - g.Expected.Overflow
			launch, host := launchTime(costs, g.Bytes, g.Rows(), macs), hostTime(costs, touched(g), fitting, macs)
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
		g.Placement = experts.NPU
		p.Bytes += g.Bytes
	}
	for i := range p.Layers {
		for j := range p.Layers[i].Groups {
			if g := &p.Layers[i].Groups[j]; g.Placement == experts.CPU {
				g.Expected.Padding, g.Expected.Overflow = 0, 0
			}
		}
	}
}

// sum adds up what layers of p, with what is expected of them, do to the chunks of a set.
func sum(p *experts.Plan, layers []experts.Layer, set *calibration.Set, chunks *calibration.Split) experts.Choice {
	c := experts.Choice{Chunk: p.Chunk, GroupSize: p.GroupSize, Sizing: p.Sizing, Bytes: p.Bytes}
	costs, macs := &p.Device.Costs, rowMACs(p.Shape)
	var all, computed, padding, overflow, host, launches, cost float64
	read := 0.0 // bytes, by the CPU; of what overflows none
	for i := range layers {
		for j := range layers[i].Groups {
			g := &layers[i].Groups[j]
			all += g.Expected.Rows
			if g.Placement == experts.CPU {
				host += g.Expected.Rows
				read += touched(g)
				continue
			}
			launches++
			computed += float64(g.Rows())
			padding += g.Expected.Padding
			overflow += g.Expected.Overflow
			cost += launchTime(costs, g.Bytes, g.Rows(), macs)
		}
	}
	tokens := float64(p.Chunk)
	if set != nil {
		tokens = float64(set.Tokens) / float64(chunks.Count)
		cost += hostTime(costs, read, host+overflow, macs)
		c.Overflow, c.Host = overflow/all, host/all
		if computed > 0 {
			c.Padding = padding / computed
		}
	}
	c.Launches, c.Cost = launches/tokens, cost/tokens
	return c
}
