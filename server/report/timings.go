package report

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

// NewTimings returns the timings of an answer with times t and usage u.
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
