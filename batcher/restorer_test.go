package batcher

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/kv/offload"
	"github.com/lutra-lm/lutra/models/synthetic"
	"github.com/lutra-lm/lutra/models/toy"
)

// storeIn opens the files of a cache in a folder, of a model whose file has a digest.
func storeIn(folder string, cache *kv.Cache, digest func(context.Context) (string, error)) *offload.Store {
	s := offload.DefaultSettings()
	s.Path = folder
	return offload.New(offload.NewFolder(s, zerolog.Nop()), cache, offload.Sources{Digest: digest})
}

// always is the digest of a model's file.
func always(context.Context) (string, error) { return "the model's", nil }

// life runs an engine whose cache has files in a folder, as if the process had just started.
func life(t *testing.T, m models.Model, cache *kv.Cache, opt Options, folder string, f func(*Engine)) (Stats, offload.Stats) {
	t.Helper()
	opt.Disk = storeIn(folder, cache, always)
	e, end := running(t, m, cache, opt)
	f(e)
	st := end()
	opt.Disk.Close()
	return st, opt.Disk.Stats()
}

// persistent is a model with a cache of its own for each life.
type persistent struct {
	name  string
	model models.Model
	cache func() *kv.Cache
	opt   Options
}

func persistents(t *testing.T) (list []persistent) {
	opt := DefaultOptions()
	add := func(name string, m models.Model, o Options, kvOpt kv.Options) {
		list = append(list, persistent{name, m, func() *kv.Cache {
			cache, err := kv.New(m.Config().KV(), kvOpt)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cache.Close() })
			return cache
		}, o})
	}
	m, pool := embeddedModel(t, 2)
	opt.Pool = pool
	for _, kind := range []kv.Type{kv.F16, kv.Int8, kv.Int4} {
		add("attention "+kind.String(), m, opt, kv.Options{Type: kind, BlockLen: 32, Blocks: 64})
		add("blocks of 12 "+kind.String(), m, opt, kv.Options{Type: kind, BlockLen: 12, Blocks: 128})
	}
	for _, arch := range []synthetic.Arch{synthetic.Qwen35, synthetic.NemotronH, synthetic.Mamba2} {
		file, err := synthetic.Build(synthetic.Shape{
			Name: "recurrent", Hidden: 64, FFN: 64, Layers: 4, Heads: 2, KVHeads: 1, HeadDim: 32, Vocab: 300, Context: 1024,
			RopeBase: 10000, TiedEmbedding: true, Arch: arch, Delta: synthetic.Delta{KeyHeads: 2, ValueHeads: 4, Width: 16},
			Spaces: synthetic.Spaces{Pattern: map[bool]string{true: "MMMM", false: "MM-*"}[arch == synthetic.Mamba2], Heads: 4, HeadDim: 16, Groups: 2, Len: 16},
		}, synthetic.Options{Blocks: gguf.F16, Head: gguf.F16, Seed: 2})
		if err != nil {
			t.Fatal(err)
		}
		b, err := models.LoadFile(file, models.LoadOptions{Pool: pool})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		add("recurrent "+string(arch), b.Model, opt, kv.Options{Type: kv.Int8, BlockLen: 16, Blocks: 128, States: 20})
	}
	return list
}

func TestAnEngineReadsThePrefixesOfOneBefore(t *testing.T) {
	sweep.Full(t)
	for _, c := range persistents(t) {
		t.Run(c.name, func(t *testing.T) {
			var prompt []int32
			for i := range 700 {
				prompt = append(prompt, int32((i*i+i*7)%c.model.Config().Vocab))
			}
			params := sampling.Params{MaxTokens: 20, Temperature: 1, Seed: 3}
			ask := func(e *Engine, prompt []int32) (out []string, cached int) {
				s, err := e.Open(t.Context(), prompt)
				if err != nil {
					t.Fatal(err)
				}
				out = answer(t, s, params)
				return out, s.CachedPrompt()
			}
			e, end := running(t, c.model, c.cache(), c.opt)
			want, _ := ask(e, prompt)
			longer := append(slices.Clone(prompt), 5, 6, 7)
			wantLonger, _ := ask(e, longer)
			end()
			folder := t.TempDir()
			_, st := life(t, c.model, c.cache(), c.opt, folder, func(e *Engine) { ask(e, prompt) })
			if st.Written == 0 || st.Dropped+st.Damaged+st.Failures+st.Found > 0 {
				t.Fatalf("the first engine: %+v", st)
			}
			counts, st := life(t, c.model, c.cache(), c.opt, folder, func(e *Engine) {
				got, cached := ask(e, prompt)
				if !slices.Equal(got, want) {
					t.Errorf("after a restart %v, want %v", got, want)
				}
				if l := e.loop.kv.BlockLen(); cached < len(prompt)-l {
					t.Errorf("%d of %d tokens were cached", cached, len(prompt))
				}
				if got, _ := ask(e, longer); !slices.Equal(got, wantLonger) {
					t.Errorf("after a restart %v, want %v", got, wantLonger)
				}
			})
			if st.Read == 0 || st.Damaged+st.Failures > 0 || counts.PromptTokens > 2*40 {
				t.Errorf("the second engine: %+v, %d tokens computed", st, counts.PromptTokens)
			}
		})
	}
}

// Of a prompt whose last message is another one after a restart, files have all that is before that message.
func TestAnEngineReadsWhatIsBeforeAnotherLastMessage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const blockLen = 8
	known := slices.Concat(message(rng, 3, 700), message(rng, 4, 90))
	m, folder, opt := &toy.Model{States: 40}, t.TempDir(), DefaultOptions()
	opt.Control = controls
	for i, least := range []int{0, len(known) - blockLen, len(known) - blockLen} {
		prompt := slices.Concat(known, message(rng, 4, 50+20*i), []int32{1, 5, 9})
		life(t, m, m.NewCache(400, blockLen), opt, folder, func(e *Engine) {
			s, err := e.Open(t.Context(), prompt)
			if err != nil {
				t.Fatal(err)
			}
			p := sampling.Params{MaxTokens: 30}
			if got, want := collect(t, s, p), expect(m, prompt, 30, p); !slices.Equal(got, want) {
				t.Errorf("life %d says %v, want %v", i, got, want)
			}
			if n := s.CachedPrompt(); n < least || n > len(known)+2 {
				t.Errorf("life %d: %d of %d known tokens were read", i, n, len(known))
			}
			s.Close()
		})
	}
}

// The digest of a variant finds its prefixes.
func TestVariantsReadTheirOwnPrefixes(t *testing.T) {
	m := &toy.Model{}
	variant := func(number int32, digest string) *models.Variant {
		v := &models.Variant{Root: kv.Root{Number: number, Name: "same"}}
		if digest != "" {
			v.Root.Digest = func(context.Context) (string, error) { return digest, nil }
		}
		return v
	}
	folder := t.TempDir()
	ask := func(v *models.Variant) (cached int) {
		life(t, m, m.NewCache(100, 4), DefaultOptions(), folder, func(e *Engine) {
			s, err := e.With(v).Open(t.Context(), counting(300))
			if err != nil {
				t.Fatal(err)
			}
			answer(t, s, sampling.Params{MaxTokens: 2})
			cached = s.CachedPrompt()
		})
		return cached
	}
	for _, c := range []struct {
		v    *models.Variant
		want int
	}{{variant(1, "a"), 0}, {variant(2, "b"), 0}, {nil, 0}, {variant(3, ""), 0}, {variant(3, ""), 0}, {variant(1, "a"), 296}, {variant(2, "b"), 296}, {nil, 296}, {variant(1, "c"), 0}} {
		if got := ask(c.v); got != c.want {
			t.Errorf("%+v: %d tokens were cached, want %d", c.v, got, c.want)
		}
	}
}

// What a request with a salt has computed is nobody else's business.
func TestPromptsWithASaltHaveNoFiles(t *testing.T) {
	m, folder := &toy.Model{}, t.TempDir()
	for range 2 {
		counts, st := life(t, m, m.NewCache(100, 4), DefaultOptions(), folder, func(e *Engine) {
			s, err := e.Open(WithSalt(t.Context(), "mine"), counting(300))
			if err != nil {
				t.Fatal(err)
			}
			answer(t, s, sampling.Params{MaxTokens: 2})
		})
		if st != (offload.Stats{}) || counts.PrefixHits > 0 {
			t.Errorf("%+v, %d tokens were cached", st, counts.PrefixHits)
		}
	}
}

// While it is not yet known what the model's file is, a prompt waits; others, and its own end, do not.
func TestOnlyWhoWaitsForFilesWaits(t *testing.T) {
	m := &toy.Model{}
	cache := m.NewCache(64, 4)
	opt := DefaultOptions()
	know := make(chan struct{})
	opt.Disk = storeIn(t.TempDir(), cache, func(ctx context.Context) (string, error) {
		select {
		case <-know:
			return "known", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	e, end := running(t, m, cache, opt)
	long, err := e.Open(t.Context(), counting(60))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	given, err := e.Open(ctx, counting(60))
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan []int32)
	go func() { got <- collect(t, long, sampling.Params{MaxTokens: 3}) }()
	ended := make(chan error)
	go func() {
		for _, err := range given.Generate(ctx, sampling.Params{MaxTokens: 3}) {
			ended <- err
			return
		}
	}()
	short, err := e.Open(t.Context(), counting(3))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(collect(t, short, sampling.Params{MaxTokens: 30})); n != 30 {
		t.Errorf("%d tokens, want 30", n)
	}
	short.Close()
	cancel()
	if err := <-ended; err == nil {
		t.Error("a prompt that has been given up was answered")
	}
	select {
	case <-got:
		t.Error("a prompt was answered before its files could be looked for")
	default:
	}
	close(know)
	if n := len(<-got); n != 3 {
		t.Errorf("%d tokens, want 3", n)
	}
	long.Close()
	end()
	opt.Disk.Close()
}

// Requests with common beginnings come and go in lives of an engine whose cache is small, and files are damaged between
// lives, and during them.
func TestHistoriesOverDamagedFilesGiveTheRightTokens(t *testing.T) {
	for _, states := range []int{0, 6} {
		t.Run(fmt.Sprintf("%d states", states), func(t *testing.T) { damagedHistories(t, states) })
	}
}

func damagedHistories(t *testing.T, states int) {
	m := &toy.Model{States: states}
	rng := rand.New(rand.NewPCG(1, uint64(states)))
	prompts := make([][]int32, 12)
	for i := range prompts {
		if prompts[i] = counting(200 + 40*(i%4)); i > 0 {
			cut := rng.IntN(200)
			prompts[i] = append(slices.Clone(prompts[i-1][:cut]), prompts[i][:100+rng.IntN(500)%len(prompts[i])%100]...)
		}
		for len(prompts[i]) < 300 {
			prompts[i] = append(prompts[i], int32(i))
		}
	}
	params := sampling.Params{MaxTokens: 30}
	var want [][]int32
	for _, p := range prompts {
		e, end := running(t, m, m.NewCache(400, 4), DefaultOptions())
		s, err := e.Open(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, collect(t, s, params))
		s.Close()
		end()
	}
	folder := t.TempDir()
	var total offload.Stats
	damages, lives := 0, sweep.Cases(12, 40)
	for range lives {
		blocks := []int{110, 180, 400}[rng.IntN(3)]
		_, st := life(t, m, m.NewCache(blocks, 4), DefaultOptions(), folder, func(e *Engine) {
			var all sync.WaitGroup
			for i := range prompts {
				if rng.IntN(2) == 0 {
					continue
				}
				gone := rng.IntN(4) == 0
				all.Go(func() {
					s, err := e.Open(t.Context(), prompts[i])
					if err != nil {
						t.Error(err)
						return
					}
					defer s.Close()
					if gone {
						time.AfterFunc(time.Duration(i)*100*time.Microsecond, s.Close)
						for range s.Generate(t.Context(), params) { //nolint:revive // until it is closed
						}
						return
					}
					if got := collect(t, s, params); !slices.Equal(got, want[i]) {
						t.Errorf("prompt %d: %v, want %v", i, got, want[i])
					}
				})
			}
			for range 3 {
				damages += damage(t, rng, folder)
			}
			all.Wait()
		})
		for range 6 {
			damages += damage(t, rng, folder)
		}
		total.Read, total.Damaged, total.Found = total.Read+st.Read, total.Damaged+st.Damaged, total.Found+st.Found
	}
	if damages < 5*lives || total.Damaged < int64(lives/2) || total.Found < int64(75*lives) {
		t.Errorf("%d damages, of which %d were found, and %d tokens read: too little has happened", damages, total.Damaged, total.Found)
	}
}

// damage does to one file what a killed process, a disk or somebody else might have done.
func damage(t *testing.T, rng *rand.Rand, folder string) int {
	files, err := filepath.Glob(filepath.Join(folder, "*", "*.*"))
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, ".json") })
	if len(files) == 0 {
		return 0
	}
	path, other := files[rng.IntN(len(files))], files[rng.IntN(len(files))]
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 {
		return 0
	}
	switch rng.IntN(6) {
	case 0:
		err = os.Truncate(path, int64(rng.IntN(len(data))))
	case 1:
		data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
		err = os.WriteFile(path, data, 0o600)
	case 2: // as a system that lost its power keeps the length of what it has not written
		err = os.WriteFile(path, append(data[:len(data)/3], make([]byte, len(data)-len(data)/3)...), 0o600)
	case 3:
		err = os.Rename(path, other)
	case 4: // killed before the name
		err = os.Rename(path, filepath.Join(filepath.Dir(path), fmt.Sprintf(".partial-%d", rng.IntN(10))))
	case 5:
		err = os.Remove(path)
	}
	if err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
	return 1
}
