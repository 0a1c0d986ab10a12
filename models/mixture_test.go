package models

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
)

// tinyMixture is a small mixture of random weights, and the traits of its architecture for a forward pass in float64, token by
// token and expert by expert.
type tinyMixture struct {
	arch                             string
	halves, headNorm, wideNorm, bias bool
	unnormed, sigmoid                bool
	shared, sharedGated              bool
	embed, scores, residual, logits  float64 // multipliers; 0: there are none
	scale                            float64 // of the experts' weights; 0: one
	experts, used                    int
	older                            bool // a tensor an expert
	fused                            bool // queries, keys and values are one tensor
	more                             gguf.Metadata

	tensors map[string][]float64
}

const (
	mixHidden, mixHeads, mixKV, mixDim   = 64, 4, 2, 16
	mixFFN, mixShared, mixLayers, mixVoc = 32, 48, 2, 96
)

// file makes the model's weights and the file that holds them.
func (m *tinyMixture) file(t testing.TB) *gguf.File {
	r := rand.New(rand.NewPCG(11, 12))
	m.tensors = map[string][]float64{}
	var list []gguf.Tensor
	random := func(name string, mean, std float64, dims ...int) gguf.Tensor {
		n := 1
		for _, d := range dims {
			n *= d
		}
		data := make([]byte, 4*n)
		values := make([]float64, n)
		for i := range values {
			x := float32(mean + std*r.NormFloat64())
			values[i] = float64(x)
			binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(x))
		}
		m.tensors[name] = values
		return gguf.Tensor{Name: name, Type: gguf.F32, Dims: dims, Data: data}
	}
	add := func(name string, mean, std float64, dims ...int) {
		list = append(list, random(name, mean, std, dims...))
	}
	matrix := func(name string, cols, rows int) { add(name+".weight", 0, 1.5/math.Sqrt(float64(cols)), cols, rows) }
	norm := func(name string, n int) {
		add(name+".weight", 1, 0.1, n)
		if m.bias && n == mixHidden {
			add(name+".bias", 0, 0.1, n)
		}
	}
	q, kvs := mixHeads*mixDim, mixKV*mixDim
	add("token_embd.weight", 0, 1, mixHidden, mixVoc)
	for i := range mixLayers {
		blk := fmt.Sprintf("blk.%d.", i)
		norm(blk+"attn_norm", mixHidden)
		qkv, bias := gguf.Tensor{Name: blk + "attn_qkv.weight", Dims: []int{mixHidden, q + 2*kvs}}, gguf.Tensor{Name: blk + "attn_qkv.bias", Dims: []int{q + 2*kvs}}
		for _, part := range []struct {
			name string
			rows int
		}{{"attn_q", q}, {"attn_k", kvs}, {"attn_v", kvs}} {
			w, b := random(blk+part.name+".weight", 0, 1.5/math.Sqrt(mixHidden), mixHidden, part.rows), random(blk+part.name+".bias", 0, 0.3, part.rows)
			qkv.Data, bias.Data = append(qkv.Data, w.Data...), append(bias.Data, b.Data...)
			if !m.fused {
				list = append(list, w)
			}
			if m.bias && !m.fused {
				list = append(list, b)
			}
			if !m.bias {
				delete(m.tensors, b.Name)
			}
		}
		if m.fused {
			list = append(list, qkv, bias)
		}
		matrix(blk+"attn_output", q, mixHidden)
		if m.bias {
			add(blk+"attn_output.bias", 0, 0.3, mixHidden)
		}
		switch {
		case m.headNorm:
			add(blk+"attn_q_norm.weight", 1, 0.1, mixDim)
			add(blk+"attn_k_norm.weight", 1, 0.1, mixDim)
		case m.wideNorm:
			add(blk+"attn_q_norm.weight", 1, 0.1, q)
			add(blk+"attn_k_norm.weight", 1, 0.1, kvs)
		}
		norm(blk+"ffn_norm", mixHidden)
		add(blk+"ffn_gate_inp.weight", 0, 2/math.Sqrt(mixHidden), mixHidden, m.experts)
		for _, part := range []string{"gate", "up", "down"} {
			dims := []int{mixHidden, mixFFN}
			if part == "down" {
				dims = []int{mixFFN, mixHidden}
			}
			std := 1.5 / math.Sqrt(float64(dims[0]))
			if !m.older {
				add(blk+"ffn_"+part+"_exps.weight", 0, std, dims[0], dims[1], m.experts)
				continue
			}
			all := []float64{}
			for e := range m.experts {
				name := fmt.Sprintf("%sffn_%s.%d.weight", blk, part, e)
				add(name, 0, std, dims...)
				all = append(all, m.tensors[name]...)
			}
			m.tensors[blk+"ffn_"+part+"_exps.weight"] = all
		}
		if m.shared {
			matrix(blk+"ffn_gate_shexp", mixHidden, mixShared)
			matrix(blk+"ffn_up_shexp", mixHidden, mixShared)
			matrix(blk+"ffn_down_shexp", mixShared, mixHidden)
		}
		if m.sharedGated {
			add(blk+"ffn_gate_inp_shexp.weight", 0, 2/math.Sqrt(mixHidden), mixHidden)
		}
	}
	norm("output_norm", mixHidden)
	matrix("output", mixHidden, mixVoc)
	if m.bias {
		add("output.bias", 0, 0.3, mixVoc)
	}
	return m.parse(t, list)
}

// parse writes the file and reads it.
func (m *tinyMixture) parse(t testing.TB, list []gguf.Tensor) *gguf.File {
	t.Helper()
	md := gguf.Metadata{"general.architecture": m.arch}
	for key, v := range map[string]any{
		"block_count": uint32(mixLayers), "context_length": uint32(256), "embedding_length": uint32(mixHidden), "feed_forward_length": uint32(mixFFN),
		"attention.head_count": uint32(mixHeads), "attention.head_count_kv": uint32(mixKV), "attention.key_length": uint32(mixDim),
		"attention.layer_norm_rms_epsilon": float32(1e-5), "expert_count": uint32(m.experts), "expert_used_count": uint32(m.used),
		"expert_feed_forward_length": uint32(mixFFN),
	} {
		md[m.arch+"."+key] = v
	}
	if m.shared {
		md[m.arch+".expert_shared_feed_forward_length"] = uint32(mixShared)
	}
	for key, x := range map[string]float64{"embedding_scale": m.embed, "attention.scale": m.scores, "residual_scale": m.residual, "logit_scale": m.logits, "expert_weights_scale": m.scale} {
		if x != 0 {
			md[m.arch+"."+key] = float32(x)
		}
	}
	for key, v := range m.more {
		if md[m.arch+"."+key] = v; v == nil {
			delete(md, m.arch+"."+key)
		}
	}
	var b strings.Builder
	if err := gguf.Write(&b, md, list); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (m *tinyMixture) times(name string, x []float64) []float64 {
	y := times(m.tensors[name+".weight"], x)
	for i, b := range m.tensors[name+".bias"] {
		y[i] += b
	}
	return y
}

// times is w[rows][len(x)] · x.
func times(w, x []float64) []float64 {
	y := make([]float64, len(w)/len(x))
	for r := range y {
		for k, v := range x {
			y[r] += w[r*len(x)+k] * v
		}
	}
	return y
}

func (m *tinyMixture) norm(name string, x []float64) []float64 {
	w, sum := m.tensors[name+".weight"], 0.0
	out := make([]float64, len(x))
	for at := 0; at < len(x); at += len(w) {
		sum = 0
		for _, v := range x[at : at+len(w)] {
			sum += v * v
		}
		for i := range w {
			out[at+i] = x[at+i] / math.Sqrt(sum/float64(len(w))+float64(float32(1e-5))) * w[i]
		}
	}
	for i, b := range m.tensors[name+".bias"] {
		out[i] += b
	}
	return out
}

func (m *tinyMixture) rotate(x []float64, pos int) {
	for at := 0; at < len(x); at += mixDim {
		for i := range mixDim / 2 {
			a, b := at+2*i, at+2*i+1
			if m.halves {
				a, b = at+i, at+i+mixDim/2
			}
			sin, cos := math.Sincos(float64(pos) * math.Pow(10000, -2*float64(i)/mixDim))
			x[a], x[b] = x[a]*cos-x[b]*sin, x[a]*sin+x[b]*cos
		}
	}
}

func swiglu(gate, up []float64) []float64 {
	out := make([]float64, len(gate))
	for i, g := range gate {
		out[i] = g / (1 + math.Exp(-g)) * up[i]
	}
	return out
}

// mixture is the output of a layer's experts, all of which it computes.
func (m *tinyMixture) mixture(blk string, h []float64) []float64 {
	p := m.times(blk+"ffn_gate_inp", h)
	sum := 0.0
	for e, x := range p {
		if p[e] = math.Exp(x); m.sigmoid {
			p[e] = 1 / (1 + math.Exp(-x))
		}
		sum += p[e]
	}
	var order []int
	for e := range p {
		order = append(order, e)
	}
	slices.SortFunc(order, func(a, b int) int {
		if p[a] > p[b] {
			return -1
		}
		return 1
	})
	if m.sigmoid {
		sum = 1
	}
	if !m.unnormed {
		sum = 0
		for _, e := range order[:m.used] {
			sum += p[e]
		}
	}
	y := make([]float64, mixHidden)
	for _, e := range order[:m.used] {
		part := func(name string) []float64 {
			all := m.tensors[blk+"ffn_"+name+"_exps.weight"]
			return all[e*len(all)/m.experts : (e+1)*len(all)/m.experts]
		}
		w := p[e] / sum
		if m.scale != 0 {
			w *= m.scale
		}
		for i, v := range times(part("down"), swiglu(times(part("gate"), h), times(part("up"), h))) {
			y[i] += w * v
		}
	}
	if m.shared {
		w := 1.0
		if m.sharedGated {
			w = 1 / (1 + math.Exp(-times(m.tensors[blk+"ffn_gate_inp_shexp.weight"], h)[0]))
		}
		for i, v := range m.times(blk+"ffn_down_shexp", swiglu(m.times(blk+"ffn_gate_shexp", h), m.times(blk+"ffn_up_shexp", h))) {
			y[i] += w * v
		}
	}
	return y
}

// or is x, or otherwise for zero.
func or(x, otherwise float64) float64 {
	if x == 0 {
		return otherwise
	}
	return x
}

// forward is the logits after each of tokens.
func (m *tinyMixture) forward(tokens []int32) []float32 {
	var keys, values [mixLayers][][]float64
	var logits []float32
	for pos, token := range tokens {
		x := slices.Clone(m.tensors["token_embd.weight"][int(token)*mixHidden:][:mixHidden])
		for i := range x {
			x[i] *= or(m.embed, 1)
		}
		add := func(y []float64) {
			for i, v := range y {
				x[i] += v * or(m.residual, 1)
			}
		}
		for l := range mixLayers {
			blk := fmt.Sprintf("blk.%d.", l)
			h := m.norm(blk+"attn_norm", x)
			q, k := m.times(blk+"attn_q", h), m.times(blk+"attn_k", h)
			if m.headNorm || m.wideNorm {
				q, k = m.norm(blk+"attn_q_norm", q), m.norm(blk+"attn_k_norm", k)
			}
			m.rotate(q, pos)
			m.rotate(k, pos)
			keys[l], values[l] = append(keys[l], k), append(values[l], m.times(blk+"attn_v", h))
			a := make([]float64, mixHeads*mixDim)
			for head := range mixHeads {
				at, sum := head/(mixHeads/mixKV)*mixDim, 0.0
				for i := range keys[l] {
					score := 0.0
					for d := range mixDim {
						score += q[head*mixDim+d] * keys[l][i][at+d]
					}
					w := math.Exp(score * or(m.scores, 1/math.Sqrt(mixDim)))
					sum += w
					for d := range mixDim {
						a[head*mixDim+d] += w * values[l][i][at+d]
					}
				}
				for d := range mixDim {
					a[head*mixDim+d] /= sum
				}
			}
			add(m.times(blk+"attn_output", a))
			add(m.mixture(blk, m.norm(blk+"ffn_norm", x)))
		}
		for _, v := range m.times("output", m.norm("output_norm", x)) {
			logits = append(logits, float32(v/or(m.logits, 1)))
		}
	}
	return logits
}

// tinyMixtures are one of each architecture and of each kind of routing.
func tinyMixtures() map[string]*tinyMixture {
	return map[string]*tinyMixture{
		"mixtral":         {arch: "llama", experts: 8, used: 2},
		"mixtral, 3":      {arch: "llama", experts: 3, used: 1},
		"mixtral, all":    {arch: "llama", experts: 6, used: 6},
		"mixtral, older":  {arch: "llama", experts: 5, used: 2, older: true},
		"one expert":      {arch: "llama", experts: 1, used: 1},
		"scaled":          {arch: "llama", experts: 6, used: 2, scale: 2.5},
		"qwen3moe":        {arch: "qwen3moe", halves: true, headNorm: true, experts: 16, used: 4},
		"unnormed":        {arch: "qwen3moe", halves: true, headNorm: true, experts: 16, used: 4, unnormed: true, more: gguf.Metadata{"expert_weights_norm": false}},
		"sigmoid":         {arch: "qwen3moe", halves: true, headNorm: true, experts: 9, used: 3, sigmoid: true, more: gguf.Metadata{"expert_gating_func": uint32(2)}},
		"sigmoid, as is":  {arch: "olmoe", halves: true, wideNorm: true, unnormed: true, experts: 9, used: 3, sigmoid: true, more: gguf.Metadata{"expert_gating_func": uint32(2)}},
		"of the chosen":   {arch: "olmoe", halves: true, wideNorm: true, experts: 9, used: 3, more: gguf.Metadata{"expert_gating_func": uint32(3)}},
		"qwen2moe":        {arch: "qwen2moe", halves: true, unnormed: true, shared: true, sharedGated: true, experts: 12, used: 4},
		"olmoe":           {arch: "olmoe", halves: true, wideNorm: true, unnormed: true, experts: 12, used: 4},
		"granitemoe":      {arch: "granitemoe", experts: 10, used: 3, embed: 3, scores: 0.2, residual: 0.6, logits: 1.7},
		"granite, shared": {arch: "granitemoe", experts: 10, used: 3, embed: 3, scores: 0.2, residual: 0.6, logits: 1.7, shared: true},
		"phimoe":          {arch: "phimoe", halves: true, bias: true, experts: 7, used: 2},
		"phimoe, fused":   {arch: "phimoe", halves: true, bias: true, experts: 7, used: 2, fused: true},
	}
}

func TestMixturesAgreeWithAForwardPassExpertByExpert(t *testing.T) {
	p := pool.New(2)
	defer p.Close()
	r := rand.New(rand.NewPCG(3, 9))
	tokens := make([]int32, 40)
	for i := range tokens {
		tokens[i] = int32(r.IntN(mixVoc))
	}
	for name, tiny := range tinyMixtures() {
		t.Run(name, func(t *testing.T) {
			m, err := loadModel(tiny.file(t), LoadOptions{Pool: p})
			if err != nil {
				t.Fatal(err)
			}
			defer m.close()
			want := tiny.forward(tokens)
			run := newRunner(t, m, kv.F32)
			if e := nmse(run.feed(len(tokens), tokens...), want); !(e < 1e-9) {
				t.Errorf("NMSE %.3g, want float32's", e)
			}
		})
	}
}
