package models

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/disk"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
)

const loras = "testdata/lora"

// loadBase loads a model of testdata/huggingface or testdata/transformers on threads.
func loadBase(t testing.TB, name string, threads int, opt LoadOptions) *Bundle {
	t.Helper()
	opt.Pool = pool.New(threads)
	t.Cleanup(opt.Pool.Close)
	b, err := Load(basePath(name), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func basePath(name string) string {
	if path := filepath.Join("testdata", "transformers", name+".gguf"); isFile(path) {
		return path
	}
	return filepath.Join(directories, name)
}

func isFile(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func adapter(t testing.TB, b *Bundle, path string) *Adapter {
	t.Helper()
	a, err := b.LoadAdapter(filepath.Base(path), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

func variant(t testing.TB, b *Bundle, uses ...Use) *Variant {
	t.Helper()
	v, err := b.Variant(uses...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// feedVariant computes tokens by v alone, and returns the logits of the last out.
func feedVariant(t testing.TB, b *Bundle, v *Variant, kind kv.Type, out int, tokens ...int32) []float32 {
	t.Helper()
	r := newRunner(t, b.Model, kind)
	if err := r.seq.Grow(len(tokens)); err != nil {
		t.Fatal(err)
	}
	r.b.Add(r.seq, 0, out, tokens...)
	r.b.Spans[0].Variant = v
	if err := b.Model.Forward(&r.b, r.kv); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(r.b.Logits)
}

// near fails unless logits are those wanted within 1e-4 of their scale.
func near(t *testing.T, what string, got []float32, want []float64) {
	t.Helper()
	worst, sum := 0.0, 0.0
	for i, x := range got {
		worst, sum = max(worst, math.Abs(float64(x)-want[i])), sum+want[i]*want[i]
	}
	if scale := math.Sqrt(sum / float64(len(got))); len(got) != len(want) || !(worst < 1e-4*scale) {
		t.Errorf("%s: of %d logits, want %d, one differs by %.3g, want less than 1e-4 of their scale, %.3g", what, len(got), len(want), worst, scale)
	}
}

func TestAdaptersGiveTheLogitsOfPEFT(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(loras, "logits.json"))
	if err != nil {
		t.Fatal(err)
	}
	var logits map[string][][]float64
	if err := json.Unmarshal(text, &logits); err != nil {
		t.Fatal(err)
	}
	for name, rows := range logits {
		model := name[:strings.LastIndex(name, "-")]
		b := loadBase(t, model, 1, LoadOptions{Exact: true})
		plain := feedVariant(t, b, nil, kv.F32, len(rows), transformersTokens()...)
		got := feedVariant(t, b, variant(t, b, Use{adapter(t, b, filepath.Join(loras, name)), 1}), kv.F32, len(rows), transformersTokens()...)
		near(t, name, got, slices.Concat(rows...))
		if nmse(plain, got) < 1e-2 {
			t.Errorf("%s changes the logits by %.3g only", name, nmse(plain, got))
		}
	}
}

func TestAFileOfLlamaCppsConverterGivesTheBitsOfTheDirectory(t *testing.T) {
	for base, name := range map[string]string{"llama": "llama-all", "qwen3_moe": "qwen3_moe-modules"} {
		b := loadBase(t, base, 1, LoadOptions{})
		logits := func(path string) []float32 {
			return feedVariant(t, b, variant(t, b, Use{adapter(t, b, filepath.Join(loras, path)), 0.5}), kv.F16, 8, transformersTokens()...)
		}
		compareBits(t, name, logits(name+".gguf"), logits(name))
	}
}

func TestAnAdapterIsWhatItsProductIsMergedIntoTheWeights(t *testing.T) {
	b := loadBase(t, "llama", 1, LoadOptions{Exact: true})
	one, two := adapter(t, b, loras+"/llama-all.gguf"), adapter(t, b, loras+"/llama-some")
	base, err := Open(filepath.Join(directories, "llama"))
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	uses := []Use{{one, 0.75}, {two, -1.5}}
	merged := merge(t, base, uses)
	m, err := loadModel(merged, LoadOptions{Pool: b.exec.pool, Exact: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	var want []float64
	for _, x := range newRunner(t, m, kv.F32).feed(40, transformersTokens()...) {
		want = append(want, float64(x))
	}
	near(t, "two adapters", feedVariant(t, b, variant(t, b, uses...), kv.F32, 40, transformersTokens()...), want)
}

// adaptedParts are the matrices of layers that drawn adapters add to.
var adaptedParts = []string{
	"attn_q.weight", "attn_q_a.weight", "attn_q_b.weight", "attn_kv_a_mqa.weight", "attn_output.weight", "attn_k_b.weight", "attn_v_b.weight", "ffn_gate_inp.weight",
	"ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight", "ffn_gate_shexp.weight", "ffn_up_shexp.weight", "ffn_down_shexp.weight",
	"ffn_latent_down.weight", "ffn_latent_up.weight", "ssm_in.weight", "ssm_out.weight",
}

// drawnAdapter writes an adapter of base, as llama.cpp's converter does, and tells which parts of
// layers it changes.
func drawnAdapter(t testing.TB, base *gguf.File, seed uint64) (path string, parts map[string]bool) {
	t.Helper()
	arch, _ := base.Metadata.String("general.architecture")
	rng, tensors := rand.New(rand.NewPCG(5, seed)), []gguf.Tensor(nil)
	parts = map[string]bool{}
	for i := range base.Tensors {
		w := &base.Tensors[i]
		_, part, _ := strings.Cut(strings.TrimPrefix(w.Name, "blk."), ".")
		if !slices.Contains(adaptedParts, part) {
			continue
		}
		parts[part] = true
		const rank = 3
		down, up := append([]int{w.Cols(), rank}, w.Dims[2:]...), append([]int{rank}, w.Dims[1:]...)
		switch part { // one for all heads, as kv_b_proj's have
		case "attn_v_b.weight":
			down = down[:2]
		case "attn_k_b.weight":
			up = up[:2]
		}
		for _, of := range []gguf.Tensor{{Name: w.Name + downName, Dims: down}, {Name: w.Name + upName, Dims: up}} {
			for range of.Len() {
				of.Data = binary.LittleEndian.AppendUint32(of.Data, math.Float32bits(float32(rng.NormFloat64()/math.Sqrt(float64(of.Dims[0])))))
			}
			of.Type = gguf.F32
			tensors = append(tensors, of)
		}
	}
	var out bytes.Buffer
	path = filepath.Join(t.TempDir(), "adapter.gguf")
	md := gguf.Metadata{keyType: "adapter", keyAdapterType: "lora", keyAlpha: float32(3), "general.architecture": arch}
	if err := errors.Join(gguf.Write(&out, md, tensors), os.WriteFile(path, out.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path, parts
}

// Latents, heads' matrices, state spaces and mixtures: with experts that all rows take, biases, a feed-forward
// beside, without gates, in a latent space.
func TestAdaptersOfHeadsAndExpertsAreWhatTheirProductIsMergedIntoTheWeights(t *testing.T) {
	for _, name := range []string{"deepseek2", "deepseek2-v3", "gpt-oss", "gemma4-moe", "qwen2moe", "nemotron_h_moe-latent"} {
		b := loadBase(t, name, 2, LoadOptions{Exact: true})
		file, parts := drawnAdapter(t, b.file, 5)
		if len(parts) < 6 {
			t.Fatalf("%s has %v alone", name, parts)
		}
		uses := []Use{{adapter(t, b, file), 0.75}}
		m, err := loadModel(merge(t, b.file, uses), LoadOptions{Pool: b.exec.pool, Exact: true})
		if err != nil {
			t.Fatal(err)
		}
		defer m.close()
		var want []float64
		for _, x := range newRunner(t, m, kv.F32).feed(40, transformersTokens()...) {
			want = append(want, float64(x))
		}
		got := feedVariant(t, b, variant(t, b, uses...), kv.F32, 40, transformersTokens()...)
		near(t, name, got, want)
		if plain := feedVariant(t, b, nil, kv.F32, 40, transformersTokens()...); nmse(plain, got) < 1e-3 {
			t.Errorf("%s changes the logits by %.3g only", name, nmse(plain, got))
		}
	}
}

// merge returns a copy of base with W + scale·strength·B·A in place of each W.
func merge(t *testing.T, base *gguf.File, uses []Use) *gguf.File {
	t.Helper()
	floats := func(x *gguf.Tensor) []float32 {
		v := make([]float32, x.Len())
		if err := x.Dequantize(v, 0); err != nil {
			t.Fatal(err)
		}
		return v
	}
	var tensors []gguf.Tensor
	all := slices.Clone(base.Tensors)
	if base.Tensor(outputTensor) == nil { // it is the embedding, which an adapter leaves as it is
		output := *base.Tensor("token_embd.weight")
		output.Name = outputTensor
		all = append(all, output)
	}
	arch, _ := base.Metadata.String("general.architecture")
	for _, src := range all {
		w := floats(&src)
		for _, u := range uses {
			a, b := u.Adapter.file.Tensor(src.Name+downName), u.Adapter.file.Tensor(src.Name+upName)
			if a == nil {
				continue
			}
			strength, err := adapterStrength(u.Adapter.file.Metadata, arch)
			if err != nil {
				t.Fatal(err)
			}
			down, up, rank, cols := floats(a), floats(b), a.Dims[1], a.Cols()
			for r := range src.Rows() {
				m := r / src.Dims[1] // of the matrices, which may have one in common
				for k := range rank {
					f := u.Scale * strength(src.Name, rank) * up[(r*rank+k)%len(up)]
					for c := range cols {
						w[r*cols+c] += f * down[((m*rank+k)*cols+c)%len(down)]
					}
				}
			}
		}
		raw := make([]byte, 0, 4*len(w))
		for _, x := range w {
			bits := math.Float32bits(x)
			raw = append(raw, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
		}
		tensors = append(tensors, gguf.Tensor{Name: src.Name, Type: gguf.F32, Dims: src.Dims}.At(disk.InMemory(raw), 0))
	}
	f, err := gguf.Assemble(maps.Clone(base.Metadata), tensors, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Workers that take shards of rows, a pool that divides products, and rows that it divides.
func TestRowsOfOtherAdaptersInOneBatchHaveTheBitsTheyHaveAlone(t *testing.T) {
	sweep.NoEmulator(t)
	for _, c := range []struct {
		model   string
		threads int
		alone   bool
	}{{"llama", 1, true}, {"llama", 3, false}, {"deepseek2-dense", 3, true}, {"deepseek2-v3", 3, false}, {"llama", 1, false}, {"llama", 3, true}, {"deepseek2-dense", 3, false}, {"deepseek2-v3", 1, false}}[:sweep.Cases(4, 8)] {
		threads, alone := c.threads, c.alone
		b := loadBase(t, c.model, threads, LoadOptions{})
		paths := []string{loras + "/llama-all.gguf", loras + "/llama-some", loras + "/llama-ranks"}
		for i := range paths {
			if c.model != "llama" {
				paths[i], _ = drawnAdapter(t, b.file, uint64(i))
			}
		}
		one, two, three := adapter(t, b, paths[0]), adapter(t, b, paths[1]), adapter(t, b, paths[2])
		all := []*Variant{nil, variant(t, b, Use{one, 1}), variant(t, b, Use{two, 0.5}), variant(t, b, Use{three, -1}, Use{one, 0.25}), variant(t, b, Use{one, 0.5}, Use{two, 2}, Use{three, 1})}
		if variant(t, b, Use{one, 0.25}, Use{two, 0}, Use{three, -1}) != all[3] || variant(t, b, Use{one, 0}) != nil {
			t.Error("equal uses are not one variant")
		}
		b.exec.alone = alone
		rng := rand.New(rand.NewPCG(1, uint64(threads)))
		cache, err := kv.New(b.Model.Config().KV(), kv.Options{BlockLen: 16, Blocks: 400})
		if err != nil {
			t.Fatal(err)
		}
		type run struct {
			v      *Variant
			tokens []int32
			want   []float32
			seq    *kv.Sequence
			done   int
		}
		runs := make([]*run, 20)
		text := transformersTokens()
		for i := range runs {
			r := &run{v: all[i%len(all)], tokens: text[:20+rng.IntN(21)]}
			r.want = feedVariant(t, b, r.v, kv.F16, len(r.tokens), r.tokens...)
			runs[i] = r
		}
		width := b.Model.Config().Outputs
		hits := false
		for step, left := 0, len(runs); left > 0; step++ {
			var batch Batch
			var planned []*run
			for _, r := range runs[:min(len(runs), 2+2*step)] {
				if r.done == len(r.tokens) || rng.IntN(3) == 0 {
					continue
				}
				if r.seq == nil {
					r.seq = cache.OpenOf(r.v.KVRoot(), r.tokens[:len(r.tokens)-1])
					r.done = r.seq.Len()
					hits = hits || r.done > 0
				}
				n := 1 + rng.IntN(min(17, len(r.tokens)-r.done))
				if err := r.seq.Grow(n); err != nil {
					t.Fatal(err)
				}
				batch.Add(r.seq, r.done, rng.IntN(n+1), r.tokens[r.done:r.done+n]...)
				batch.Spans[len(planned)].Variant = r.v
				planned = append(planned, r)
			}
			if len(planned) == 0 {
				continue
			}
			if err := b.Model.Forward(&batch, cache); err != nil {
				t.Fatal(err)
			}
			row := 0
			for i, r := range planned {
				sp := &batch.Spans[i]
				r.done += sp.End - sp.Start
				for j := r.done - sp.Out; j < r.done; j++ {
					compareBits(t, fmt.Sprintf("%s, threads %d, alone %t, position %d", c.model, threads, alone, j), rowOf(batch.Logits, row, width), rowOf(r.want, j, width))
					row++
				}
				if r.seq.Seal(r.tokens[:r.done]); r.done == len(r.tokens) {
					r.seq.Release()
					left--
				}
			}
			if err := cache.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if !hits {
			t.Error("no sequence began with what the cache held")
		}
		cache.Close()
	}
}

// What observers of the cache are told of a variant is the same in every process.
func TestARootIsNamedAfterItsAdapterOrAfterItsScales(t *testing.T) {
	b := loadBase(t, "llama", 1, LoadOptions{})
	one, two := adapter(t, b, loras+"/llama-all.gguf"), adapter(t, b, loras+"/llama-some")
	two.Scale = 0.5
	digests := map[string]bool{}
	for i, c := range []struct {
		uses []Use
		id   int
		name string
	}{
		{[]Use{{one, 1}}, 1, "llama-all.gguf"},
		{[]Use{{two, 0.5}, {one, 0}}, 2, "llama-some"},
		{[]Use{{two, 1}}, 0, "llama-some=1"},
		{[]Use{{two, 0.5}, {one, 0.1}}, 0, "llama-all.gguf=0.1+llama-some=0.5"},
	} {
		want := kv.Root{Number: int32(i + 1), ID: c.id, Name: c.name}
		if c.id == 0 {
			sum := sha256.Sum256([]byte(c.name))
			want.ID, want.Name = 1<<30+int(binary.BigEndian.Uint32(sum[:])/4), fmt.Sprintf("%x", sum[:8])
		}
		got := variant(t, b, c.uses...).Root
		digest, err := got.Digest(t.Context())
		if err != nil || digests[digest] {
			t.Errorf("digest %q of %s, %v, want one of its own", digest, c.name, err)
		}
		digests[digest], got.Digest = true, nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("root %+v of %s, want %+v", got, c.name, want)
		}
	}
}

func TestAWarmStepOfAdaptersAllocatesNothing(t *testing.T) {
	sweep.NoEmulator(t)
	for base, names := range map[string][]string{"llama": {"llama-all.gguf", "llama-some"}, "deepseek2": {"deepseek2-latent", "deepseek2-modules"}} {
		warmStepOfAdapters(t, loadBase(t, base, 1, LoadOptions{}), names)
	}
}

func warmStepOfAdapters(t *testing.T, b *Bundle, names []string) {
	one, two := adapter(t, b, filepath.Join(loras, names[0])), adapter(t, b, filepath.Join(loras, names[1]))
	vs := []*Variant{nil, variant(t, b, Use{one, 1}), variant(t, b, Use{two, 0.5}, Use{one, 1})}
	cache, err := kv.New(b.Model.Config().KV(), kv.Options{BlockLen: 16, Blocks: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	var seqs []*kv.Sequence
	for _, v := range vs {
		s := cache.OpenOf(v.KVRoot(), nil)
		if err := s.Grow(200); err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, s)
	}
	var batch Batch
	pos := 0
	step := func() {
		batch.Reset()
		for i, s := range seqs {
			batch.Add(s, pos, 1, 7, 8, 9)
			batch.Spans[i].Variant = vs[i]
		}
		if err := b.Model.Forward(&batch, cache); err != nil {
			t.Fatal(err)
		}
		pos += 3
	}
	for pos < 120 {
		step()
	}
	if n := testing.AllocsPerRun(20, step); n != 0 {
		t.Errorf("a step of %s allocates %v times", b.Name, n)
	}
}

// changedAdapter returns the adapter llama-all.gguf, in types, with changes.
func changedAdapter(t testing.TB, change func(md gguf.Metadata, tensors map[string]*gguf.Tensor)) *gguf.File {
	t.Helper()
	raw, err := os.ReadFile(loras + "/llama-all.gguf")
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]*gguf.Tensor{}
	for i := range f.Tensors {
		by[f.Tensors[i].Name] = &f.Tensors[i]
	}
	change(f.Metadata, by)
	var tensors []gguf.Tensor
	for _, name := range slices.Sorted(maps.Keys(by)) {
		tensors = append(tensors, gguf.Tensor{Name: name, Type: by[name].Type, Dims: by[name].Dims}.At(disk.InMemory(by[name].Data), 0))
	}
	out, err := gguf.Assemble(f.Metadata, tensors, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAdaptersOfOtherModelsAreRefusedByName(t *testing.T) {
	b := loadBase(t, "llama", 1, LoadOptions{})
	const q = "blk.0.attn_q.weight"
	for want, change := range map[string]func(md gguf.Metadata, ts map[string]*gguf.Tensor){
		`general.type is "model", want "adapter"`:                      func(md gguf.Metadata, _ map[string]*gguf.Tensor) { md[keyType] = "model" },
		`adapter.type is "", want "lora"`:                              func(md gguf.Metadata, _ map[string]*gguf.Tensor) { delete(md, keyAdapterType) },
		`general.architecture is "qwen2", want "llama"`:                func(md gguf.Metadata, _ map[string]*gguf.Tensor) { md["general.architecture"] = "qwen2" },
		`adapter.lora.alpha is NaN, want a finite number`:              func(md gguf.Metadata, _ map[string]*gguf.Tensor) { md[keyAlpha] = float32(math.NaN()) },
		`adapter.lora.alpha is <nil>, want a finite number`:            func(md gguf.Metadata, _ map[string]*gguf.Tensor) { delete(md, keyAlpha) },
		`adapter.alora.invocation_tokens: adapters that tokens invoke`: func(md gguf.Metadata, _ map[string]*gguf.Tensor) { md[keyInvocation] = []int32{1} },
		`tensor blk.7.attn_q.weight.lora_a: the model has no tensor`:   func(_ gguf.Metadata, ts map[string]*gguf.Tensor) { ts["blk.7.attn_q.weight.lora_a"] = ts[q+downName] },
		`tensor token_embd.weight.lora_a: adapters of token_embd.weight`: func(_ gguf.Metadata, ts map[string]*gguf.Tensor) {
			ts["token_embd.weight.lora_a"] = ts[q+downName]
			ts["token_embd.weight.lora_b"] = ts[q+upName]
		},
		`tensor blk.0.attn_q.weight.lora_m: its name ends with neither`: func(_ gguf.Metadata, ts map[string]*gguf.Tensor) { ts[q+".lora_m"] = ts[q+downName] },
		`tensor blk.0.attn_q.weight.lora_b is missing`:                  func(_ gguf.Metadata, ts map[string]*gguf.Tensor) { delete(ts, q+upName) },
		`tensor blk.0.attn_q.weight.lora_a is missing`:                  func(_ gguf.Metadata, ts map[string]*gguf.Tensor) { delete(ts, q+downName) },
		`tensor blk.0.attn_q.weight.lora_b has shape [4 16], want`:      func(_ gguf.Metadata, ts map[string]*gguf.Tensor) { ts[q+upName] = ts["blk.0.attn_k.weight"+upName] },
		`tensor blk.0.attn_q.weight.lora_a has rank 513, want 1 to 512`: func(_ gguf.Metadata, ts map[string]*gguf.Tensor) {
			ts[q+downName] = &gguf.Tensor{Type: gguf.F32, Dims: []int{32, 513}, Data: make([]byte, 4*32*513)}
		},
		`tensor blk.0.attn_q.weight.lora_a has storage type Q4_0, want`: func(_ gguf.Metadata, ts map[string]*gguf.Tensor) {
			ts[q+downName] = &gguf.Tensor{Type: gguf.Q4_0, Dims: []int{32, 4}, Data: make([]byte, 4*18)}
		},
		`tensor blk.0.attn_q.weight.lora_a: row 1 holds a number that`: func(_ gguf.Metadata, ts map[string]*gguf.Tensor) {
			ts[q+downName] = &gguf.Tensor{Type: gguf.F32, Dims: []int{32, 4}, Data: slices.Concat(make([]byte, 4*32+2), []byte{0xc0, 0x7f}, make([]byte, 3*4*32-4))}
		},
		`tensor blk.0.attn_q.weight.lora_a has shape [32 4 2], want`: func(_ gguf.Metadata, ts map[string]*gguf.Tensor) {
			ts[q+downName] = &gguf.Tensor{Type: gguf.F32, Dims: []int{32, 4, 2}, Data: make([]byte, 4*32*4*2)}
		},
		`it has no tensors`: func(_ gguf.Metadata, ts map[string]*gguf.Tensor) { clear(ts) },
	} {
		if _, err := loadAdapter(changedAdapter(t, change), b.exec, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("loading gave %v, want an error that says %q", err, want)
		}
	}
	one := adapter(t, b, loras+"/llama-all.gguf")
	other := loadBase(t, "mistral", 1, LoadOptions{})
	if _, err := other.Variant(Use{one, 1}); !errors.Is(err, ErrAdapter) {
		t.Errorf("an adapter of another model: %v", err)
	}
	if _, err := b.Variant(Use{one, 1}, Use{one, 2}); !errors.Is(err, ErrAdapter) {
		t.Errorf("an adapter twice: %v", err)
	}
	if _, err := b.Variant(Use{one, float32(math.Inf(1))}); !errors.Is(err, ErrAdapter) {
		t.Errorf("an infinite scale: %v", err)
	}
	r := newRunner(t, other.Model, kv.F16)
	if err := r.seq.Grow(1); err != nil {
		t.Fatal(err)
	}
	r.b.Add(r.seq, 0, 1, 1)
	r.b.Spans[0].Variant = variant(t, b, Use{one, 1})
	if err := other.Model.Forward(&r.b, r.kv); !errors.Is(err, ErrBatch) {
		t.Errorf("a step by a variant of another model: %v", err)
	}
}

func TestAdaptersOfEachTypeComputeWithFloats(t *testing.T) {
	b := loadBase(t, "llama", 1, LoadOptions{})
	want := feedVariant(t, b, variant(t, b, Use{adapter(t, b, loras+"/llama-all.gguf"), 1}), kv.F32, 8, transformersTokens()...)
	for _, kind := range []gguf.Type{gguf.F16, gguf.BF16, gguf.Q8_0} {
		f := changedAdapter(t, func(_ gguf.Metadata, ts map[string]*gguf.Tensor) {
			for _, x := range ts {
				if x.Cols()%kind.BlockLen() != 0 {
					continue
				}
				v := make([]float32, x.Len())
				if err := x.Dequantize(v, 0); err != nil {
					t.Fatal(err)
				}
				x.Type, x.Data = kind, encodeAs(t, kind, v)
			}
		})
		a, err := loadAdapter(f, b.exec, nil)
		if err != nil {
			t.Fatalf("%v: %v", kind, err)
		}
		defer a.Close()
		got := feedVariant(t, b, variant(t, b, Use{a, 1}), kv.F32, 8, transformersTokens()...)
		if e := nmse(got, want); e == 0 || e > 2e-2 {
			t.Errorf("%v changes the logits by %.3g", kind, e)
		}
	}
}

// encodeAs rounds v to a type.
func encodeAs(t testing.TB, kind gguf.Type, v []float32) (raw []byte) {
	t.Helper()
	switch kind {
	case gguf.F16:
		for _, x := range v {
			h := vector.ToF16(x)
			raw = append(raw, byte(h), byte(h>>8))
		}
	case gguf.BF16:
		for _, x := range v {
			h := math.Float32bits(x) >> 16
			raw = append(raw, byte(h), byte(h>>8))
		}
	case gguf.Q8_0:
		for ; len(v) > 0; v = v[32:] {
			h := vector.ToF16(1.0 / 64)
			raw = append(raw, byte(h), byte(h>>8))
			for _, x := range v[:32] {
				raw = append(raw, byte(int8(max(-127, min(127, math.Round(float64(x)*64))))))
			}
		}
	}
	return raw
}
