package models

import (
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/attention"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/recurrent"
)

// rowShard is some rows of a step on their way through the graph, with the
// workspace of the worker, or of the pool, that runs them.
type rowShard struct {
	*workspace
	cfg      *spec
	device   *device
	kv       *kv.Cache
	rows     int                // all; after trim those that want logits
	tokens   []int32            // [rows]
	rowPos   []attention.RowPos // [rows]
	variants []*Variant         // [rows] the variant of each; nil: all by the model as it is
	adapters adaptPlan          // of variants
	wanted   []bool             // [rows] the row wants logits; before trim
	plans    attentionPlans     // of rowPos
	spans    []recurrent.Span   // of all rows, for recurrent layers
	x        []float32          // [rows][Hidden] residual stream
	qkv      []float32          // [rows][mixer.rowWidth] queries, keys and values, and what is beside them
	angles   [2]angles          // of the rows' positions, by each of the model's ropes
	second   []bool             // [rows] the row belongs to the second text of a pair; nil: none does
	inputs   []float32          // [rows][Layers][LayerInputs] inputs of layers
	logits   []float32          // [rows with logits][Outputs], later shards' included
	probing  probing            // of hidden states
	whole    int                // layers before it have been computed, by a backend all or the last of them
}

// workspace is the memory for running a shard besides its rows. Buffers grow to the largest shard seen and are
// reused; nothing in them outlives a stage.
type workspace struct {
	acts     kernels.Acts
	ops      rowOps
	att      attentionPasses
	rec      *recurrent.Pass // nil without recurrent layers
	adapting adaptPass
	size     int // rows the buffers have room for

	h, y, a      []float32 // [rows] × [Hidden] normed, output of attention or feed-forward; [mixed] attended values
	gates        []float32 // [rows][gateWidth] of recurrent layers
	gateUp, gate []float32 // [rows][2·FFN], their product [rows][FFN]
	projected    []float32 // [rows][Layers·LayerInputs]
	part         []float32 // outputs of one of several stacked matrices
	joined       []float32 // [rows][2·Hidden] of a predictor

	latent  latentRows // of latent attention
	perHead perHead

	mixed, gateWidth, joinedWidth int
}

func newWorkspace(w pool.Workers, m *spec) workspace {
	var rec *recurrent.Pass
	shape := m.states
	if shape.Taps > 0 {
		rec = recurrent.New(w, shape, m.NormEps)
	}
	return workspace{
		ops: rowOps{workers: w}, perHead: newPerHead(w.N()), adapting: newAdaptPass(w), att: newAttentionPasses(w, &m.Config), rec: rec,
		mixed: max(m.Heads*m.HeadDim, m.Heads*m.Others.HeadDim, shape.Values(), shape.Inputs, shape.StateSpace.Inner()), gateWidth: 2 * shape.ValueHeads,
	}
}

// attentionPasses run over the layers of the cache's kinds; the second is nil if all have the same heads.
type attentionPasses [2]*attention.Pass

// attentionPlans are the plans of their runs.
type attentionPlans [2]attention.Plan

func newAttentionPasses(w pool.Workers, cfg *Config) attentionPasses {
	return attentionPasses{attention.New(w, cfg.Heads, cfg.KV()), attention.NewOthers(w, cfg.Heads, cfg.KV())}
}

// plan plans for rows.
func (p *attentionPasses) plan(plans *attentionPlans, rows []attention.RowPos, cache *kv.Cache) {
	for i, pass := range p {
		if pass != nil {
			pass.MakePlan(&plans[i], rows, cache)
		}
	}
}

// reserve makes room for n rows.
func (w *workspace) reserve(n int, c *spec) {
	if n <= w.size {
		return
	}
	w.size = n
	w.latent.reserve(n, c)
	for _, buf := range []struct {
		at    *[]float32
		width int
	}{
		{&w.h, c.Hidden}, {&w.y, c.Hidden}, {&w.a, w.mixed}, {&w.gates, w.gateWidth},
		{&w.gateUp, 2 * c.widest}, {&w.gate, max(c.widest, c.LayerInputs)}, {&w.projected, c.Layers * c.LayerInputs}, {&w.joined, w.joinedWidth},
	} {
		*buf.at = make([]float32, n*buf.width)
	}
}

// trim drops the rows that want no logits and moves the others up; width is the
// numbers of a row of qkv. more: further layers project.
func (s *rowShard) trim(width int, more bool) {
	n := 0
	for i, wanted := range s.wanted {
		if !wanted {
			continue
		}
		if s.wanted[n] = true; n < i {
			s.rowPos[n] = s.rowPos[i]
			if s.variants != nil {
				s.variants[n] = s.variants[i]
			}
			moveRow(s.x, n, i, s.cfg.Hidden)
			moveRow(s.qkv, n, i, width)
			moveRow(s.inputs, n, i, s.cfg.Layers*s.cfg.LayerInputs)
			for k := range s.angles {
				if a := &s.angles[k]; more {
					moveRow(a.cos, n, i, a.pairs)
					moveRow(a.sin, n, i, a.pairs)
				}
			}
		}
		n++
	}
	if n < s.rows {
		s.rows, s.rowPos, s.wanted = n, s.rowPos[:n], s.wanted[:n]
		s.att.plan(&s.plans, s.rowPos, s.kv)
		if s.variants != nil {
			s.variants = s.variants[:n]
			s.adapters.make(s.variants)
		}
	}
}
