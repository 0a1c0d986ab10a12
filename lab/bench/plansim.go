package bench

import (
	"math/rand/v2"
	"slices"

	"github.com/lutra-lm/lutra/batcher"
)

// stepCosts has the times of an engine's step on a machine, in milliseconds.
type stepCosts struct {
	lanes  []int     // streams, ascending
	ms     []float64 // of a step that decodes as many streams, never falling
	prompt float64   // that each token of a prompt adds
}

// step returns the time of a step that decodes streams and computes prompt tokens of
// prompts. It interpolates between measured numbers of streams; beyond the last it grows
// in proportion.
func (c *stepCosts) step(streams, prompt int) float64 {
	t := c.prompt * float64(prompt)
	if streams == 0 {
		return t
	}
	i, found := slices.BinarySearch(c.lanes, streams)
	switch {
	case found:
		return t + c.ms[i]
	case i == len(c.lanes):
		return t + c.ms[i-1]*float64(streams)/float64(c.lanes[i-1])
	case i == 0:
		return t + c.ms[0]
	}
	part := float64(streams-c.lanes[i-1]) / float64(c.lanes[i]-c.lanes[i-1])
	return t + c.ms[i-1] + part*(c.ms[i]-c.ms[i-1])
}

// shared models a search of n candidates of the given tokens, after a prompt that takes
// promptMS, on machines that share them in equal parts. It knows nothing of the network,
// nor of a reward model, and all candidates are of one length.
func (c *stepCosts) shared(n int, promptMS float64, tokens int) (list []SharedSearch) {
	if n == 1 {
		return nil
	}
	for m := 1; m <= 8; m *= 2 {
		each := (n + m - 1) / m
		s := SharedSearch{Machines: m, Each: each, Seconds: (promptMS + float64(tokens-1)*c.step(each, 0)) / 1000}
		s.Gain = s.Seconds
		if list != nil {
			s.Gain = list[0].Seconds
		}
		s.Gain /= s.Seconds
		list = append(list, s)
	}
	return list
}

// limit returns the rate, in requests a second, at which a server is never idle:
//
//	1 / (prompt·t_prompt + n·(output−1)·t(streams)/streams)
func (c *stepCosts) limit(l plannedLoad) float64 {
	streams := l.streams / l.n * l.n
	return 1000 / (c.prompt*float64(l.prompt) + float64(l.n*(l.output-1))*c.step(streams, 0)/float64(streams))
}

// plannedLoad is the load of one server.
type plannedLoad struct {
	rate           float64 // requests a second, at times that know nothing of each other
	prompt, output int     // tokens
	n              int     // candidates
	streams        int     // decoded at once at most; requests beyond wait
}

// Loaded is a server's behaviour under a load: the median and the 95th percentile of times in seconds and of streams decoded
// at once, and the share of the time in which it computes.
type Loaded struct {
	TTFT    [2]float64 `json:"ttft_s"`
	Latency [2]float64 `json:"latency_s"`
	Streams [2]float64 `json:"streams"`
	Busy    float64    `json:"busy"`
}

// plannedRequest is a request under way.
type plannedRequest struct {
	came, first float64 // milliseconds
	prompt      int     // tokens still to be computed
	output      int     // tokens still to be decoded
}

const (
	plannedRequests = 3000 // that count
	plannedWarmUp   = 300  // that come before these
)

// simulate runs a server's steps one after the other on a clock of its own. Each step decodes a token of every stream. Prompts
// are computed with them in the order in which they came, as far as the engine's shares for prompts allow
// (batcher.Options.PrefillSlowdown, StepTokens and StepTime). Arrivals are the same for the same load.
func simulate(c stepCosts, l plannedLoad) Loaded {
	opt := batcher.DefaultOptions()
	random := rand.New(rand.NewPCG(1, 2))
	interval := func() float64 { return random.ExpFloat64() * 1000 / l.rate }
	var (
		now, busy, credit float64
		next              = interval()
		came, counted     int
		queue, running    []plannedRequest // prompts to compute; streams
		ttft, whole       []float64
		streams           []float64 // at arrivals
	)
	const all = plannedWarmUp + plannedRequests
	for counted < all {
		if len(queue)+len(running) == 0 {
			now = max(now, next)
		}
		for next <= now && came < all {
			credit += c.prompt * float64(min(l.prompt, 2*batcher.Tile)) // a new prompt's first tiles are lent
			queue = append(queue, plannedRequest{came: next, prompt: l.prompt, output: l.output})
			streams = append(streams, float64(len(running)*l.n))
			next += interval()
			came++
		}
		lanes := len(running) * l.n
		alone := c.step(lanes, 0)
		free := l.streams/l.n - len(running) // requests that may join the streams
		budget := opt.StepTokens - lanes
		if lanes > 0 { // what streams leave to prompts
			if waiting := min(len(queue), free); waiting > 0 {
				earned := alone * (opt.PrefillSlowdown - 1) * float64(waiting)
				need := c.prompt * float64(min(queue[0].prompt, batcher.Tile))
				credit = min(credit+earned, max(credit, need+earned, 2*earned)) // saves no more than is needed
			}
			spare := min(credit, max(float64(opt.StepTime.Milliseconds())-alone, c.prompt*batcher.Tile))
			budget = min(budget, int(spare/max(c.prompt, 1e-9)))
		}
		computed := 0
		for i := 0; i < min(len(queue), free) && computed < budget; i++ {
			n := min(queue[i].prompt, budget-computed)
			if n < min(queue[i].prompt, batcher.Tile) {
				break // no piece of less than a tile
			}
			queue[i].prompt -= n
			computed += n
		}
		took := c.step(lanes, computed)
		if lanes > 0 {
			credit -= c.prompt * float64(computed)
		} else {
			credit = 0
		}
		now += took
		busy += took
		for i := range running {
			running[i].output--
		}
		for len(queue) > 0 && queue[0].prompt == 0 {
			q := queue[0]
			q.first, q.output = now, q.output-1 // the last step of a prompt gives the first token
			queue, running = queue[1:], append(running, q)
		}
		running = slices.DeleteFunc(running, func(q plannedRequest) bool {
			if q.output > 0 {
				return false
			}
			if counted++; counted > plannedWarmUp {
				ttft, whole = append(ttft, (q.first-q.came)/1000), append(whole, (now-q.came)/1000)
			}
			return true
		})
	}
	return Loaded{TTFT: middleAndHigh(ttft), Latency: middleAndHigh(whole), Streams: middleAndHigh(streams[plannedWarmUp:]), Busy: busy / now}
}

// middleAndHigh returns the median and the 95th percentile of v, which it sorts.
func middleAndHigh(v []float64) [2]float64 {
	slices.Sort(v)
	return [2]float64{v[len(v)/2], v[len(v)*95/100]}
}

// sustained returns the highest rate at which 95 of 100 requests take no more than p95
// seconds, 0 if there is none.
func sustained(c stepCosts, l plannedLoad, p95 float64) float64 {
	lo, hi := 0.0, c.limit(l)
	for range 20 {
		l.rate = (lo + hi) / 2
		if simulate(c, l).Latency[1] <= p95 {
			lo = l.rate
		} else {
			hi = l.rate
		}
	}
	return lo
}
