package tts_test

import (
	"errors"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/regex"
	. "github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/structure"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// dry is the rules of a word behind which a rule stands for nothing.
type dry struct{ word regex.Expr }

func (d dry) Terminal(s grammar.Symbol) (regex.Expr, bool) { return d.word, s == 1 }

func (d dry) Alternatives(s grammar.Symbol) [][]grammar.Symbol {
	if s == 0 {
		return [][]grammar.Symbol{{1, 2}}
	}
	return nil
}

func TestAFormatThatLeadsToADeadEndIsNoFaultOfTheRequest(t *testing.T) {
	m := ttstest.Run(t, ttstest.Eager(t))
	a := regex.New()
	g, err := grammar.New(a, dry{a.Repeat(a.Byte('a'), 1, 2)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	req := ttstest.Request(3, 1)
	req.Format = structure.New(g, structure.Vocabulary(m.Tokenizer), structure.TokensOf(m.Tokenizer))
	var failed error
	for _, err := range (Single{m}).Run(t.Context(), req) {
		failed = errors.Join(failed, err)
	}
	if !errors.Is(failed, sampling.ErrSample) || errors.Is(failed, sampling.ErrForbidden) {
		t.Errorf("it fails with %v, want %v alone", failed, sampling.ErrSample)
	}
}
