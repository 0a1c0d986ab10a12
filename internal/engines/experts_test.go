package engines

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/memory"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// randomMixture is the path of a model whose experts take 10 MB.
func randomMixture(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mixture.gguf")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	shape := synthetic.Shape{Name: "mixture", Hidden: 256, FFN: 512, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 320, Context: 512,
		RopeBase: 10000, TiedEmbedding: true, Arch: synthetic.Qwen3MoE, Experts: synthetic.Experts{Count: 24, Used: 3, FFN: 256}}
	if err := errors.Join(synthetic.Write(f, shape, synthetic.Options{Blocks: gguf.Q8_0, Head: gguf.F16, Seed: 1}), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExpertsBeyondTheirMemoryAreReadWhenTheyAreWanted(t *testing.T) {
	cfg := config.Default()
	cfg.Models, cfg.Verifiers = []config.Model{{Path: randomMixture(t)}}, nil
	cfg.KV.Memory, cfg.Experts.Memory = "8MiB", "2MiB"
	r := run(t, cfg)
	if err := r.answer(r.Hosts[0]); err != nil {
		t.Fatal(err)
	}
	st, ok := r.Hosts[0].Bundle.Experts()
	if !ok || st.Misses == 0 || st.Read == 0 || st.Held == 0 || st.Held > st.Room || st.Bytes > 2<<20 || st.Experts != 48 {
		t.Errorf("the experts are %+v, %t", st, ok)
	}
	r.end()
	if !strings.Contains(r.log.String(), `"experts":48,"in_memory":10`) {
		t.Errorf("the log does not say which experts are in memory:\n%s", r.log.String())
	}
}

func TestExpertsHaveWhatIsFreeUnlessTheyAreGivenMore(t *testing.T) {
	path := randomMixture(t)
	for _, c := range []struct {
		memory, backend string
		room            int64
		stored          bool
	}{
		{"auto", config.CPU, 100 << 20, false},
		{"auto", config.CPU, 8 << 20, true},
		{"auto", config.CPU, 0, true},
		{"64MiB", config.CPU, 8 << 20, false},
	} {
		cfg := config.Default()
		cfg.Models, cfg.Verifiers, cfg.Experts.Memory = []config.Model{{Path: path, Backend: c.backend}}, nil, c.memory
		r := &Runtime{loader: loader{Pool: pool.New(1), shelf: newShelf(), log: zerolog.Nop(), room: func(int64) int64 { return c.room }}, arbiter: batcher.NewStepArbiter()}
		if err := r.load(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		st, stored := r.Hosts[0].Bundle.Experts()
		if stored != c.stored || r.promised() != st.Bytes {
			t.Errorf("%+v: experts stay in the file: %t, %+v", c, stored, st)
		}
		r.Close()
	}
}

func TestMetadataOfTheConfigurationReachesTheModel(t *testing.T) {
	cfg := config.Default()
	cfg.Models, cfg.Verifiers = []config.Model{{Path: randomMixture(t), Metadata: map[string]string{"qwen3moe.expert_used_count": "2"}}}, nil
	r := &Runtime{loader: loader{Pool: pool.New(1), shelf: newShelf(), log: zerolog.Nop(), room: memory.ForWeights}, arbiter: batcher.NewStepArbiter()}
	defer r.Close()
	if err := r.load(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if n := r.Hosts[0].Bundle.Model.Config().ExpertsUsed; n != 2 {
		t.Errorf("a row takes %d experts, want the 2 of the configuration", n)
	}
}
