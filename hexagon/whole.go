package hexagon

import (
	"math"
	"slices"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// whole is a model's layers as the device computes them whole: activations stay in its
// memory, and a step is recorded as one run of packets.
type whole struct {
	m         *models.DenseLayers
	layers    []*layer   // nil: the host computes it
	head      *stack     // by lookups; nil: by tiles alone
	tiled     *tiledHead // nil: the host computes it
	headNorm  streamNorm
	cap       float32   // of the scores of all layers
	keyMask   keyMask   // of all layers with windows
	rows      int       // at once, by lookups
	tiledRows int       // at once, by tiles, or of an encoder; 0: no matrix goes so
	mostMasks int       // tiles of them
	rotations [2][2]int // by each rope: numbers of a head, and how far apart they rotate
	vectors   vectors
	at        places
	tails     tails // of short convolutions and delta nets
	step      recording
	xs        []float32 // of the step, until all of its rows have been computed
}

// layer is a models.DenseLayer whose matrices the device has.
type layer struct {
	*models.DenseLayer
	norm, ffnNorm, sumNorm, ffnSumNorm                            streamNorm
	qNorm, kNorm, attendedNorm, oPostNorm, downNorm, downPostNorm uint32    // 0: none
	sinks                                                         uint32    // see sinkStates; 0: none
	taps                                                          uint32    // weights of a convolution; 0: none
	tail                                                          int       // its number among these
	delta                                                         *deltaNet // nil: none
	gates                                                         *stack    // of a delta net, where they go by another path than qkv; nil: behind it
	qkv, o, gateUp, down                                          *stack    // of mixtures the first two
	stacks                                                        []*stack  // those that it has
}

// streamNorm is a norm of the residual stream.
type streamNorm struct{ weight, bias uint32 } // 0: none

// places is where what a step has lies. Rows are as wide as the widest layer wants them.
type places struct {
	x, h, y, att, gateUp, logits span
	qkv                          region // of layers after one another
	qkvStride                    uint32
	rowBuffers
	angles                 [2]uint32
	states, masks          uint32 // as the host writes them, mostStates, and mostMasks of the model
	working                [2]uint32
	sums, saturated, zeros uint32
	probed                 [2]uint32 // a product's row and what was made of it
}

// mostStates is how many tiles of queries, with some keys each, a step may have.
const mostStates = 1 << 10

// Layers implements models.Accelerator: it takes layers all of whose matrices the device has.
// Products with the CPU's bits have the host between them.
func (b *Backend) Layers(m *models.DenseLayers) bool {
	if b.dev != nil || b.opt.Path == PathInt8 || m.Hidden%layout.Tile+m.HeadDim%layout.Tile != 0 {
		return false
	}
	d, found := &whole{m: m, rows: lookupRows}, false
	for _, y := range m.Layers {
		l := b.denseLayer(d, y)
		d.layers = append(d.layers, l)
		found = found || l != nil
	}
	if !found {
		return false
	}
	d.head = b.stack(&d.vectors, m.Hidden, m.Head)
	if d.tiled = b.tiledHead(d, m.Head); d.tiled != nil {
		d.headNorm = d.norm(b, &m.HeadNorm)
	}
	b.whole = d
	b.whole.reserve(b)
	return true
}

// denseLayer takes a layer, or returns nil.
func (b *Backend) denseLayer(d *whole, y *models.DenseLayer) *layer {
	m := d.m
	if y == nil || y.Width%layout.Tile != 0 || y.Mixture && m.Parallel {
		return nil
	}
	sees := keyMask{y.Window, y.Both}
	if y.Window > 0 && d.keyMask.window > 0 && d.keyMask != sees { // a step has masks of one window
		return nil
	}
	if _, ok := units[y.Unit]; !ok && !y.Mixture || !sinksFit(y.Sinks) || y.Conv == nil && y.Delta == nil && d.cap != 0 && d.cap != y.Cap || m.Parallel && y.Norm.Weight == nil {
		return nil
	}
	if r, apart := y.Rotated, y.RotationOfDistance; r%layout.Tile != 0 || apart >= layout.Tile && apart%layout.Tile != 0 || apart < layout.Tile && apart&(apart-1) != 0 {
		return nil
	}
	rotation := [2]int{y.Rotated, y.RotationOfDistance}
	if y.Rotated > 0 && d.rotations[y.Rope] != rotation && d.rotations[y.Rope] != [2]int{} {
		return nil // a step has angles in one order
	}
	q, read := m.Heads*m.HeadDim, m.Heads*m.HeadDim
	in := y.QKV
	switch {
	case y.Conv != nil:
		read = m.Hidden
	case y.Delta != nil:
		if read = y.Delta.Values(); alike(slices.Concat(in, y.Delta.Gates)) {
			in = slices.Concat(in, y.Delta.Gates)
		}
	}
	l := &layer{DenseLayer: y, qkv: b.stack(&d.vectors, m.Hidden, in...), o: b.stack(&d.vectors, read, y.O)}
	if !y.Mixture {
		l.gateUp, l.down = b.stack(&d.vectors, m.Hidden, y.GateUp...), b.stack(&d.vectors, y.Width, y.Down)
	}
	if l.qkv == nil || l.o == nil || !y.Mixture && (l.gateUp == nil || l.down == nil) || y.Ungated && y.Unit != models.UnitErfGELU || y.Conv != nil && !d.conv(b, l) || y.Delta != nil && !d.deltaNet(b, l) || l.attends() && !l.split(m) {
		return nil
	}
	l.stacks = slices.DeleteFunc([]*stack{l.qkv, l.gates, l.o, l.gateUp, l.down}, func(s *stack) bool { return s == nil })
	if y.Rotated > 0 {
		d.rotations[y.Rope] = rotation
	}
	if y.Window > 0 {
		d.keyMask = sees
	}
	l.qkv.biases(b, d, y.Q.Bias, y.K.Bias, y.VBias)
	l.o.biases(b, d, y.OBias)
	if !y.Mixture {
		l.gateUp.addBias(&d.vectors, b, y.GateUpBias)
		l.down.biases(b, d, y.DownBias)
	}
	if l.attends() {
		d.cap = y.Cap
	}
	l.norm, l.ffnNorm, l.sumNorm, l.ffnSumNorm = d.norm(b, &y.Norm), d.norm(b, &y.FFNNorm), d.norm(b, &y.SumNorm), d.norm(b, &y.FFNSumNorm)
	states := sinkStates(y.Sinks, m.KVHeads)
	l.sinks = d.vectors.add(b, states, len(states))
	for _, v := range []struct {
		at   *uint32
		x    []float32
		size int
	}{
		{&l.qNorm, y.Q.Norm, len(y.Q.Norm)}, {&l.kNorm, y.K.Norm, len(y.K.Norm)},
		{&l.attendedNorm, y.AttendedNorm, q}, {&l.oPostNorm, y.OPostNorm, m.Hidden}, {&l.downNorm, y.DownNorm, y.Width}, {&l.downPostNorm, y.DownPostNorm, m.Hidden},
	} {
		*v.at = d.vectors.add(b, v.x, v.size)
	}
	return l
}

// attends tells whether the layer has attention.
func (l *layer) attends() bool { return l.Conv == nil && l.Delta == nil }

// split tells whether the device finds queries, keys, values and gates of attention in the products' outputs.
func (l *layer) split(m *models.DenseLayers) bool {
	switch n := len(l.qkv.parts); {
	case n == 1:
		return true
	case !l.Gated:
		return n == 3
	default: // of heads that have no padding between them, and no biases
		return n == 2*m.Heads+2 && m.HeadDim%layout.Strip == 0 && l.Q.Bias == nil && l.K.Bias == nil && l.VBias == nil
	}
}

// columns returns where the outputs of keys, values and gates begin.
func (l *layer) columns(m *models.DenseLayers) (keys, values, gates int) {
	q, kv, s := m.Heads*m.HeadDim, m.KVHeads*m.HeadDim, l.qkv
	switch {
	case len(s.parts) == 1:
		return q, q + kv, q + 2*kv
	case l.Gated:
		return s.col[m.Heads], s.col[m.Heads+1], s.col[m.Heads+2]
	}
	return s.col[1], s.col[2], 0
}

// biases gives the outputs theirs, some of which may be nil: one each, or all of one product.
func (s *stack) biases(b *Backend, d *whole, of ...[]float32) {
	any := false
	for _, x := range of {
		any = any || x != nil
	}
	if !any {
		return
	}
	if len(s.parts) == len(of) {
		for i, x := range of {
			s.bias[i] = d.vectors.add(b, x, s.parts[i].M)
		}
		return
	}
	m := d.m
	all, kv := make([]float32, s.parts[0].M), m.KVHeads*m.HeadDim
	copy(all, of[0])
	copy(all[m.Heads*m.HeadDim:], of[1])
	copy(all[m.Heads*m.HeadDim+kv:], of[2])
	s.bias[0] = d.vectors.add(b, all, len(all))
}

// norm takes a norm of the residual stream.
func (d *whole) norm(b *Backend, n *models.DenseNorm) streamNorm {
	return streamNorm{d.vectors.add(b, n.Weight, d.m.Hidden), d.vectors.add(b, n.Bias, d.m.Hidden)}
}

// place puts the vectors there.
func (d *whole) place(mem []byte) {
	d.vectors.place(mem)
	if t := d.tiled; t != nil {
		clear(mem[t.x:][:2*layout.Tile*t.K])
	}
}

// reserve makes room for steps.
func (d *whole) reserve(b *Backend) {
	m, at := d.m, &d.at
	qkv, gateUp, outs, k, ins, rotated, tiled, attended := 0, 0, m.Hidden, 0, 0, layout.Tile, false, m.Heads*m.HeadDim
	each := func(s *stack) {
		if s == nil {
			return
		}
		for _, l := range s.parts {
			k, outs = max(k, l.K), max(outs, l.M)
			ins = max(ins, l.Cols)
			if l.lookups > 0 {
				d.rows = min(d.rows, l.tableRows())
			}
		}
	}
	each(d.head)
	for _, l := range d.layers {
		if l != nil {
			width := l.qkv.width
			if l.gates != nil {
				width += l.gates.width
			}
			qkv, rotated = max(qkv, width), max(rotated, l.Rotated)
			if l.gateUp != nil {
				gateUp = max(gateUp, l.gateUp.width)
			}
			for _, s := range l.stacks {
				each(s)
				tiled = tiled || s.most < math.MaxInt
			}
		}
	}
	if slices.ContainsFunc(d.layers, func(l *layer) bool { return l != nil && (l.Gated || l.Delta != nil) }) {
		attended = qkv // of OpGLU gates have the stride of what they multiply
	}
	logits := 0
	if d.tiled != nil {
		logits = d.tiled.M
	}
	d.rows = max(1, min(d.rows, resultBytes/(4*max(outs, logits))))
	switch {
	case m.Bidirectional:
		d.tiledRows = encoderRows
	case tiled:
		d.tiledRows = tileRows
	}
	most := max(d.rows, d.tiledRows)
	rows := func(width int) span { return span{b.reserve(4 * width * most), uint32(4 * width)} }
	at.x, at.h, at.y, at.att, at.gateUp = rows(m.Hidden), rows(m.Hidden), rows(roundUp(m.Hidden, layout.Strip)), rows(attended), rows(gateUp)
	if d.tiled != nil {
		at.logits = span{b.reserve(4 * logits * d.rows), uint32(4 * logits)}
		d.tiled.reserve(b, d.rows)
	}
	layer := 4 * qkv * d.tiledRows
	if at.qkvStride = uint32(4 * qkv); m.Bidirectional {
		at.qkv = b.region(layer)
	} else {
		at.qkv = b.region(max(4*qkv*d.rows*len(d.layers), layer, min(layer*len(d.layers), tiledKeyBytes)))
	}
	at.rowBuffers = b.rowBuffers(k, outs, d.rows, min(d.tiledRows, tileRows))
	for i := range at.angles {
		at.angles[i] = b.reserve(8 * rotated * most)
	}
	d.tails.reserve(b, most)
	const states = layout.Tile * device.StateBytes
	at.states, at.working = b.reserve(mostStates*states), [2]uint32{b.reserve(states), b.reserve(states)}
	if d.keyMask.window > 0 {
		d.mostMasks = mostMasks * max(tileRows, d.tiledRows)
		at.masks = b.reserve(d.mostMasks * layout.TileBytes)
	}
	at.sums, at.saturated, at.zeros = b.reserve(4*layout.Tile), b.reserve(4*layout.Tile), b.reserve(roundUp(m.HeadDim, layout.Tile)/layout.Tile*layout.TileBytes)
	at.probed = [2]uint32{b.reserve(4 * ins), b.reserve(4 * outs)}
}

// tiledKeyBytes bounds what rows by tiles have of queries, keys and values on the device: what the
// layers make beyond it is read in a run of its own.
const tiledKeyBytes = 64 << 20

// reach returns the layer behind the last that is computed: the host computes the next, or the mixture of the last.
func (d *whole) reach(b *Backend, s *models.DenseStep) int {
	if d == nil || s.Model != d.m || s.Cache.Type() == kv.Int8 || !b.keys.use(s.Cache) {
		return s.First
	}
	for lo := 0; lo < len(s.Rows); lo += max(1, s.Rows[lo].All) {
		if all := s.Rows[lo].All; all > 0 && (all > encoderRows || s.Rows[lo].Pos > 0 || lo+all > len(s.Rows)) {
			return s.First
		}
	}
	for i := s.First; i < len(d.layers); i++ {
		if l := d.layers[i]; l == nil {
			return i
		} else if l.Mixture {
			return i + 1
		}
	}
	return len(d.layers)
}

// encoderRows is the longest sequence whose tokens attend to later ones that is recorded: all its rows
// are, at once.
const encoderRows = device.MaxRows

// alike tells whether rows go by one path with all matrices.
func alike(of []kernels.Linear) bool {
	first, ok := of[0].(*linear)
	return ok && !slices.ContainsFunc(of, func(x kernels.Linear) bool {
		l, ok := x.(*linear)
		return !ok || l.lookups != first.lookups
	})
}

// atOnce returns how many rows of a step of n are recorded at once: those of a product by lookups
// have tables in TCM, and those of an encoder's sequence are together.
func (d *whole) atOnce(n, first, end int) int {
	if d.m.Bidirectional {
		return d.tiledRows
	}
	for _, l := range d.layers[first:end] {
		for _, s := range l.stacks {
			if n <= s.most {
				return d.rows
			}
		}
	}
	return max(d.rows, d.tiledRows)
}

// RunLayers implements models.Accelerator.
func (b *Backend) RunLayers(s *models.DenseStep) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.whole
	end := d.reach(b, s)
	within := end > s.First && d.layers[end-1].Mixture
	head := d != nil && end == len(d.layers) && !within && d.tiled != nil
	if end == s.First && !head || b.dev == nil || !b.att.plan(&models.Attention{Rows: s.Rows, Cache: s.Cache, Heads: d.m.Heads, Cap: d.cap}) {
		return s.First
	}
	if s.Experts != nil && !d.joins(b, s, end) {
		return s.First
	}
	d.tails.begin(b.mem, s)
	if !d.record(b, s, end, head) || s.Experts != nil && b.probeGated(s.Experts, b.mix.gated.list) != nil {
		d.tails.forget()
		return s.First
	}
	d.tails.commit(b, s, d.layers[s.First:end])
	if head {
		return end + 1
	}
	copy(s.X, d.xs)
	if s.Within = within; within {
		end--
	}
	return end
}

// record has layers [s.First, end) of all rows computed, and the head. It returns false where that failed.
func (d *whole) record(b *Backend, s *models.DenseStep, end int, head bool) bool {
	out, most := 0, d.atOnce(len(s.Rows), s.First, end)
	d.xs = slices.Grow(d.xs[:0], len(s.X))[:len(s.X)]
	recurs := slices.ContainsFunc(d.layers[s.First:end], func(l *layer) bool { return !l.attends() })
	for lo, hi := 0, 0; lo < len(s.Rows); lo = hi {
		r := &d.step
		parts := r.parts[:0]
		if hi = min(len(s.Rows), lo+most); recurs {
			parts, hi = d.tails.cut(parts, s, lo, hi)
			d.tails.hold(s, parts)
		}
		if all := s.Rows[lo].All; all > 0 { // whole sequences
			for hi = lo + all; hi < len(s.Rows) && hi+s.Rows[hi].All <= lo+most; hi += s.Rows[hi].All {
			}
		}
		if !r.begin(b, s, lo, hi, end, out, head, parts) {
			return false
		}
		if s.Experts != nil {
			r.addExperts(s.Experts)
		}
		for i := s.First; i < end; i++ {
			if !r.layer(i) {
				return false
			}
		}
		if !r.end() {
			return false
		}
		out += len(r.wanted)
	}
	return true
}
