package tts

import (
	"math"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/generation"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// defaultMinP is the truncation of models whose authors name no sampling: docs/adr/0124-sampling.md
// has what it was measured to do.
const defaultMinP = 0.05

// SampleAs sets how answers are sampled where a request does not say: as the author wants, and
// above all as somebody has configured. A model of whose sampling its author says nothing gets
// a truncation, unless it is one of the small ones that are built in.
func (m *Model) SampleAs(author, configured generation.Config, builtIn bool) {
	m.Sampling, m.custom = configured.Or(author), generation.Config{}
	if author.Empty() && !builtIn {
		m.custom.MinP = new(float32(defaultMinP))
	}
}

// Defaults returns what holds for requests that say nothing of their sampling, in an API of which
// custom has the defaults; an empty one has those of OpenAI's, temperature 1.
func (m *Model) Defaults(custom generation.Config) generation.Config {
	if custom.Empty() {
		custom = m.custom
	}
	return m.Sampling.Or(custom)
}

// SearchDefaults returns what holds for the candidates of a search whose request says nothing of
// its sampling. The papers draw them from the whole distribution of the model, a little sharpened,
// because a search lives by candidates that differ: neither an author's defaults nor an API's
// apply.
func SearchDefaults() generation.Config {
	return generation.Config{Temperature: new(float32(scaling.DefaultTemperature))}
}

// SetSampling has p sample as c says, and plainly where c says nothing.
func SetSampling(p *sampling.Params, c generation.Config) {
	c = c.Or(generation.Plain())
	p.Temperature, p.TopK, p.TopP, p.MinP, p.TypicalP = *c.Temperature, *c.TopK, *c.TopP, *c.MinP, *c.TypicalP
	if p.TopP == 0 { // the smallest nucleus; 0 would mean none to the sampler
		p.TopP = math.SmallestNonzeroFloat32
	}
	p.RepetitionPenalty, p.RepetitionWindow = 0, 0
	if *c.RepetitionPenalty != 1 && *c.RepeatLastN != 0 {
		p.RepetitionPenalty, p.RepetitionWindow = *c.RepetitionPenalty, max(*c.RepeatLastN, 0)
	}
	p.PresencePenalty, p.FrequencyPenalty = *c.PresencePenalty, *c.FrequencyPenalty
}

// SamplingOf returns how p samples: the temperature, and what is not plain beside it.
func SamplingOf(p *sampling.Params) generation.Config {
	c := generation.Config{
		Temperature: &p.Temperature, TopK: named(p.TopK, 0), TopP: named(p.TopP, 1), MinP: named(p.MinP, 0), TypicalP: named(p.TypicalP, 1),
		RepetitionPenalty: named(p.RepetitionPenalty, 1), PresencePenalty: named(p.PresencePenalty, 0), FrequencyPenalty: named(p.FrequencyPenalty, 0),
	}
	if c.RepetitionPenalty != nil {
		c.RepeatLastN = new(p.RepetitionWindow)
		if p.RepetitionWindow == 0 {
			*c.RepeatLastN = -1
		}
	}
	return c
}

// named returns nil for a value that changes nothing: plain, or 0 where that is off too.
func named[T int | float32](value, plain T) *T {
	if value == plain || value == 0 {
		return nil
	}
	return &value
}
