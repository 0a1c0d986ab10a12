package batcher

import "github.com/lutra-lm/lutra/batcher/schedule"

// drafterState tracks whether a drafter is worth its time.
type drafterState struct {
	Drafter
	rate   float64 // how often its guesses have been right of late; the rate of new sequences
	judged int     // guesses that rate is made of
	credit float64 // seconds that may go to finding out whether it pays by now
	// balance counts the seconds that its guesses have saved of late, less the seconds spent
	// on reading texts; price is the cost of the guesses of the step under way.
	balance, price float64
	// costFactor multiplies Price, which counts the model's steps alone, to give the time of drafting.
	costFactor float64
	failed     bool // it is not asked any more
}

// How often guesses are assumed right before any has been judged. A model that
// somebody has chosen for drafting gets a chance.
var rateAtFirst = [DraftKinds]float64{DraftLookup: 0.3, DraftModel: 0.7, DraftMTP: 0.7}

const (
	lookupForget  = 0.15 // texts differ more in repetitions than in what models know of them
	streamForget  = 1.0 / 16
	drafterForget = 0.02
	trust         = 16   // judgements of a stream that weigh as much as all of its drafter
	remembered    = 31   // judgements that own is made of at most, since it forgets
	worthwhile    = 1.03 // least gain of speed
	worthDrafting = 1.05 // likewise where drafting takes time, of which less is known
	trials        = 0.01 // share of the time that goes to trying a drafter that does not pay
	pauseMost     = 64   // steps between two trials
	balanceShift  = 1.0 / 512
)

func newDrafterState(d Drafter) drafterState {
	return drafterState{Drafter: d, rate: rateAtFirst[d.Kind()], costFactor: 1}
}

// cost returns how many seconds guesses are expected to take.
func (dr *drafterState) cost(guesses []*Guess) float64 { return dr.costFactor * dr.Price(guesses) }

// charge accounts for the seconds that drafting took, of which extra were for reading texts:
// reading says whether there were any to read, or nothing else came of it. They may differ
// from what was expected of the guesses made because that was wrong.
func (dr *drafterState) charge(made []*Guess, took, extra float64, reading bool) {
	dr.price = dr.cost(made)
	switch over := took - dr.price; {
	case reading || len(made) == 0:
		dr.balance -= min(max(0, over), extra)
	case over > 0: // as in schedule.CostModel, slow ones count for less
		dr.costFactor *= 1 + schedule.Forget*schedule.SlowWeight*min(over/dr.price, schedule.Outlier)
	default:
		dr.costFactor *= 1 + schedule.Forget*max(over/dr.price, -0.5)
	}
}

// settle notes what the guesses of a step with streams have saved, of which drafted were
// computed and accepted were right.
func (dr *drafterState) settle(streams, drafted, accepted int, cost *schedule.CostModel) {
	if dr.price == 0 || streams == 0 {
		return
	}
	each := cost.Time(streams) / float64(streams)
	dr.balance += float64(accepted)*each - (cost.Time(streams+drafted) - cost.Time(streams)) - dr.price
}

// judge notes whether a guess of it was right.
func (dr *drafterState) judge(g *guess, right bool) {
	if g.pause = min(max(1, 2*g.pause), pauseMost); right {
		g.pause = 0
	}
	g.wait = g.pause
	g.judged++
	if dr.Kind() == DraftLookup {
		learn(&g.rate, max(lookupForget, 1/float64(g.judged+2)), right)
		return
	}
	dr.judged++
	learn(&dr.rate, max(drafterForget, 1/float64(dr.judged+2)), right)
	learn(&g.own, max(streamForget, 1/float64(g.judged+2)), right)
	g.rate = g.own + (dr.rate-g.own)*trust/float64(trust+min(g.judged, remembered))
}

// learn moves a rate to what has just been seen.
func learn(rate *float64, weight float64, right bool) {
	*rate -= weight * *rate
	if right {
		*rate += weight
	}
}
