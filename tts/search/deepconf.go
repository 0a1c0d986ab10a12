package search

import (
	"cmp"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

func init() { methods[scaling.DeepConfidence] = methodRow{start: startDeepConf, scorer: byConfidence} }

// byConfidence scores by the mean confidence of all tokens, brought into [0, 1) by
// x/(1+x): many nats are common. What votes weigh is found when the search knows its window.
func byConfidence() tts.Scorer {
	return selfScorer(func(c *tts.Candidate) float64 { return 1 - 1/(1+mean(c.Confidences.Tokens)) })
}

// mostAutoWindow is the window of the paper.
const mostAutoWindow = 2048

// deepConf writes some answers to their end and finds the confidence that most of them keep up. It then
// samples others, and ends each once it falls below that (Fu et al. 2025, "Deep Think with Confidence",
// Algorithm 2). The complete ones vote with the weight of their confidence, until an answer has a large
// enough share. Rounds have as many candidates as the first.
type deepConf struct {
	run    *searchRun
	set    *scaling.DeepConf
	listed int     // alternatives of a token that the request wants
	least  float64 // confidence of a group of tokens that an answer keeps up; 0: not known yet
}

// startDeepConf has the generator list the tokens that confidence is read of.
func startDeepConf(r *searchRun) method {
	p := &r.decoding.params
	p.TopLogprobs = max(p.TopLogprobs, r.plan.DeepConf.TopK)
	d := &deepConf{run: r, set: &r.plan.DeepConf, listed: r.req.Sampling.TopLogprobs}
	r.grow.observer = d
	return d
}

func (d *deepConf) grow(r *searchRun) (tts.StopReason, error) {
	goesOn, reason, err := r.moreAnswers(d.set.Warmup, func(int) (tts.StopReason, bool) { return "", false })
	if err != nil {
		return reason, err
	}
	d.calibrate(r.tree.done)
	agreed, over := d.agreed(r.plan.N)
	if over && goesOn {
		return agreed, nil
	}
	for goesOn && err == nil {
		goesOn, reason, err = r.moreAnswers(d.set.Warmup, d.agreed)
	}
	return reason, err
}

// calibrate finds the confidence that answers have to keep up, and what the first ones weigh.
func (d *deepConf) calibrate(done []*tts.Candidate) {
	if d.set.Window == 0 {
		all := 0
		for _, c := range done {
			all += len(c.IDs)
		}
		d.set.Window = min(max(1, all/len(done)/4), mostAutoWindow)
	}
	lowest := make([]float64, len(done))
	for i, c := range done {
		lowest[i] = lowestGroup(c.Confidences.Tokens, d.set.Window)
	}
	d.least = percentile(lowest, 100-d.set.Eta)
	d.run.grow.eachToken = d.least > 0
	for _, c := range done {
		d.weigh(c)
	}
}

// scored implements observer.
func (d *deepConf) scored(c *tts.Candidate) {
	if d.least > 0 {
		d.weigh(c)
	}
}

// weigh finds the weight of a candidate's vote, and whether it has one.
func (d *deepConf) weigh(c *tts.Candidate) {
	c.Filtered = c.Filtered || lowestGroup(c.Confidences.Tokens, d.set.Window) < d.least
	c.Confidence = float32(measure(c.Confidences.Tokens, d.set.Window, d.set.Weight))
}

// agreed reports whether the leading answer has the share of the votes' weight that is
// enough.
func (d *deepConf) agreed(int) (tts.StopReason, bool) {
	r := d.run
	done := r.tree.done
	if r.plan.EarlyStop.Off || len(done) < r.req.Choices() {
		return "", false
	}
	rk := rank(done, r.plan.Select)
	if len(rk.groups) == 0 || rk.sel != scaling.SelectWeightedVote || !rk.order[0].Complete() {
		return "", false
	}
	all := rk.rivals.weight
	for _, g := range rk.groups {
		all += g.weight
	}
	return tts.StopConsensus, rk.groups[0].weight >= r.plan.DeepConf.Tau*all
}

// token takes in how confident the model was of a token's place, and leaves the token no
// more alternatives than the request wants.
func (d *deepConf) token(c *tts.Candidate, tok *sampling.Token) {
	t := &c.Confidences
	t.Tokens = append(t.Tokens, confidence(tok.Top, d.set.TopK))
	tok.Top = tok.Top[:min(len(tok.Top), d.listed)]
	if d.least > 0 && (*group)(&t.Latest).add(t.Tokens, d.set.Window) < d.least {
		c.Filtered = true
	}
}

// confidence returns the mean negative log-probability of the k likeliest tokens, as far as
// it is a number.
func confidence(top []sampling.TokenLogprob, k int) float32 {
	sum, n := 0.0, 0
	for _, t := range top[:min(k, len(top))] {
		if l := float64(t.Logprob); l-l == 0 {
			sum, n = sum-l, n+1
		}
	}
	return float32(sum / float64(max(n, 1)))
}

// group is the sum of the confidences of a candidate's latest tokens.
type group float64

// add moves the group on to the last of all tokens, and returns its mean confidence; what is
// shorter than a group is none yet, and infinitely confident.
func (g *group) add(all []float32, window int) float64 {
	n := len(all)
	*g += group(all[n-1])
	if n > window {
		*g -= group(all[n-1-window])
	}
	if n < window {
		return math.Inf(1)
	}
	return float64(*g) / float64(window)
}

// groups returns the mean confidence of each group, one if there are fewer tokens than in
// one; none of no tokens.
func groups(confidences []float32, window int) []float64 {
	if len(confidences) < window {
		if len(confidences) == 0 {
			return nil
		}
		return []float64{mean(confidences)}
	}
	var g group
	var means []float64
	for i := range confidences {
		if m := g.add(confidences[:i+1], window); i >= window-1 {
			means = append(means, m)
		}
	}
	return means
}

// lowestGroup returns the least of them, 0 without tokens.
func lowestGroup(confidences []float32, window int) float64 {
	if len(confidences) == 0 {
		return 0
	}
	return slices.Min(groups(confidences, window))
}

// measure makes one confidence of a candidate's tokens.
func measure(confidences []float32, window int, m scaling.Measure) float64 {
	switch m {
	case scaling.MeasureMean:
		return mean(confidences)
	case scaling.MeasureTail:
		return mean(confidences[max(0, len(confidences)-window):])
	case scaling.MeasureBottom:
		list := groups(confidences, window)
		slices.Sort(list)
		list = list[:min(len(list), max(1, len(list)/10))]
		sum := 0.0
		for _, x := range list {
			sum += x
		}
		return sum / float64(max(1, len(list)))
	}
	return lowestGroup(confidences, window)
}

// mean returns the mean of numbers, 0 of none.
func mean(x []float32) float64 {
	sum := 0.0
	for _, v := range x {
		sum += float64(v)
	}
	return sum / float64(max(1, len(x)))
}

// percentile returns the number below which a percentage of x lies, between the nearest two
// as far as it lies between them. It sorts x, which is not empty.
func percentile(x []float64, percent float64) float64 {
	slices.SortFunc(x, cmp.Compare[float64])
	at := percent / 100 * float64(len(x)-1)
	i := min(int(at), len(x)-1)
	next := x[min(i+1, len(x)-1)]
	return x[i] + (next-x[i])*(at-float64(i))
}
