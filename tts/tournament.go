package tts

import (
	"errors"
	"math/bits"
	"slices"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// Game is two candidates of a tournament compared.
type Game struct {
	Round     int        // 1 for the first
	Rivals    [2]int     // their indices among the candidates
	Shares    [2]float32 // of the votes, in both orders; they add up to 1
	Critiques []Critique
}

// drawing sets the draw's random numbers apart from those of tokens.
const drawing = 0x746f75726e616d65

// compete has the candidates compared in pairs (Zheng et al. 2023, "Judging LLM-as-a-Judge", §3.1
// and §3.4: both orders, ties), and gives each a score: of a knockout the share of the rounds that it
// has won, of a round robin its share of the votes. Those that were cut off take part only if no
// other is complete.
func (r *searchRun) compete() error {
	if !r.plan.Select.Tournament() {
		return nil
	}
	rivals, _ := voters(r.tree.done)
	if len(rivals) < 2 {
		return nil
	}
	if r.plan.Select == scaling.SelectRoundRobin {
		return r.roundRobin(rivals)
	}
	return r.knockout(rivals)
}

// roundRobin compares each with each.
func (r *searchRun) roundRobin(rivals []*Candidate) error {
	var pairs [][2]*Candidate
	for i, a := range rivals {
		for _, b := range rivals[i+1:] {
			pairs = append(pairs, [2]*Candidate{a, b})
		}
	}
	games, err := r.play(1, pairs)
	for i, g := range games {
		for side, c := range pairs[i] {
			c.Score += g.Shares[side] / float32(len(rivals)-1)
		}
	}
	return err
}

// knockout draws the pairs of the first round. The better of each goes on, of equal ones the
// earlier candidate; one that has no rival goes on too.
func (r *searchRun) knockout(rivals []*Candidate) error {
	rivals = slices.Clone(rivals)
	seed := sampling.Mix(r.req.Sampling.Seed + drawing)
	for i := len(rivals) - 1; i > 0; i-- {
		seed = sampling.Mix(seed)
		j := int(seed % uint64(i+1))
		rivals[i], rivals[j] = rivals[j], rivals[i]
	}
	rounds := bits.Len(uint(len(rivals) - 1))
	for round := 1; len(rivals) > 1; round++ {
		var pairs [][2]*Candidate
		for i := 0; i+1 < len(rivals); i += 2 {
			pairs = append(pairs, [2]*Candidate{rivals[i], rivals[i+1]})
		}
		games, err := r.play(round, pairs)
		if err != nil {
			return err
		}
		var on []*Candidate
		for i, g := range games {
			a, b := pairs[i][0], pairs[i][1]
			if g.Shares[1] > g.Shares[0] || g.Shares[1] == g.Shares[0] && b.Index < a.Index {
				a = b
			}
			on = append(on, a)
		}
		if len(rivals)%2 == 1 {
			on = append(on, rivals[len(rivals)-1])
		}
		for _, c := range on {
			c.Score = float32(round) / float32(rounds)
		}
		rivals = on
	}
	return nil
}

// play has pairs compared, all at once. A pair for which there is no room is a tie.
func (r *searchRun) play(round int, pairs [][2]*Candidate) ([]Game, error) {
	r.grant(len(pairs))
	games := make([]Game, len(pairs))
	err := r.reporter.meanwhile(0, func() error {
		return parallel.Each(pairs, func(i int, pair [2]*Candidate) (err error) {
			g := &games[i]
			g.Round, g.Rivals = round, [2]int{pair[0].Index, pair[1].Index}
			g.Shares, g.Critiques, err = r.critic.Compare(r.work, pair[0], pair[1])
			if errors.Is(err, batcher.ErrTooLong) || errors.Is(err, batcher.ErrBusy) {
				r.degraded.Store(true)
				g.Shares, err = [2]float32{0.5, 0.5}, nil
			}
			return err
		})
	})
	if err == nil {
		err = r.work.Err()
	}
	if err != nil {
		return nil, err
	}
	r.games = append(r.games, games...)
	return games, nil
}
