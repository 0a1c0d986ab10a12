package models

import (
	"slices"

	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/recurrent"
)

// predictor begins the layer of a file that predicts one token further ahead (DeepSeek-AI 2024, "DeepSeek-V3", §2.2),
// of rows that stand for a token and the hidden state before it:
//
//	x = Weh·[norm(embedding), norm(state)]
//
// The rest is a decoder of one layer, with keys and values in a cache of its own. Its embeddings and, mostly, its head
// are the model's.
type predictor struct {
	embedding, state []float32 // [Hidden] RMSNorms
	join             product   // Weh, [Hidden][2·Hidden]
}

// prediction is a decoder's part in predicting one token further ahead.
type prediction struct {
	predicts *predictor // its rows stand for hidden states too; nil: for tokens alone
	ahead    *decoder   // predicts for it; nil: nothing does
}

// predictorTensors are the names of the tensors that a predictor has at least.
var predictorTensors = []string{"nextn.eh_proj.weight", "nextn.enorm.weight", "nextn.hnorm.weight"}

// loadPredictor builds the graph of the layer after the model's; nil: the file has none, or experts are not all in memory.
func loadPredictor(t *tensors, main *decoder, opt *LoadOptions) *decoder {
	m := main.spec
	if m.predictor == nil || t.Err() != nil {
		return nil
	}
	y := m.predictor
	if main.store != nil || t.accelerator != nil {
		t.IgnoreAll(y.tensor(""))
		m.Predictor = kv.Shape{}
		return nil
	}
	own := *m
	own.Layers, own.StateShape, own.states, own.predictor, own.DenseLayers, own.Predictor = 1, StateShape{}, recurrent.Shape{}, nil, 0, kv.Shape{}
	y.width, y.mixes = m.FFN, m.Experts > 0
	own.layers = []layerSpec{*y}
	all := &mixtures{pass: newExpertPass(opt.Pool, t.Local()), matrices: newExpertMatrices(t, &own)}
	p := &decoder{spec: &own, ropes: main.ropes, embed: main.embed, rotate: main.rotate, norm: main.norm, head: main.head, file: main.file, memory: main.memory}
	p.layers = []decoderLayer{loadLayer(t, &own, &own.layers[0], all)}
	p.predicts = &predictor{
		embedding: t.Vector(y.tensor("nextn.enorm.weight"), m.Hidden), state: t.Vector(y.tensor("nextn.hnorm.weight"), m.Hidden),
		join: t.rotatedMatrix(y.tensor("nextn.eh_proj.weight"), m.Hidden, 2*m.Hidden),
	}
	if name := y.tensor("nextn.shared_head_norm"); t.Has(name + ".weight") {
		p.norm = loadNorm(t, &own, name)
	}
	if name := y.tensor("nextn.embed_tokens.weight"); t.Has(name) {
		p.embed = t.Tensor(name, m.Hidden, m.Vocab)
	}
	p.head = loadShortHead(t, &own, main)
	return p
}

// shortlist counts the tokens that a predictor guesses of a larger vocabulary, the first ones. A head of all of them would
// take as long as many layers. Tokens are numbered by the merges that make them, mostly the frequent ones first (Zhao et
// al. 2025, "FR-Spec", §3). Their weights are rounded to 4 bits, since a pass mostly reads this matrix.
const shortlist = 1 << 15

// loadShortHead loads the head of a predictor: the model's, for fewer tokens.
func loadShortHead(t *tensors, own *spec, main *decoder) head {
	name := own.layers[0].tensor("nextn.shared_head_head.weight")
	switch whole := t.Has(name); {
	case whole:
	case t.Has(outputTensor):
		name = outputTensor
	default:
		name = embeddingTensor
	}
	if own.Vocab < 2*shortlist || main.head.out.rotated.Block > 0 {
		if name == outputTensor || name == embeddingTensor {
			return main.head
		}
		return head{out: t.rotatedMatrix(name, own.Vocab, own.Hidden), factor: main.head.factor, cap: main.head.cap}
	}
	own.Outputs = shortlist
	short := product{Stacked: t.Stack(t.Coarse(name, 0, shortlist, own.Hidden, own.Vocab)), cols: own.Hidden} // to which adapters do not add
	return head{out: short, factor: main.head.factor, cap: main.head.cap}
}

// findPredictor tells whether the layer after the model's n is one that predicts: of Qwen's models with gated delta nets,
// which have attention there. Others are not read.
func findPredictor(has func(tensor string) bool, m *spec, n int) *layerSpec {
	y := &layerSpec{index: n}
	missing := func(name string) bool { return !has(y.tensor(name)) }
	if m.arch.states.kind != deltaNets || m.predictors == 0 || slices.ContainsFunc(predictorTensors, missing) {
		return nil
	}
	return y
}

// begin makes the residual stream of embeddings, which it holds, and hidden states.
func (p *predictor) begin(s *rowShard) {
	o := &s.ops
	o.shard, o.layer, o.eps = s, p, s.cfg.NormEps
	o.each(s.rows, 2*s.cfg.Hidden, func(o *rowOps, i int) {
		s, p, width := o.shard, o.layer.(*predictor), o.shard.cfg.Hidden
		row := rowOf(s.joined, i, 2*width)
		vector.RMSNorm(row[:width], rowOf(s.x, i, width), p.embedding, o.eps)
		vector.RMSNorm(row[width:], rowOf(s.probing.before, i, width), p.state, o.eps)
	})
	p.join.run(s, s.x, s.joined)
}

// normLast sets h to the norm of the rows that want logits, once all have finished the last layer.
func (m *decoder) normLast(s *rowShard) {
	m.norm.run(s)
	if s.probing.made == nil {
		return
	}
	n := s.rows
	copy(s.probing.made, s.h[:n*s.cfg.Hidden])
	if s.trim(0, false); s.rows < n {
		m.norm.run(s)
	}
}
