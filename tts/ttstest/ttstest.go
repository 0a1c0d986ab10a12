// Package ttstest runs models for the tests of tts and its parts.
package ttstest

import (
	"context"
	"hash/fnv"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/tts"
)

// Words returns the embedded models' tokenizer.
func Words(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	file, err := embedded.Open(embedded.Default)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.New(file.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// Run starts an engine for m, which must be left clean when the test ends.
func Run(t testing.TB, m *toy.Model) *tts.Model {
	t.Helper()
	return RunOn(t, m, 256, batcher.DefaultOptions())
}

// RunOn does what Run does, with blocks KV blocks of 16 tokens.
func RunOn(t testing.TB, m *toy.Model, blocks int, opt batcher.Options) *tts.Model {
	t.Helper()
	tok := Words(t)
	m.Vocab = tok.Size()
	tmpl, err := template.Parse(template.ChatML)
	if err != nil {
		t.Fatal(err)
	}
	kv := m.NewCache(blocks, 16)
	engine := batcher.New(m, kv, opt)
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		engine.Run(ctx)
	}()
	t.Cleanup(func() {
		drain, done := context.WithTimeout(context.Background(), 20*time.Second)
		defer done()
		if err := engine.Drain(drain); err != nil {
			t.Errorf("Drain() = %v: a sequence was left open", err)
		}
		for engine.Stats().Used > 0 && drain.Err() == nil { // the step after the close frees
			runtime.Gosched()
		}
		cancel()
		<-stopped
		if err := kv.Check(); err != nil {
			t.Error(err)
		}
	})
	return tts.NewModel(&models.Bundle{Name: "toy", Model: m, Tokenizer: tok, Template: tmpl}, engine)
}

// Asked is the question that Request asks.
const Asked = "Q: "

// Request asks the toy models' question.
func Request(seed uint64, n int) *tts.Request {
	return &tts.Request{Prompt: tts.Prompt{Text: Asked, NoBOS: true}, N: n, Sampling: sampling.Params{Temperature: 0.8, Seed: seed}}
}

// Thinks makes a toy model that answers the prompt Asked with one to three
// lines of a random digit each, and a last line with a random digit. A 3 makes
// a line the last but one.
func Thinks(t testing.TB) *toy.Model {
	tok := Words(t)
	encode := func(s string) []int32 { return tok.Encode(nil, s, tokenizer.Options{}) }
	digits := slices.Concat(encode("1"), encode("2"), encode("3"))
	line, tail := encode(".\n"), encode("Answer: ")
	end, _ := tok.EOS()
	prompt := len(encode(Asked))
	return &toy.Model{Logits: func(tokens []int32, row []float32) {
		clear(row)
		allow := func(ids ...int32) {
			for _, id := range ids {
				row[id] = 50
			}
		}
		said := tokens[min(prompt, len(tokens)):]
		for last, lines := false, 0; !last && lines < 3; lines++ {
			if len(said) == 0 {
				allow(digits...)
				return
			}
			if len(said) <= len(line) {
				allow(line[len(said)-1])
				return
			}
			last = said[0] == digits[2]
			said = said[1+len(line):]
		}
		switch n := len(said); {
		case n < len(tail):
			allow(tail[n])
		case n == len(tail):
			allow(digits...)
		default:
			allow(end)
		}
	}}
}

// Opine returns a score in [0, 1] that depends on tokens alone.
func Opine(ids []int32) float32 {
	h := fnv.New32a()
	for _, id := range ids {
		h.Write([]byte{byte(id), byte(id >> 8)})
	}
	return float32(h.Sum32()%1009) / 1008
}

// ServeBundle runs a loaded model on a pool until the test ends.
func ServeBundle(t testing.TB, b *models.Bundle, kind kv.Type, pool *pool.Pool) *tts.Model {
	t.Helper()
	cache, err := kv.New(b.Model.Config().KV(), kv.Options{Type: kind, BlockLen: 16, Blocks: 4096})
	if err != nil {
		t.Fatal(err)
	}
	opt := batcher.DefaultOptions()
	opt.Pool = pool
	e := batcher.New(b.Model, cache, opt)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		drain, stop := context.WithTimeout(context.Background(), 20*time.Second)
		defer stop()
		if err := e.Drain(drain); err != nil {
			t.Errorf("%s: a sequence was left open: %v", b.Name, err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return tts.NewModel(b, e)
}
