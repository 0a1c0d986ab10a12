package batcher

import (
	"sync"
	"time"
)

// Stats is a snapshot of an engine: many fields, since each is a metric of its own. Counters
// only grow.
type Stats struct {
	// Now.
	Running int // sequences that have work and KV blocks
	Waiting int // sequences that have work and wait for KV blocks
	Idle    int // begun sequences that wait for their caller

	// A request is a sequence that was opened, and all that descend from it.
	RunningRequests int // requests with a sequence of Running
	WaitingRequests int // requests with a sequence of Waiting and none of Running

	// The names of adapters, sorted, that such sequences have.
	RunningAdapters, WaitingAdapters []string

	Blocks   int // KV blocks in the pool
	BlockLen int // tokens a block
	Used     int // KV blocks held by sequences
	States   int // recurrent states in the pool; 0: the model has none
	Held     int // recurrent states held by sequences
	Kept     int // recurrent states kept as checkpoints of prefixes
	Budget   int // token lanes that the next step may fill alongside running streams

	// Since the engine was made.
	Steps           int64
	PromptTokens    int64             // computed for prompts and appended tokens, recomputed ones excluded
	GeneratedTokens int64             // sampled, or forced
	ForcedTokens    int64             // of them forced by constraints
	PrefixQueries   int64             // prompt tokens looked up in the prefix cache
	PrefixHits      int64             // of them found
	Preemptions     int64             // sequences that lost their blocks while they had work
	Evictions       int64             // idle sequences that lost their blocks
	BatchTokens     int64             // tokens of all steps
	SavedTokens     int64             // not computed, because an equal sequence was
	DraftTokens     [DraftKinds]int64 // guesses computed
	DraftAccepted   [DraftKinds]int64 // of them right
	DraftTime       time.Duration     // spent on making guesses, within StepTime
	BatchLanes      int64             // lanes of the tiles they filled: BatchTokens/BatchLanes is the fill ratio
	StepTime        time.Duration
	Gaps            Gaps
}

// Gaps counts the times between the tokens of interactive streams, as one step
// after another delivers them.
type Gaps struct {
	Counts [len(gapBounds) + 1]int64 // by GapBounds; the last holds longer ones
	Sum    time.Duration
}

var gapBounds = [...]time.Duration{
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	75 * time.Millisecond, 100 * time.Millisecond, 150 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, 400 * time.Millisecond,
	500 * time.Millisecond, 750 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 7500 * time.Millisecond,
	10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second,
}

// GapBounds returns the longest gaps that each of Gaps.Counts but the last counts.
func GapBounds() []time.Duration { return gapBounds[:] }

// add counts a gap.
func (g *Gaps) add(gap time.Duration) {
	i := 0
	for i < len(gapBounds) && gap > gapBounds[i] {
		i++
	}
	g.Counts[i]++
	g.Sum += gap
}

// StepStats describes one step.
type StepStats struct {
	Tokens    int             // in the batch; 0: there was nothing to do
	Lanes     int             // of the tiles that Tokens begins: Tokens/Lanes is the fill ratio
	Rows      int             // rows of logits
	Sampled   int             // tokens delivered
	Forced    int             // of them forced by constraints
	Saved     int             // tokens of sequences that equal one in the batch, and share its results
	Drafted   [DraftKinds]int // guessed tokens in the batch
	Accepted  [DraftKinds]int // of them right
	Preempted int             // sequences that lost their blocks to this step
	Budget    int             // lanes that the step was allowed
	Duration  time.Duration
	Forward   time.Duration // part of Duration spent in the model
	Drafting  time.Duration // part of Duration spent on making guesses
}

// computing returns the seconds that the step's tokens took.
func (st *StepStats) computing() float64 { return (st.Duration - st.Drafting).Seconds() }

// Timing holds the times of a sequence's stages. Those that have not come yet are zero.
type Timing struct {
	Opened       time.Time
	Started      time.Time // its first tokens entered a batch
	FirstToken   time.Time // sampled
	LastToken    time.Time // sampled
	CachedPrompt int       // prompt tokens that the prefix cache or a fork saved
}

// published shows the counts of the step loop to other goroutines.
type published struct {
	mu    sync.Mutex
	stats Stats
	pace  pace
}

// get returns a snapshot.
func (p *published) get() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// getPace returns one of how fast the engine is.
func (p *published) getPace() pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pace
}

// set replaces the snapshots.
func (p *published) set(s Stats, now pace) {
	p.mu.Lock()
	p.stats, p.pace = s, now
	p.mu.Unlock()
}
