package probe

import (
	"fmt"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/tts"
)

// Probe is a trained probe: a line for whole answers, and one for those that have come to the end
// of a solution step.
type Probe struct {
	Name   string
	Of     Of
	Layers []int // that it reads, from 0 on, ascending
	Whole  Line
	Step   Line
	Record Record

	digest string // of its file's content; empty: it was read from none
}

// Digest returns the SHA-256 of what the probe's file says.
func (p *Probe) Digest() string { return p.digest }

// Line is a linear function of features, with their standardisation folded into it: the log-odds of
// a right answer.
type Line struct {
	Mean   []float32 // [Layers][Hidden], of the means over the tokens
	Last   []float32 // [Layers][Hidden], of the last token
	Tokens []float32 // by TokenFeatures
	Bias   float32
}

// lines returns a probe's lines in the order of its channels.
func (p *Probe) lines() [2]*Line { return [2]*Line{&p.Whole, &p.Step} }

// Of names the model whose states a probe reads.
type Of struct {
	Name   string // general.name
	Arch   string
	Layers int
	Hidden int
	SHA256 string // of the file that it was trained with; empty: not known
}

// OfModel returns what a probe of a model says of it, but for the digest.
func OfModel(c *models.Config) Of {
	return Of{Name: c.Name, Arch: c.Arch, Layers: c.Layers, Hidden: c.Hidden}
}

// Record says how a probe was trained, and what it is worth on problems that were held out.
type Record struct {
	Problems int
	Answers  int
	AUC      float32
}

// Fits tells why the states of a model are not those that a probe reads; nil: they are.
func (o *Of) Fits(c *models.Config) error {
	if is := OfModel(c); is.Name != o.Name || is.Arch != o.Arch || is.Layers != o.Layers || is.Hidden != o.Hidden {
		return fmt.Errorf("probe: it reads the states of %q (%s, %d layers of %d), and this is %q (%s, %d layers of %d)",
			o.Name, o.Arch, o.Layers, o.Hidden, is.Name, is.Arch, is.Layers, is.Hidden)
	}
	return nil
}

// TokenFeatures are the features of an answer that come of its tokens' probabilities, as files name
// them.
var TokenFeatures = []string{"logprob_mean", "logprob_min", "logprob_sum", "certainty_mean"}

// tokenFeatures appends the features of readings.
func tokenFeatures(dst []float32, r *tts.Readings) []float32 {
	n := float64(max(r.Tokens, 1))
	return append(dst, float32(r.Logprob/n), r.Least, float32(r.Logprob), float32(r.Certainty/n))
}

// Features appends the features that a probe is trained on, [2·Width + len(TokenFeatures)] of
// readings that are the states themselves.
func Features(dst []float32, r *tts.Readings) []float32 {
	n := float32(max(r.Tokens, 1))
	for _, x := range r.Sum {
		dst = append(dst, x/n)
	}
	return tokenFeatures(append(dst, r.Last...), r)
}

// A line reads two numbers of a token, and a probe as many for each of its lines.
const (
	lineChannels = 2
	channels     = 2 * lineChannels
)

// score returns the probability that the answer is, or comes out, right. at is the first of the line's
// channels.
func (l *Line) score(r *tts.Readings, at int) float64 {
	x := float64(l.Bias)
	if r.Tokens > 0 {
		x += float64(r.Sum[at])/float64(r.Tokens) + float64(r.Last[at+1])
	}
	for i, f := range tokenFeatures(nil, r) {
		x += float64(l.Tokens[i]) * float64(f)
	}
	return 1 / (1 + math.Exp(-x))
}

// Read returns what an engine reads for probes of one model, side by side; nil: there are none.
func Read(probes []*Probe) *models.Probe {
	if len(probes) == 0 {
		return nil
	}
	hidden := probes[0].Of.Hidden
	out := &models.Probe{Channels: channels * len(probes)}
	for layer := range probes[0].Of.Layers {
		weights, read := make([]float32, out.Channels*hidden), false
		for i, p := range probes {
			at := slices.Index(p.Layers, layer)
			if at < 0 {
				continue
			}
			read = true
			for k, line := range p.lines() {
				to := weights[(channels*i+lineChannels*k)*hidden:]
				copy(to, line.Mean[at*hidden:(at+1)*hidden])
				copy(to[hidden:], line.Last[at*hidden:(at+1)*hidden])
			}
		}
		if read {
			out.Layers, out.Weights = append(out.Layers, layer), append(out.Weights, weights)
		}
	}
	return out
}
