package hexagon

import (
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// hostBetween is a backend with the host between products.
type hostBetween struct{ *Backend }

func (hostBetween) GatedExpert(int, int, *models.GatedExpert) bool { return false }
func (hostBetween) Layers(*models.DenseLayers) bool                { return false }

// Mixtures of two layers: like gpt-oss, with clamped units, biases, sinks and windows; like Qwen2-MoE, with an expert
// that all tokens take; like LFM2-8B-A1B, two layers with feed-forwards ahead of six with
// experts; and like Qwen3.5-MoE, with delta nets and gated attention.
var (
	tinyOSS = synthetic.Shape{Name: "tiny oss", Hidden: 256, FFN: 256, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 320, Context: 1024,
		RopeBase: 10000, Arch: synthetic.GPTOSS, Experts: synthetic.Experts{Count: 8, Used: 3, FFN: 256}}
	tinyShared = synthetic.Shape{Name: "tiny shared", Hidden: 256, FFN: 512, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 320, Context: 1024,
		RopeBase: 10000, Arch: synthetic.Qwen2MoE, Experts: synthetic.Experts{Count: 8, Used: 3, FFN: 256, Shared: 512}}
	tinyConv = synthetic.Shape{Name: "tiny conv", Hidden: 256, FFN: 512, Layers: 8, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 320, Context: 1024,
		RopeBase: 10000, Arch: synthetic.LFM2MoE, Experts: synthetic.Experts{Count: 8, Used: 3, FFN: 256, Dense: 2}}
	tinyNets = synthetic.Shape{Name: "tiny nets", Hidden: 256, FFN: 512, Layers: 4, Heads: 4, KVHeads: 2, HeadDim: 128, Vocab: 320, Context: 1024,
		RopeBase: 10000, Arch: synthetic.Qwen35MoE, Delta: synthetic.Delta{KeyHeads: 2, ValueHeads: 4, Width: 64}, Experts: tinyShared.Experts}
)

// A token of a mixture is a request a layer, and one more: a layer's experts are part of what follows them. Where the
// CPU has the down of some experts, gate, up and unit are a launch. What is logged is in docs/npu.md.
func TestAStepOfAMixtureIsARequestALayer(t *testing.T) {
	sweep.Full(t)
	p := newPool(t)
	four := tinyExperts
	four.Layers = 4
	all, km := synthetic.Options{Blocks: gguf.Q4_0, Head: gguf.F16, Seed: 7}, synthetic.Options{Blocks: gguf.Q4_K, Head: gguf.Q6_K, Finer: gguf.Q6_K, Seed: 7}
	for _, c := range []struct {
		name    string
		shape   synthetic.Shape
		of      synthetic.Options
		opt     Options
		between [2]int64 // requests of a prompt, and of a token
		whole   [2]int64
		noise   float64
	}{
		{"like Qwen3-MoE", tinyExperts, all, Options{Path: PathLookup}, [2]int64{22, 19}, [2]int64{8, 3}, deviceNoise},
		{"like gpt-oss", tinyOSS, all, Options{}, [2]int64{17, 19}, [2]int64{5, 3}, deviceNoise},
		{"like Qwen2-MoE", tinyShared, all, Options{Path: PathLookup}, [2]int64{26, 23}, [2]int64{7, 3}, deviceNoise},
		{"like LFM2-8B-A1B", tinyConv, all, Options{Path: PathLookup}, [2]int64{68, 59}, [2]int64{23, 7}, deviceNoise},
		{"like Qwen3.5-MoE", tinyNets, all, Options{Path: PathLookup}, [2]int64{61, 48}, [2]int64{15, 5}, deviceNoise},
		{"like Qwen3-MoE, Q4_K_M", four, km, Options{Path: PathLookup}, [2]int64{41, 32}, [2]int64{27, 13}, cpuNoise}, // its int8 rounds what differs
		{"like Qwen3-MoE, Q4_K_M, rounded", four, km, Options{Path: PathLookup, Round: RoundQ8_0}, [2]int64{52, 41}, [2]int64{18, 5}, deviceNoise},
	} {
		load := func() (*gguf.File, error) { return synthetic.Build(c.shape, c.of) }
		var logits [2][2][]float32
		var runs, moved [2][2]int64 // with the host between, or not; of a prompt, and of a token
		for i := range 2 {
			c.opt.Decode, c.opt.Pool = true, p
			b, err := Open("hexagon-go", c.opt)
			if err != nil {
				t.Fatal(err)
			}
			m := loadedOn(t, p, b, load, i == 0)
			f := newFeeder(t, m)
			for j, tokens := range [][]int32{someTokens(64), {17}} {
				before, work := b.Counts(), b.Work()
				logits[i][j] = slices.Clone(f.feed(1, tokens...))
				n, w := b.Counts(), b.Work()
				runs[i][j], moved[i][j] = w.Runs-work.Runs, w.Written+w.Read-work.Written-work.Read
				t.Logf("%s, host between: %v, %d tokens: %d requests, %d with experts, %d packets, %d bytes", c.name, i == 0, len(tokens),
					runs[i][j], n.Launches-before.Launches, w.Packets-work.Packets, moved[i][j])
			}
			if err := b.Err(); err != nil {
				t.Fatal(err)
			}
		}
		if runs != [2][2]int64{c.between, c.whole} {
			t.Errorf("%s: %d requests, want %d and %d", c.name, runs, c.between, c.whole)
		}
		states := int64(4 * 3 * c.shape.Delta.ValueHeads * c.shape.Delta.Width * c.shape.Delta.Width) // which come back with each step
		if moved[1][0] > moved[0][0] || moved[1][1] > moved[0][1]+states {
			t.Errorf("%s: %d bytes, with the host between %d", c.name, moved[1], moved[0])
		}
		for j := range 2 {
			if e := nmse(logits[1][j], logits[0][j]); !(e <= c.noise) {
				t.Errorf("%s: NMSE %.3g against the host between products", c.name, e)
			}
		}
	}
}

// A token has the same bits as a request a layer, in a step beside a prompt whose groups are launches, with tails and
// room that others left, and by the host; the device's and what the CPU has of some experts agree with the CPU's.
func TestExpertsThatArePartOfARequestHaveTheBitsOfLaunches(t *testing.T) {
	sweep.Full(t)
	p := newPool(t)
	for name, c := range map[string]struct {
		shape synthetic.Shape
		of    synthetic.Options
		round Rounding
	}{
		"shared": {tinyShared, synthetic.Options{Blocks: gguf.Q4_0, Head: gguf.F16, Seed: 7}, ""},
		"nets":   {tinyNets, synthetic.Options{Blocks: gguf.Q4_0, Head: gguf.F16, Seed: 7}, ""},
		"conv":   {tinyConv, synthetic.Options{Blocks: gguf.Q4_0, Head: gguf.F16, Seed: 7}, ""},
		"oss":    {tinyOSS, synthetic.Options{Blocks: gguf.Q4_0, Head: gguf.Q8_0, Finer: gguf.Q6_K, Seed: 7}, ""},
	} {
		load := func() (*gguf.File, error) { return synthetic.Build(c.shape, c.of) }
		var of []*conversing
		for _, opt := range []*Options{{Decode: true}, {Decode: true}, {}, nil} {
			kind := ""
			if opt != nil {
				kind, opt.Path, opt.Round = "hexagon-go", PathLookup, c.round
			} else {
				opt = &Options{}
			}
			bundle := onDevice(t, kind, *opt, p, load)
			s := &conversing{t: t, m: bundle.Model}
			var err error
			if s.cache, err = kv.New(s.m.Config().KV(), kv.Options{BlockLen: 16, Blocks: 64, States: 8}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.cache.Close() })
			for range 2 {
				s.seqs, s.texts = append(s.seqs, s.cache.Open(nil)), append(s.texts, nil)
			}
			s.step([]int{0}, [][]int32{someTokens(40)})
			of = append(of, s)
		}
		for i := range int32(2) {
			want := slices.Clone(of[0].step([]int{0}, [][]int32{{17 + i}}))
			got := of[1].step([]int{0, 1}, [][]int32{{17 + i}, someTokens(40 + int(i))})[:len(want)]
			if !slices.Equal(got, want) {
				t.Errorf("%s: beside a prompt NMSE %.3g", name, nmse(got, want))
			}
			if got := of[2].step([]int{0}, [][]int32{{17 + i}}); !slices.Equal(got, want) {
				t.Errorf("%s: by the host NMSE %.3g", name, nmse(got, want))
			}
			if e := nmse(want, of[3].step([]int{0}, [][]int32{{17 + i}})); !(e <= 20*cpuNoise) {
				t.Errorf("%s: NMSE against the CPU is %.3g", name, e)
			}
		}
	}
}

// Rounded to eight bits, the Q6_K matrices of a file in Q4_K_M leave a dense model whole.
func TestADenseModelInQ4KMIsOneRequestWhereItIsRounded(t *testing.T) {
	shape := smallShape
	shape.Heads = 4
	load := func() (*gguf.File, error) {
		return synthetic.Build(shape, synthetic.Options{Blocks: gguf.Q4_K, Head: gguf.Q6_K, Finer: gguf.Q6_K, Seed: 7})
	}
	p := newPool(t)
	bundle, b := mixtureOn(t, p, Options{Round: RoundQ8_0}, load)
	got := newFeeder(t, bundle.Model).feed(1, someText(9)...)
	if n := b.Work().Runs; n != 2 { // one when it starts
		t.Errorf("%d requests", n)
	}
	if e := nmse(got, newFeeder(t, onDevice(t, "", Options{}, p, load).Model).feed(1, someText(9)...)); !(e <= cpuNoise) {
		t.Errorf("NMSE against the CPU is %.3g", e)
	}
}

// The emulated device has the same bits; unlike the one in Go it loses TCM between requests.
func TestAnEmulatedStepOfAMixtureHasTheBitsOfTheDeviceInGo(t *testing.T) {
	sweep.Hexagon(t, "qemu-hexagon")
	p, load := newPool(t), fileOf(tinyNets, gguf.Q4_0)
	var logits [2][]float32
	for i, kind := range []string{"hexagon-go", "hexagon-qemu"} {
		f := newFeeder(t, onDevice(t, kind, Options{Path: PathLookup, Decode: true}, p, load).Model)
		for _, token := range someTokens(3) {
			logits[i] = append(logits[i], f.feed(1, token)...)
		}
	}
	if !slices.Equal(logits[0], logits[1]) {
		t.Errorf("NMSE %.3g", nmse(logits[1], logits[0]))
	}
}

// A device whose experts are wrong within such a request is found out.
func TestAWrongExpertOfARequestIsFound(t *testing.T) {
	bundle, b := mixtureOn(t, newPool(t), Options{Path: PathLookup, Decode: true}, fileOf(tinyShared, gguf.Q4_0))
	f := newFeeder(t, bundle.Model)
	f.feed(1, 3)
	l := b.plan.mixture.gated.shared[1].down
	for i := range l.parts[0].M {
		device.View[float32](b.session.request.mem, l.r[0], l.parts[0].M)[i] *= 3
	}
	for range 200 {
		if b.Err() != nil {
			return
		}
		if err := f.seq.Grow(1); err != nil {
			t.Fatal(err)
		}
		f.batch.Reset()
		f.batch.Add(f.seq, f.seq.Len()-1, 1, 9)
		_ = bundle.Model.Forward(&f.batch, f.cache)
	}
	t.Error("an expert is wrong, and nothing says so")
}

// loadedOn loads a model on b and starts it.
func loadedOn(t *testing.T, p *pool.Pool, b *Backend, load func() (*gguf.File, error), between bool) models.Model {
	t.Helper()
	f, err := load()
	if err != nil {
		t.Fatal(err)
	}
	var backend kernels.Backend = b
	if between {
		backend = hostBetween{b}
	}
	bundle, err := models.LoadFile(f, models.LoadOptions{Pool: p, Backend: backend})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bundle.Close() })
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	return bundle.Model
}
