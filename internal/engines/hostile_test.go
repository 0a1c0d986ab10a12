package engines

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/mutate"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/reward"
)

// hostileReaders are files of encoders, rankers and reward models, and what is done with others
// like them.
func hostileReaders(t testing.TB) (names []string, try func(t *testing.T, choices []byte)) {
	t.Helper()
	pool := pool.New(1)
	t.Cleanup(pool.Close)
	for _, dir := range []string{"../../tts/embed/testdata", "../../tts/embed/testdata/reference", "../../tts/reward/testdata"} {
		found, err := filepath.Glob(filepath.Join(dir, "*.gguf"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", dir, err)
		}
		names = append(names, found...)
	}
	var files []*gguf.File
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	unsaid := []string{"pooling_type", "attention.causal", "context_length"}
	return names, func(t *testing.T, choices []byte) {
		i := 0
		if len(choices) > 0 {
			i = int(choices[0]) % len(files)
		}
		f, err := gguf.Parse(mutate.GGUF(files[i], unsaid, mutate.New(choices[min(1, len(choices)):])))
		if err != nil {
			return
		}
		err = parallel.Try(func() error {
			b, err := models.LoadFile(f, models.LoadOptions{Pool: pool})
			if err != nil {
				return err
			}
			defer b.Close()
			return readWith(b)
		})
		var p *parallel.Panic
		if errors.As(err, &p) {
			t.Errorf("%s with %x: %v\n%s", names[i], choices, err, p.Stack)
		}
	}
}

// readWith makes of a model what a server makes of it.
func readWith(b *models.Bundle) error {
	h := &Host{Bundle: b, Served: registry.Served{Model: tts.NewModel(b, nil)}}
	if b.Task() != models.TaskReward {
		return h.giveTask()
	}
	format, err := config.Verifier{Name: "v"}.FormatFor(b.Verifier)
	if err == nil {
		_, err = reward.New(h.Model, format)
	}
	return err
}

func TestHostileReadersAreRefusedOrRead(t *testing.T) {
	names, try := hostileReaders(t)
	for seed := range sweep.Of(t, 10*len(names), 200*len(names)) {
		try(t, binary.LittleEndian.AppendUint64([]byte{byte(seed)}, rand.New(rand.NewPCG(uint64(seed), 0)).Uint64()))
	}
}

func FuzzHostileReaders(f *testing.F) {
	names, try := hostileReaders(f)
	for i := range names {
		f.Add([]byte{byte(i)})
	}
	f.Fuzz(try)
}
