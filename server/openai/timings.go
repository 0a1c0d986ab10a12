package openai

import "github.com/lutra-lm/lutra/tts"

// Timings are where an answer's time went, by the engine's clock, as llama-server writes them.
type Timings struct {
	Cached       int     `json:"cache_n"`  // tokens of the prompt that were not computed
	PromptN      int     `json:"prompt_n"` // tokens of the prompt that were
	PromptMS     float64 `json:"prompt_ms"`
	PromptToken  float64 `json:"prompt_per_token_ms"`
	PromptPerSec float64 `json:"prompt_per_second"`
	PredictedN   int     `json:"predicted_n"`
	PredictedMS  float64 `json:"predicted_ms"`
	Predicted    float64 `json:"predicted_per_token_ms"`
	PerSecond    float64 `json:"predicted_per_second"`
}

// NewTimings returns those of an answer with times t and usage u.
func NewTimings(t *tts.Timing, u tts.Usage) *Timings {
	o := &Timings{Cached: u.Cached, PromptN: u.Prompt - u.Cached, PromptMS: t.Prefill.Seconds() * 1e3, PredictedN: u.Completion, PredictedMS: t.Decode.Seconds() * 1e3}
	rates := func(n int, ms float64, each, perSecond *float64) {
		if n > 0 && ms > 0 {
			*each, *perSecond = ms/float64(n), float64(n)/ms*1e3
		}
	}
	rates(o.PromptN, o.PromptMS, &o.PromptToken, &o.PromptPerSec)
	rates(o.PredictedN, o.PredictedMS, &o.Predicted, &o.PerSecond)
	return o
}

// clock gathers the times of an answer's choices, for a request that asks for them. A nil one
// gathers nothing.
type clock struct{ total tts.Timing }

// clock returns one where timings_per_token asks for it, and no search is asked for: its
// candidates come side by side, and few of their tokens are the answer's.
func (f Fields) clock(report *SearchReport) *clock {
	var wanted bool
	if f.Bool("timings_per_token", &wanted); !wanted || report != nil {
		return nil
	}
	return &clock{}
}

// note takes in an event of the answer.
func (c *clock) note(e tts.Event) {
	end, ok := e.What.(tts.End)
	if c == nil || !ok || end.Timing.First.IsZero() {
		return
	}
	t := &c.total
	if t.First.IsZero() {
		*t = end.Timing
	}
	if end.Timing.First.Before(t.First) {
		t.First = end.Timing.First
	}
	if end.Timing.Last.After(t.Last) {
		t.Last = end.Timing.Last
	}
}

// timings returns what the answer says; nil: nothing.
func (c *clock) timings(u tts.Usage) *Timings {
	if c == nil || c.total.First.IsZero() {
		return nil
	}
	c.total.Decode = c.total.Last.Sub(c.total.First)
	return NewTimings(&c.total, u)
}
