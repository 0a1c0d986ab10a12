package soc

import (
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/lab/npu/tiling"
	"github.com/lutra-lm/lutra/lab/npu/timeline"
)

// bitnet is BitNet-2B, whose steps executed.
var bitnet = func() Model {
	const layers, hidden, ffn, kv, vocab = 30, 2560, 6912, 640, 128256
	m := Model{Name: "bitnet-2b", Layers: layers, Heads: 20, KVHeads: 5, HeadDim: 128}
	for _, x := range []struct {
		input      string
		rows, cols int
	}{{"attention input", hidden + 2*kv, hidden}, {"attn_output", hidden, hidden}, {"feed-forward input", 2 * ffn, hidden}, {"ffn_down", hidden, ffn}} {
		m.Matrices = append(m.Matrices, Matrix{M: x.rows, K: x.cols, Bits: 2, Group: x.cols, Count: layers, Input: x.input})
	}
	m.Matrices = append(m.Matrices, Matrix{M: vocab, K: hidden, Bits: 4, Group: 32, Count: 1, Input: Logits})
	return m
}()

// ExecutedBatches are the batches of a row each whose steps executed by lookups, the first and the last by tiles, too.
// ExecutedContext is the context of their tokens: the mean of T-MAN's 128 tokens after 1024.
var ExecutedBatches = []int{1, 2, 4, 8, 16}

const ExecutedContext = 1024 + 64

// The threads that executed, and the rows and contexts of what did.
const executedThreads = 4

var (
	executedTiles    = []int{1, 16, Chunk}
	executedContexts = []int{Chunk, 1024} // of chunks
)

// The groups of products: a layer's, one for each input, and the head.
const (
	attentionIn = iota
	attentionOut
	feedForwardIn
	feedForwardOut
	ofHead
	groups
)

func (m *Matrix) group() int {
	switch {
	case m.Input == Logits:
		return ofHead
	case m.Input == "ffn_down":
		return feedForwardOut
	case strings.HasPrefix(m.Input, "f"): // feed-forward input, ffn_gate
		return feedForwardIn
	case strings.Contains(m.Input, "out"): // of attention, convolutions and states
		return attentionOut
	}
	return attentionIn
}

// sizes count a group of products in a layer. The counts of packets grow with them.
type sizes struct {
	inputs, outputs  float64 // numbers of a row
	tables           float64 // packets that make lookup tables of a row
	lookups, codes   float64 // packets of products by lookups, and of codes that become tiles
	bytes, multiples float64 // of weights
}

// scaler makes steps of a model.
type scaler struct {
	*Machine
	model *Model
}

// layers is the number of layers of all kinds.
func (x *Model) layers() int { return x.Layers + x.Convs + x.Deltas }

// sizes returns what layers of x have on average, for products of rows rows.
func (p *Packets) sizes(x *Model, rows int) (list [groups]sizes) {
	first := map[string]string{} // the matrix whose columns count as what its input has
	for _, mx := range x.Matrices {
		if mx.Host {
			continue
		}
		padded, n := mx.Padded(), float64(mx.Count)
		if mx.Input != Logits {
			n /= float64(x.layers())
		}
		s := &list[mx.group()]
		if name, ok := first[mx.Input]; !ok || name == mx.Name {
			first[mx.Input] = mx.Name
			each := p.Precompute
			if mx.inBytes() {
				each = p.Bytes
			}
			s.inputs, s.tables = s.inputs+n*float64(mx.K), s.tables+n*float64(padded.K)*each
		}
		s.outputs += n * float64(mx.M)
		s.lookups += n * p.lookups(padded, rows)
		s.codes += n * float64(padded.M*padded.K) / (tiling.Lookups * tiling.BlockCols) * p.dequant(padded)
		s.bytes += n * float64(mx.Bytes())
		s.multiples += n * float64(mx.M) * float64(mx.K)
	}
	return list
}

// scaling says by how much a model's packets count more than BitNet-2B's.
type scaling struct {
	sizes [groups]sizes // ratios
	// Heads of keys in a layer, their width, blocks of 32 rows of queries for each, and tokens.
	heads, width, queries, keys float64
	shared                      float64 // packets that threads share
	beside                      bool    // products of matrices count nothing
}

func (m scaler) scaling(rows int) scaling {
	x := m.model
	s := scaling{sizes: m.Packets.sizes(x, rows), width: float64(x.HeadDim) / float64(bitnet.HeadDim), queries: 1, keys: 1, shared: executedThreads / m.Threads.Value}
	s.heads = float64(x.KVHeads*x.Layers) / float64(x.layers()*bitnet.KVHeads)
	for i, b := range m.Packets.sizes(&bitnet, rows) {
		a := &s.sizes[i]
		a.inputs, a.outputs, a.tables, a.lookups = a.inputs/b.inputs, a.outputs/b.outputs, a.tables/b.tables, a.lookups/b.lookups
		a.codes, a.bytes, a.multiples = a.codes/b.codes, a.bytes/b.bytes, a.multiples/b.multiples
	}
	return s
}

// apply scales the packets of a step, or if head those behind its layers, and tells which are attention's.
func (s *scaling) apply(list []timeline.Work, head bool) (scaled []timeline.Work, attends []bool) {
	scaled, attends = slices.Clone(list), make([]bool, len(list))
	within, now, next := false, attentionIn, attentionIn // attention; the group whose products were last, and the next one
	if head {
		now, next = ofHead, ofHead
	}
	for i := range scaled {
		w := &scaled[i]
		switch w.Op {
		case "products_by_lookups", "rows_to_tiles_of_products":
			within, now, next = false, next, (next+1)%ofHead
		case "RMS_norm", "quantization":
			within = false
		}
		attends[i] = within
		packets, moved, products := s.factors(w.Op, now, next, within)
		if w.Op == "rotary_embeddings" {
			within = true
		}
		if w.Barriers > 0 {
			packets *= s.shared
		}
		w.Packets, w.Moved, w.Products = w.Packets*packets, w.Moved*moved, w.Products*products
	}
	return scaled, attends
}

// factors returns by how much a packet's instructions, bytes and products of tiles grow.
func (s *scaling) factors(op string, now, next int, attention bool) (packets, moved, products float64) {
	of, to := &s.sizes[now], &s.sizes[next]
	same := func(f float64) (float64, float64, float64) { return f, f, f }
	if attention {
		f := s.heads * s.queries
		switch op {
		case "collection_of_keys":
			return same(s.heads * s.width * s.keys)
		case "softmax":
			return same(f * s.keys)
		case "the_tile_unit_in_fp16":
			return f, 0, f * s.width * s.keys
		case "folding_of_softmax_sums":
			return same(f)
		}
		return same(f * s.width)
	}
	switch op {
	case "RMS_norm", "quantization":
		return same(to.inputs)
	case "lookup_tables":
		return same(to.tables)
	case "rotary_embeddings":
		return same(s.sizes[attentionIn].outputs)
	case "addition_of_rows":
		return same(s.sizes[attentionIn].inputs)
	case "gated_units":
		return same(s.sizes[feedForwardOut].inputs)
	}
	if s.beside {
		return 0, 0, 0
	}
	switch op {
	case "products_by_lookups":
		return of.lookups, of.bytes, 0
	case "scaling_of_sums", "tiles_of_products_to_rows", "tiles_of_attention_to_rows": // the head's have the latter name
		return same(of.outputs)
	case "rows_to_tiles_of_products", "rows_to_tiles_of_attention":
		return same(of.inputs)
	case "tiles_of_codes":
		return same(of.codes)
	case "the_tile_unit_in_fp16":
		return same(of.multiples)
	}
	return same(of.bytes) // copies of codes
}

// parts are the costs of a step: of its rows but for attention, of attention, and of logits.
type parts struct{ rows, attention, head Cost }

// steady is the number of layers after which each takes as long as the one before.
const steady = 4

// parts scales a step that executed. What its parts have side by side counts once.
func (m scaler) parts(of Step, s *scaling) (p parts) {
	e, err := ExecutedStep(of)
	if err != nil {
		panic(err) // part of the program
	}
	begin, first := s.apply(e.Begin, false)
	layer, further := s.apply(e.Layer, false)
	head, _ := s.apply(e.End, true)
	list, attends := slices.Clone(begin), slices.Clone(first)
	count := m.model.layers()
	var body, rows [2]Cost // the last two
	add := func() {
		body = [2]Cost{body[1], m.time(list)}
		rows = [2]Cost{rows[1], m.time(timeline.Without(list, func(i int) bool { return attends[i] }))}
	}
	add()
	for range min(count, steady) - 1 {
		list, attends = append(list, layer...), append(attends, further...)
		add()
	}
	p.head = m.time(append(list, head...)).less(body[1])
	left := float64(max(0, count-steady))
	body[1].Add(body[1].less(body[0]).times(left))
	p.rows = rows[1]
	p.rows.Add(rows[1].less(rows[0]).times(left))
	p.attention = body[1].less(p.rows)
	return p
}

// between returns the cost of n of what executed in some numbers, between which and beyond which costs are on a line.
func between(n int, executed []int, cost func(n int) Cost) Cost {
	i := 0
	for i < len(executed)-2 && n >= executed[i+1] {
		i++
	}
	a, b := executed[i], executed[i+1]
	switch n {
	case a:
		return cost(a)
	case b:
		return cost(b)
	}
	c, f := cost(a), float64(n-a)/float64(b-a)
	c.Add(cost(b).less(c).times(f))
	return c
}

// byRows returns a part of the cost of rows rows, by a path. More than a chunk are several.
func (m scaler) byRows(rows int, path Path, beside bool, part func(parts) Cost) Cost {
	cost := func(n int) Cost {
		s, of := m.scaling(n), Step{bitnet.Name, n, 1, ExecutedContext, path}
		if s.beside = beside; n == Chunk {
			of = Step{bitnet.Name, 1, Chunk, Chunk, path}
		}
		return part(m.parts(of, &s))
	}
	switch {
	case path == ByLookup:
		return between(rows, ExecutedBatches, cost)
	case rows > Chunk:
		return cost(Chunk).times(float64(rows) / Chunk)
	}
	return between(rows, executedTiles, cost)
}

// Attention returns the cost of attention in all layers: a sequence of one row is like one of a batch, others are like chunks.
func (m *Machine) Attention(x *Model, work []Work) Cost { return scaler{m, x}.attention(work) }

func (m scaler) attention(work []Work) (sum Cost) {
	x := m.model
	group := x.Heads / max(1, x.KVHeads)
	blocks := func(rows, group int) float64 { return float64(up(rows*group, tiling.MMA)) }
	ones, tokens := 0, 0
	for _, w := range work {
		if w.Rows == 1 {
			ones, tokens = ones+1, tokens+w.Context
			continue
		}
		sum.Add(between(w.Context, executedContexts, func(context int) Cost {
			s := m.scaling(1)
			s.queries = blocks(w.Rows, group) / blocks(Chunk, bitnet.Heads/bitnet.KVHeads)
			return m.parts(Step{bitnet.Name, 1, Chunk, context, ByTiles}, &s).attention
		}))
	}
	if ones > 0 {
		sum.Add(between(ones, ExecutedBatches, func(batch int) Cost {
			s := m.scaling(1)
			s.queries, s.keys = blocks(1, group)/tiling.MMA, float64(tokens)/float64(ones)/ExecutedContext
			return m.parts(Step{bitnet.Name, batch, 1, ExecutedContext, ByLookup}, &s).attention
		}))
	}
	return sum
}

// paths returns how the largest matrix of the layers is multiplied, and so all of them, and how the head is.
func (m scaler) paths(rows, outputs int) (layers, head Path) {
	var of [2]Matrix
	for _, mx := range m.model.Matrices {
		i := 0
		if mx.Input == Logits {
			i = 1
		}
		if !mx.Host && mx.Bytes()*mx.Count > of[i].Bytes()*of[i].Count {
			of[i] = mx
		}
	}
	return m.Path(of[0], rows), m.Path(of[1], outputs)
}

// Step returns the cost of one pass over the model with the work of its sequences, scaled from steps that executed.
// outputs is the number of rows whose logits are wanted.
func (m *Machine) Step(x *Model, work []Work, outputs int) Cost {
	return scaler{m, x}.step(work, outputs, false)
}

// Beside is Step without the products of matrices.
func (m *Machine) Beside(x *Model, work []Work, outputs int) Cost {
	return scaler{m, x}.step(work, outputs, true)
}

func (m scaler) step(work []Work, outputs int, beside bool) Cost {
	x := m.model
	rows, longest := 0, 0
	for _, w := range work {
		rows, longest = rows+w.Rows, max(longest, w.Rows)
	}
	path, head := m.paths(rows, outputs)
	sum := m.byRows(rows, path, beside, func(p parts) Cost { return p.rows })
	sum.Add(m.attention(work))
	logits := false
	for _, mx := range x.Matrices {
		n := rows
		if mx.Input == Logits {
			n, logits = outputs, !mx.Host
		}
		if mx.Host && n > 0 && !beside {
			sum.Add(m.host(mx, n).times(float64(mx.Count)))
		}
	}
	if logits && outputs > 0 && !beside {
		sum.Add(m.byRows(outputs, head, false, func(p parts) Cost { return p.head }))
	}
	sum.Add(m.DeltaNet(x, work).times(float64(x.Deltas)))
	sum.Seconds += m.Request.Value / 1e3
	if path == ByLookup { // attention alone has the tile unit
		rows = longest * x.Heads / max(1, x.KVHeads)
	}
	sum.Useful = float64(rows) / float64(up(rows, tiling.MMA))
	watts := m.DecodePower.Value
	if longest > 1 {
		watts = m.PrefillPower.Value
	}
	sum.Joules = sum.Seconds * watts
	return sum
}

// Decode returns the cost of one token for each of batch sequences at a context.
func (m *Machine) Decode(x *Model, batch, context int) Cost {
	return m.Step(x, slices.Repeat([]Work{{1, context}}, batch), batch)
}

// Prefill returns the cost of a prompt, in chunks.
func (m *Machine) Prefill(x *Model, tokens int) (sum Cost) {
	for at := 0; at < tokens; at += Chunk {
		n := min(Chunk, tokens-at)
		sum.Add(m.Step(x, []Work{{n, at + n}}, (at+n)/tokens)) // logits of the last alone
	}
	return sum
}
