package tts

import (
	"sync"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts/text"
)

// usualBreakers are the texts across which DRY counts no repetition unless a request names others: llama.cpp's.
var usualBreakers = []string{"\n", ":", "\"", "*"}

// breakers finds such texts in a vocabulary.
type breakers struct {
	speller *text.Speller
	usual   func() *sampling.Breakers // finds usualBreakers, once
}

func newBreakers(s *text.Speller) *breakers {
	b := &breakers{speller: s}
	b.usual = sync.OnceValue(func() *sampling.Breakers { return b.find(usualBreakers) })
	return b
}

// of returns texts as tokens; nil are usualBreakers.
func (b *breakers) of(texts []string) *sampling.Breakers {
	if texts == nil {
		return b.usual()
	}
	return b.find(texts)
}

// find lists the tokens that hold one of the texts, and the tokens that spell one at a text's beginning and after a
// space.
func (b *breakers) find(texts []string) *sampling.Breakers {
	var sequences [][]int32
	for _, t := range texts {
		for _, spelling := range []string{t, " " + t} {
			if ids := b.speller.Tokenizer.Encode(nil, spelling, tokenizer.Options{}); len(ids) > 1 {
				sequences = append(sequences, ids)
			}
		}
	}
	return sampling.NewBreakers(b.speller.Holding(texts), sequences)
}
