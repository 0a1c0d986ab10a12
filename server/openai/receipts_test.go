package openai

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts"
)

func TestMain(m *testing.M) {
	cpulimit.OnWait = func() { panic("something is waited for within a place of cpulimit") }
	os.Exit(m.Run())
}

// fromFile loads a model from a file that is read in several pieces.
func fromFile(t *testing.T) *tts.Model {
	t.Helper()
	data, err := embedded.Data(embedded.Default)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, append(data[:len(data):len(data)], make([]byte, 8<<20)...), 0o600); err != nil {
		t.Fatal(err)
	}
	p := pool.New(1)
	t.Cleanup(p.Close)
	b, err := models.Load(path, models.LoadOptions{Pool: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	cache, err := kv.New(b.Model.Config().KV(), kv.Options{Type: kv.F16, BlockLen: 32, Blocks: 8})
	if err != nil {
		t.Fatal(err)
	}
	return tts.NewModel(b, batcher.New(b.Model, cache, batcher.DefaultOptions()))
}

// TestReceiptsHoldUpNoOtherWork has more receipts begin at once than there are places beside the
// engines, one of which is given up, while a long text is encoded. A bubble in which each waits
// for another ends at once.
func TestReceiptsHoldUpNoOtherWork(t *testing.T) {
	m := fromFile(t)
	text := strings.Repeat("A box holds 12 eggs. ", 48<<10/21)
	want := len(m.Tokenizer.Encode(nil, text, tokenizer.Options{ParseSpecial: true}))
	places := max(1, runtime.GOMAXPROCS(0)/4)
	synctest.Test(t, func(t *testing.T) {
		var leave []func()
		for range places {
			_, l, err := cpulimit.Enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			leave = append(leave, l)
		}
		gone, cancel := context.WithCancel(t.Context())
		asked := make(chan error)
		for i := range places + 2 {
			ctx := t.Context()
			if i == 1 {
				ctx = gone
			}
			go func() {
				got, err := receiptModel(ctx, m)
				if err == nil && len(got.SHA256) != 64 {
					t.Errorf("a receipt without a hash: %+v", got)
				}
				asked <- err
			}()
		}
		synctest.Wait() // all wait
		cancel()
		if err := <-asked; !errors.Is(err, context.Canceled) {
			t.Errorf("whoever left gets %v", err)
		}
		encoded := make(chan int)
		go func() {
			p, err := m.Prepare(t.Context(), &tts.Prompt{Text: text, NoBOS: true}, 0)
			if err != nil {
				t.Error(err)
			}
			encoded <- len(p.Tokens)
		}()
		synctest.Wait()
		for _, l := range leave {
			l()
		}
		if got := <-encoded; got != want {
			t.Errorf("a long text has %d tokens, want %d", got, want)
		}
		for range places + 1 {
			if err := <-asked; err != nil {
				t.Error(err)
			}
		}
	})
}
