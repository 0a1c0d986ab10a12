package batcher

import "time"

// Stats is a snapshot of an engine, for metrics. Counters only grow.
type Stats struct {
	// Now.
	Running int // sequences that have work and KV blocks
	Waiting int // sequences that have work and wait for KV blocks, and opened ones not begun yet
	Idle    int // begun sequences that wait for their caller
	Blocks  int // KV blocks in the pool
	Used    int // KV blocks held by sequences
	Budget  int // token lanes that the next step may fill beside running streams

	// Since the engine was made.
	Steps           int64
	PromptTokens    int64 // computed for prompts and appended tokens, recomputed ones excluded
	GeneratedTokens int64 // sampled
	PrefixQueries   int64 // prompt tokens looked up in the prefix cache
	PrefixHits      int64 // of them found
	Preemptions     int64 // sequences that lost their blocks while they had work
	Evictions       int64 // idle sequences that lost their blocks
	BatchTokens     int64 // tokens of all steps
	BatchLanes      int64 // lanes of the tiles they filled: BatchTokens/BatchLanes is the fill ratio
	StepTime        time.Duration
}

// StepStats describes one step.
type StepStats struct {
	Tokens    int // in the batch; 0: there was nothing to do
	Lanes     int // of the tiles that Tokens begins: Tokens/Lanes is the fill ratio
	Spans     int // sequences in the batch
	Decode    int // tokens that continue running streams
	Prefill   int // tokens of prompts and appended text
	Rows      int // rows of logits
	Sampled   int // tokens delivered
	Preempted int // sequences that lost their blocks to this step
	Budget    int // lanes that the step was allowed
	Duration  time.Duration
	Forward   time.Duration // part of Duration spent in the model
}

// Timing is what a sequence went through, for a request's log line. Times
// that have not come yet are zero.
type Timing struct {
	Opened       time.Time
	Started      time.Time // its first tokens entered a batch
	FirstToken   time.Time // sampled
	LastToken    time.Time // sampled
	CachedPrompt int       // prompt tokens that the prefix cache or a fork spared
	Generated    int       // tokens sampled and kept
	Preemptions  int
}
