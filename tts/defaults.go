package tts

import (
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// defaultMinP is the truncation of models whose authors name no sampling: docs/adr/0124-sampling.md
// has what it was measured to do.
const defaultMinP = 0.05

// samplingDefaults say how answers of a model are sampled where a request does not.
type samplingDefaults struct {
	Sampling sampling.Config // what the model's author, and who configures it, say
	custom   sampling.Config // of requests of APIs that have no defaults of their own, below Sampling
}

// SampleAs sets how answers are sampled where a request does not say: as the author wants, and
// above all as somebody has configured. A model of whose sampling its author says nothing gets
// a truncation, unless it is one of the small ones that are built in.
func (d *samplingDefaults) SampleAs(author, configured sampling.Config, builtIn bool) {
	d.Sampling, d.custom = configured.Or(author), sampling.Config{}
	if author.Empty() && !builtIn {
		d.custom.MinP = new(float32(defaultMinP))
	}
}

// Defaults returns the sampling of requests that name none. custom has the defaults of the API; if it is
// empty, they are OpenAI's, temperature 1.
func (d *samplingDefaults) Defaults(custom sampling.Config) sampling.Config {
	if custom.Empty() {
		custom = d.custom
	}
	return d.Sampling.Or(custom)
}

// guardPenalty and guardMinP are the frequency penalty and the truncation of answers that end if they repeat themselves. Over the
// 1,024 tokens that terminal and page allow they keep most from doing so: docs/adr/0124-sampling.md has what they were measured to
// do. A penalty alone drives long answers to unlikely tokens, from which a small model does not come back.
const (
	guardPenalty = 0.2
	guardMinP    = 0.1
)

// Guard makes repetition less likely in answers that end if they repeat themselves. It does so where neither the request,
// which has named, nor anybody else says how they are sampled.
func (d *samplingDefaults) Guard(p *sampling.Params, named sampling.Config) {
	if said := named.Or(d.Sampling); !d.custom.Empty() && said.Temperature == nil && said.FrequencyPenalty == nil {
		p.FrequencyPenalty = guardPenalty
		if said.MinP == nil {
			p.MinP = guardMinP
		}
	}
}

// SearchDefaults returns what holds for the candidates of a search whose request says nothing of
// its sampling. The papers draw them from the whole distribution of the model, a little sharpened,
// because a search lives by candidates that differ: neither an author's defaults nor an API's
// apply.
func SearchDefaults() sampling.Config {
	return sampling.Config{Temperature: new(float32(scaling.DefaultTemperature))}
}
