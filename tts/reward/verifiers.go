package reward

import (
	"iter"

	"github.com/lutra-lm/lutra/tts"
)

// Model is the reward model itself.
func (v *Scorer) Model() *tts.Model { return v.model }

// Reads reports whether v can judge what m writes: reward models that take the
// generator's very tokens need its vocabulary.
func (v *Scorer) Reads(m *tts.Model) bool {
	if v.format.write != nil {
		return true
	}
	if m.Vocab != v.model.Vocab {
		return false
	}
	for id := range int32(m.Vocab) {
		if m.Tokenizer.Token(id) != v.model.Tokenizer.Token(id) {
			return false
		}
	}
	return true
}

// VerifiersFor are those of the named scorers that can judge what m writes. The
// first one is the default.
func VerifiersFor(m *tts.Model, scorers iter.Seq2[string, *Scorer]) tts.Verifiers {
	v := tts.Verifiers{ByName: map[string]tts.Scorer{}}
	for name, scorer := range scorers {
		if !scorer.Reads(m) {
			continue
		}
		v.ByName[name] = scorer
		if v.Default == "" {
			v.Default = name
		}
	}
	return v
}
