package hexagon

import (
	"math"
	"slices"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/models"
)

// layerPlan is a model's layers as the device computes them whole: activations stay in its
// memory, and a step is one run of packets.
type layerPlan struct {
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
	tails     tailShape // of short convolutions and delta nets
}

// layer is a models.DenseLayer whose matrices the device has.
type layer struct {
	*models.DenseLayer
	norms
	sinks                uint32    // see sinkStates; 0: none
	taps                 uint32    // weights of a convolution; 0: none
	tail                 int       // its number among these
	delta                *deltaNet // nil: none
	gates                *stack    // of a delta net, where they go by another path than qkv; nil: behind it
	qkv, o, gateUp, down *stack    // of mixtures the first two
	stacks               []*stack  // those that it has
}

// norms are the weights of a layer's norms.
type norms struct {
	norm, ffnNorm, sumNorm, ffnSumNorm                            streamNorm
	qNorm, kNorm, attendedNorm, oPostNorm, downNorm, downPostNorm uint32 // 0: none
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

// mostStates is the largest number of tiles of queries, with some keys each, in a step.
const mostStates = 1 << 10

// Layers implements models.Accelerator: it takes layers all of whose matrices the device has.
// Products with the CPU's bits have the host between them.
func (b *Backend) Layers(m *models.DenseLayers) bool {
	p := b.plan
	for _, r := range modelRules {
		if r.refuses(b, m) {
			p.refuse("layers", -1, r.why)
			return false
		}
	}
	d, found := &layerPlan{m: m, rows: lookupRows}, false
	for i, y := range m.Layers {
		l, why := d.planLayer(&p.arena, y)
		if why != "" {
			p.refuse("layer", i, why)
		}
		d.layers = append(d.layers, l)
		found = found || l != nil
	}
	if !found {
		return false
	}
	d.head = newStack(&p.arena, &d.vectors, m.Hidden, m.Head)
	if d.tiled = newTiledHead(&p.arena, d, m.Head); d.tiled != nil {
		d.headNorm = d.norm(&p.arena, &m.HeadNorm)
	} else if m.Head != nil {
		p.refuse("head", -1, "the device does not hold its matrix, or it has no norm before it")
	}
	p.layers = d
	d.reserve(&p.arena)
	return true
}

// modelRules refuse the layers of a whole model.
var modelRules = []struct {
	why     string
	refuses func(b *Backend, m *models.DenseLayers) bool
}{
	{"the device runs already", func(b *Backend, _ *models.DenseLayers) bool { return b.session.dev != nil }},
	{"products of the path int8 have the CPU's bits, so the CPU computes what is between them", func(b *Backend, _ *models.DenseLayers) bool { return b.opt.Path == PathInt8 }},
	{"rows or heads are not whole tiles of 32 numbers", func(_ *Backend, m *models.DenseLayers) bool { return m.Hidden%layout.Tile+m.HeadDim%layout.Tile != 0 }},
}

// layerRule is a reason to leave a layer to the host.
type layerRule struct {
	why     string
	refuses func(d *layerPlan, l *layer) bool
}

// layerRules look at a layer before its matrices are stacked.
var layerRules = []layerRule{
	{"only the CPU knows how to compute its parts", func(_ *layerPlan, l *layer) bool { return l.DenseLayer == nil }},
	{"the feed-forward's width is not whole tiles of 32 numbers", func(_ *layerPlan, l *layer) bool { return l.Width%layout.Tile != 0 }},
	{"its experts read the same rows as its attention, which the device cannot do", func(d *layerPlan, l *layer) bool { return l.Mixture && d.m.Parallel }},
	{"its window differs from the one of the layers before it: a step has masks of one window", func(d *layerPlan, l *layer) bool {
		return l.Window > 0 && d.keyMask.window > 0 && d.keyMask != keyMask{l.Window, l.Both}
	}},
	{"the device does not know the feed-forward's unit", func(_ *layerPlan, l *layer) bool {
		_, ok := units[l.Unit]
		return !ok && !l.Mixture
	}},
	{"a sink of attention is too large for fp16", func(_ *layerPlan, l *layer) bool { return !sinksFit(l.Sinks) }},
	{"its soft cap differs from the one of the layers before it: a step has one table of caps", func(d *layerPlan, l *layer) bool {
		return l.attends() && d.cap != 0 && d.cap != l.Cap
	}},
	{"attention and feed-forward read the same rows, without a norm before them", func(d *layerPlan, l *layer) bool { return d.m.Parallel && l.Norm.Weight == nil }},
	{"numbers that rotate are not whole tiles of 32, or are a distance apart that vectors do not have", func(_ *layerPlan, l *layer) bool {
		apart := l.RotationOfDistance
		return l.Rotated%layout.Tile != 0 || apart >= layout.Tile && apart%layout.Tile != 0 || apart < layout.Tile && apart&(apart-1) != 0
	}},
	{"its rotation differs from the one of the layers before it: a step has angles in one order", func(d *layerPlan, l *layer) bool {
		return l.Rotated > 0 && d.rotations[l.Rope] != l.rotation() && d.rotations[l.Rope] != [2]int{}
	}},
}

// stackRules look at a layer whose matrices are stacked.
var stackRules = []layerRule{
	{"the device does not hold the matrices before attention", func(_ *layerPlan, l *layer) bool { return l.qkv == nil }},
	{"the device does not hold the matrix after attention", func(_ *layerPlan, l *layer) bool { return l.o == nil }},
	{"the device does not hold the feed-forward's matrices", func(_ *layerPlan, l *layer) bool {
		return !l.Mixture && (l.gateUp == nil || l.down == nil)
	}},
	{"the feed-forward has no gate, and its unit is not GELU in the exact form", func(_ *layerPlan, l *layer) bool {
		return l.Ungated && l.Unit != models.UnitErfGELU
	}},
}

// attentionRules look at it last.
var attentionRules = []layerRule{
	{"its queries, keys, values and gates are products that vectors cannot take apart", func(d *layerPlan, l *layer) bool { return l.attends() && !l.split(d.m) }},
}

// refusedBy returns the reason of the first of the rules that refuses the layer, "" if none does.
func (d *layerPlan) refusedBy(rules []layerRule, l *layer) string {
	for _, r := range rules {
		if r.refuses(d, l) {
			return r.why
		}
	}
	return ""
}

// planLayer takes a layer, or returns nil and the reason.
func (d *layerPlan) planLayer(a *arena, y *models.DenseLayer) (*layer, string) {
	l := &layer{DenseLayer: y}
	if why := d.refusedBy(layerRules, l); why != "" {
		return nil, why
	}
	d.stackMatrices(a, l)
	if why := d.refusedBy(stackRules, l); why != "" {
		return nil, why
	}
	switch {
	case y.Conv != nil:
		if why := d.conv(a, l); why != "" {
			return nil, why
		}
	case y.Delta != nil:
		if why := d.deltaNet(a, l); why != "" {
			return nil, why
		}
	}
	if why := d.refusedBy(attentionRules, l); why != "" {
		return nil, why
	}
	l.stacks = slices.DeleteFunc([]*stack{l.qkv, l.gates, l.o, l.gateUp, l.down}, func(s *stack) bool { return s == nil })
	d.share(l)
	d.addVectors(a, l)
	return l, ""
}

// stackMatrices stacks the matrices that read the same rows. Those that the device lacks stay nil.
func (d *layerPlan) stackMatrices(a *arena, l *layer) {
	m, read, in := d.m, d.m.Heads*d.m.HeadDim, l.QKV
	switch {
	case l.Conv != nil:
		read = m.Hidden
	case l.Delta != nil:
		if read = l.Delta.Values(); alike(slices.Concat(in, l.Delta.Gates)) {
			in = slices.Concat(in, l.Delta.Gates)
		}
	}
	l.qkv, l.o = newStack(a, &d.vectors, m.Hidden, in...), newStack(a, &d.vectors, read, l.O)
	if !l.Mixture {
		l.gateUp, l.down = newStack(a, &d.vectors, m.Hidden, l.GateUp...), newStack(a, &d.vectors, l.Width, l.Down)
	}
}

// share gives the layer's rotation, window and soft cap to the layers after it.
func (d *layerPlan) share(l *layer) {
	if l.Rotated > 0 {
		d.rotations[l.Rope] = l.rotation()
	}
	if l.Window > 0 {
		d.keyMask = keyMask{l.Window, l.Both}
	}
	if l.attends() {
		d.cap = l.Cap
	}
}

// addVectors has the device get the layer's biases, norms and sinks.
func (d *layerPlan) addVectors(a *arena, l *layer) {
	m, y := d.m, l.DenseLayer
	l.qkv.biases(a, d, y.Q.Bias, y.K.Bias, y.VBias)
	l.o.biases(a, d, y.OBias)
	if !y.Mixture {
		l.gateUp.addBias(&d.vectors, a, y.GateUpBias)
		l.down.biases(a, d, y.DownBias)
	}
	l.norm, l.ffnNorm, l.sumNorm, l.ffnSumNorm = d.norm(a, &y.Norm), d.norm(a, &y.FFNNorm), d.norm(a, &y.SumNorm), d.norm(a, &y.FFNSumNorm)
	states := sinkStates(y.Sinks, m.KVHeads)
	l.sinks = d.vectors.add(a, states, len(states))
	for _, v := range []struct {
		at   *uint32
		x    []float32
		size int
	}{
		{&l.qNorm, y.Q.Norm, len(y.Q.Norm)}, {&l.kNorm, y.K.Norm, len(y.K.Norm)},
		{&l.attendedNorm, y.AttendedNorm, m.Heads * m.HeadDim}, {&l.oPostNorm, y.OPostNorm, m.Hidden}, {&l.downNorm, y.DownNorm, y.Width}, {&l.downPostNorm, y.DownPostNorm, m.Hidden},
	} {
		*v.at = d.vectors.add(a, v.x, v.size)
	}
}

// rotation returns how many numbers of a head rotate, and how far apart.
func (l *layer) rotation() [2]int { return [2]int{l.Rotated, l.RotationOfDistance} }

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
func (s *stack) biases(a *arena, d *layerPlan, of ...[]float32) {
	any := false
	for _, x := range of {
		any = any || x != nil
	}
	if !any {
		return
	}
	if len(s.parts) == len(of) {
		for i, x := range of {
			s.bias[i] = d.vectors.add(a, x, s.parts[i].M)
		}
		return
	}
	m := d.m
	all, kv := make([]float32, s.parts[0].M), m.KVHeads*m.HeadDim
	copy(all, of[0])
	copy(all[m.Heads*m.HeadDim:], of[1])
	copy(all[m.Heads*m.HeadDim+kv:], of[2])
	s.bias[0] = d.vectors.add(a, all, len(all))
}

// norm takes a norm of the residual stream.
func (d *layerPlan) norm(a *arena, n *models.DenseNorm) streamNorm {
	return streamNorm{d.vectors.add(a, n.Weight, d.m.Hidden), d.vectors.add(a, n.Bias, d.m.Hidden)}
}

// place puts the vectors there.
func (d *layerPlan) place(mem []byte) {
	d.vectors.place(mem)
	if t := d.tiled; t != nil {
		clear(mem[t.x:][:2*layout.Tile*t.K])
	}
}

// reserve makes room for steps.
func (d *layerPlan) reserve(a *arena) {
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
	rows := func(width int) span { return span{a.reserve(4 * width * most), uint32(4 * width)} }
	at.x, at.h, at.y, at.att, at.gateUp = rows(m.Hidden), rows(m.Hidden), rows(roundUp(m.Hidden, layout.Strip)), rows(attended), rows(gateUp)
	if d.tiled != nil {
		at.logits = span{a.reserve(4 * logits * d.rows), uint32(4 * logits)}
		d.tiled.reserve(a, d.rows)
	}
	layer := 4 * qkv * d.tiledRows
	if at.qkvStride = uint32(4 * qkv); m.Bidirectional {
		at.qkv = a.region(layer)
	} else {
		at.qkv = a.region(max(4*qkv*d.rows*len(d.layers), layer, min(layer*len(d.layers), tiledKeyBytes)))
	}
	at.rowBuffers = a.rowBuffers(k, outs, d.rows, min(d.tiledRows, tileRows))
	for i := range at.angles {
		at.angles[i] = a.reserve(8 * rotated * most)
	}
	d.tails.reserve(a, most)
	const states = layout.Tile * device.StateBytes
	at.states, at.working = a.reserve(mostStates*states), [2]uint32{a.reserve(states), a.reserve(states)}
	if d.keyMask.window > 0 {
		d.mostMasks = mostMasks * max(tileRows, d.tiledRows)
		at.masks = a.reserve(d.mostMasks * layout.TileBytes)
	}
	at.sums, at.saturated, at.zeros = a.reserve(4*layout.Tile), a.reserve(4*layout.Tile), a.reserve(roundUp(m.HeadDim, layout.Tile)/layout.Tile*layout.TileBytes)
	at.probed = [2]uint32{a.reserve(4 * ins), a.reserve(4 * outs)}
}

// tiledKeyBytes bounds what rows by tiles have of queries, keys and values on the device: what the
// layers make beyond it is read in a run of its own.
const tiledKeyBytes = 64 << 20

// encoderRows is the longest sequence whose tokens attend to later ones that is one request: all its rows
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

// atOnce returns the number of rows of a step of n that are one request. Rows of a product by lookups have tables in
// TCM, and the rows of an encoder's sequence stay together.
func (d *layerPlan) atOnce(n, first, end int) int {
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
