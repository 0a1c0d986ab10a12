package tts

import (
	"github.com/lutra-lm/lutra/tts/scaling"
)

// Candidate is one of the answers, whole or partial, that a search chooses
// among.
type Candidate struct {
	Index      int     // among the request's candidates, in the order in which they became complete
	Text       string  // as it would be delivered
	IDs        []int32 // its tokens, with the one that ends the turn
	Tokens     []Token // with log-probabilities, when the request wants them
	Finish     Finish  // empty while partial
	StepScores []float32
	Score      float32 // the aggregate of StepScores, in [0, 1]; higher is better
	Logprob    float32 // mean over its tokens, at temperature 1
	Certainty  float32 // mean over its tokens: nats between the uniform distribution and the model's
	Confidence float32 // with DeepConf, in nats: its weight in the vote
	Filtered   bool    // with DeepConf: it has shown too little confidence to vote; unless complete, it was ended for that
	Verdict    string  // of a check or of critiques: why it has its score
	Critiques  []Critique
	Answer     string // extracted, or the calls of tools that it ends in, a line each; empty: none found
	Votes      int    // candidates with the same answer, itself included
	Node       int    // its last node in Outcome.Tree
	// Readings has the sums of the engine's probe; empty: it has none.
	Readings Readings

	Key   string // equal for equal answers
	Calls bool   // its answer is calls of tools
	// Confidences has, with DeepConf, the model's confidence in its tokens.
	Confidences TokenConfidence
}

// Complete reports whether a candidate came to its end and was not filtered out. Others vote, and are chosen, only
// where no candidate is complete.
func (c *Candidate) Complete() bool { return c.Finish == FinishStop && !c.Filtered }

// TokenConfidence measures the model's confidence in a candidate's tokens.
type TokenConfidence struct {
	Tokens []float32
	Latest float64 // sum over the latest of them, once an answer may end for the lack of it
}

// StopReason says why a search ended.
type StopReason string

// The reasons.
const (
	StopComplete     StopReason = "complete"      // every candidate or beam came to its end
	StopDecided      StopReason = "decided"       // the rest could not change the outcome
	StopConsensus    StopReason = "consensus"     // the candidates agreed well enough
	StopPrice        StopReason = "price"         // further candidates were not worth their price
	StopMaxSteps     StopReason = "max_steps"     // Plan.MaxSteps
	StopBudgetTokens StopReason = "budget_tokens" // Plan.Budget.Tokens
	StopBudgetTime   StopReason = "budget_time"   // Plan.Budget.Time
	StopDeadline     StopReason = "deadline"      // Plan.Deadline
)

// Outcome is the result of a search.
type Outcome struct {
	Plan       scaling.Plan   // as applied, with its defaults
	Method     scaling.Method // what was done: for Auto, the method it chose
	N          int            // candidates or beams it began with
	Steps      int            // solution steps of the longest search path; 1 for methods of whole answers
	Reason     StopReason     // why it ended
	Select     scaling.Select // the rule that chose, SelectMax where that is a fallback
	Agreement  float64        // share of the candidates that give the first choice's answer
	Degraded   bool           // fewer candidates than planned, for want of memory
	Choices    []*Candidate   // those delivered, best first
	Candidates []*Candidate   // all, best first
	Tree       []Node         // a parent stands before its children
	Usage      SearchUsage
}

// SearchUsage says what a search's tokens were good for. Chosen + Discarded
// are Usage.Completion.
type SearchUsage struct {
	Chosen    int // on the way to the choices
	Discarded int
	Verifier  int
	Critiques int // as in Usage, the others too
	Cancelled int
}

// Node is one solution step of a search, or a whole answer.
type Node struct {
	Parent int     // index in Outcome.Tree; -1: the prompt
	Step   int     // 1 for the first
	Text   string  // what it adds
	Tokens int     // what it cost
	Score  float32 // of the solution up to here, as compared with others
	Fate   Fate
}

// Fate says whether a solution step was kept.
type Fate string

// The fates.
const (
	FateKept   Fate = "kept"   // others were built on it, or it ended a candidate
	FatePruned Fate = "pruned" // lost against others
	FateChosen Fate = "chosen" // leads to a choice
)

// Progress is where a search stands.
type Progress struct {
	Method    scaling.Method
	Select    scaling.Select // the rule that is to choose
	Step      int            // solution steps so far
	Live      int            // candidates in the making
	Finished  int            // candidates complete
	Tokens    int            // generated so far, by all of them
	Best      float32
	Leader    string      // the answer in front, when there is one
	Agreement float64     // share of the complete candidates that give it
	Added     []Node      // by which the tree has grown since the last progress; fates may yet change
	Ended     []Candidate // complete since the last progress, as they are now
	Partial   []Partial   // with Include.Partial: what candidates in the making have gained
}

// Partial is a candidate in the making, as progress reports show it with
// Include.Partial.
type Partial struct {
	Index   int     // Params.Candidate of its tokens; of methods of whole answers the Candidate.Index that it will have
	Parent  int     // the node that it continues, as an index of Outcome.Tree; -1: the prompt
	Text    string  // gained since the last report of it, in whole characters
	Tokens  int     // generated so far, from the prompt on
	Logprob float32 // mean over them
	Finish  Finish  // once it is complete
	Answer  string  // once it is complete; empty: none found
	Judged  bool    // Score holds a value
	Score   float32
}
