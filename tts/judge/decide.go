package judge

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts/constrain"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// decide puts lead after a critique and returns the probabilities of the words that may follow it, among these alone (as
// ThinkPRM and GenPRM do; for numbers Liu et al. 2023, "G-Eval", §3). If words cannot be told apart by their first tokens, as
// 1 and 10 in digits, the sampled one has it all. seq holds the critique, of tokens ids, unless it is nil. read counts
// tokens.
func (w *writing) decide(ctx context.Context, seq *batcher.Sequence, ids []int32, lead string) (shares []float64, read int, err error) {
	common, firsts, apart := first(w.model.Tokenizer, lead, w.form.words)
	if !apart {
		return w.spell(ctx, slices.Concat(ids, w.model.Tokenizer.Encode(nil, lead, asWritten)))
	}
	if seq == nil {
		forks, err := w.fork(ctx, 1)
		if err != nil {
			return nil, 0, err
		}
		seq = forks[0]
		defer seq.Close()
		seq.Append(ids...)
	}
	seq.Append(common...)
	row, err := seq.Logits(ctx, firsts...)
	if err != nil {
		return nil, 0, err
	}
	best, sum := slices.Max(row), 0.0
	for _, x := range row {
		shares = append(shares, math.Exp(float64(x-best)))
		sum += shares[len(shares)-1]
	}
	for i := range shares {
		shares[i] /= sum
	}
	return shares, len(common), nil
}

// asWritten lets what leads to a decision end a thought.
var asWritten = tokenizer.Options{ParseSpecial: true}

// first returns the tokens that lead and words have in common, and the next token of each word. apart tells whether these
// differ.
func first(t *tokenizer.Tokenizer, lead string, words []string) (common, firsts []int32, apart bool) {
	all := make([][]int32, len(words))
	for i, word := range words {
		all[i] = t.Encode(nil, lead+word, asWritten)
	}
	n := 0
	for ; ; n++ {
		for _, ids := range all {
			if n >= len(ids) {
				return nil, nil, false
			}
			apart = apart || ids[n] != all[0][n]
		}
		if apart {
			break
		}
	}
	for i, ids := range all {
		firsts = append(firsts, ids[n])
		if slices.Contains(firsts[:i], ids[n]) {
			return nil, nil, false
		}
	}
	return all[0][:n], firsts, true
}

// spell has the word written behind a critique, held to the words.
func (w *writing) spell(ctx context.Context, ids []int32) (shares []float64, read int, err error) {
	format, err := w.model.Formats.Format(ctx, constrain.Choice, constrain.Choices(w.form.words))
	if err != nil {
		return nil, 0, err
	}
	forks, err := w.fork(ctx, 1)
	if err != nil {
		return nil, 0, err
	}
	defer forks[0].Close()
	forks[0].Append(ids...)
	p := sampling.Params{Temperature: 0, Constraint: w.model.HeldTo(format), Stop: sampling.NewTokenSet(w.model.Tokenizer.EOGs())}
	text := ""
	for tok, err := range forks[0].Generate(ctx, p) {
		if err != nil {
			return nil, 0, err
		}
		if tok.Finish != sampling.FinishStop {
			text += string(w.model.Tokenizer.Piece(tok.ID))
		}
	}
	shares = make([]float64, len(w.form.words))
	i := slices.Index(w.form.words, text)
	if i < 0 { // the context's end
		return nil, 0, batcher.ErrTooLong
	}
	shares[i] = 1
	return shares, len(ids), nil
}

// combine makes one score of several critiques.
func combine(how scaling.Combine, values []float64, votes []vote) float32 {
	if how != scaling.CombineMajority {
		sum := 0.0
		for i := range votes {
			sum += float64(votes[i].Score)
		}
		return float32(sum / float64(len(votes)))
	}
	count := make([]int, len(values))
	for i := range votes {
		best := 0
		for k, share := range votes[i].shares {
			if share > votes[i].shares[best] {
				best = k
			}
		}
		count[best]++
	}
	most, sum, n := slices.Max(count), 0.0, 0.0
	for k, c := range count {
		if c == most {
			sum, n = sum+values[k], n+1
		}
	}
	return float32(sum / n)
}

// words says in a line what critiques make of a candidate.
func (j *judge) words(r *ruling) string {
	if j.opt.Format == FormatRubric {
		return fmt.Sprintf("%.2f of %d", float64(r.score)*float64(j.opt.Scale), j.opt.Scale)
	}
	right := 0
	wrong := map[int]int{} // critiques that find a step to be the first wrong one
	for i := range r.critiques {
		if r.critiques[i].Score > 0.5 {
			right++
		}
		if at := slices.Index(r.critiques[i].Labels, false); at >= 0 {
			wrong[at+1]++
		}
	}
	what := "the solution"
	if j.opt.Format == FormatGen {
		what = fmt.Sprintf("step %d", r.critiques[0].Step)
	}
	words := []string{fmt.Sprintf("%d of %d find %s correct", right, len(r.critiques), what)}
	for step := 1; len(words) == 1 && step <= r.critiques[0].Step; step++ {
		if wrong[step] > 0 {
			words = append(words, fmt.Sprintf("step %d is the first wrong one in %d", step, wrong[step]))
		}
	}
	return strings.Join(words, "; ")
}
