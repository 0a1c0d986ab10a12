package server

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/lutra-lm/lutra/tts"
)

// Limits on what one request may ask for, beyond those in Options.
const (
	maxStops       = 16   // stop strings; OpenAI has 4
	maxStopLen     = 1024 // bytes of one
	maxTopLogprobs = 20   // as OpenAI
	maxLogitBias   = 1024 // entries
	// maxLogprobs bounds the log-probabilities that one answer lists: tokens
	// times one and the alternatives of each.
	maxLogprobs = 1 << 20
)

// sampling reads the fields that chat and text completions have in common
// into req.
func (f *fields) sampling(req *tts.Request, vocab, maxChoices int) {
	p := &req.Sampling
	p.Temperature, p.TopP = 1, 1
	f.float("temperature", &p.Temperature, 0, 2)
	f.float("top_p", &p.TopP, 0, 1)
	if p.TopP == 0 { // the smallest nucleus, where 0 would mean none to the sampler
		p.TopP = math.SmallestNonzeroFloat32
	}
	f.int("top_k", &p.TopK, -1, math.MaxInt32)
	p.TopK = max(p.TopK, 0) // -1 is vLLM's word for off
	f.float("min_p", &p.MinP, 0, 1)
	f.float("typical_p", &p.TypicalP, 0, 1)
	f.float("repetition_penalty", &p.RepetitionPenalty, 0.01, 10)
	f.float("presence_penalty", &p.PresencePenalty, -2, 2)
	f.float("frequency_penalty", &p.FrequencyPenalty, -2, 2)
	f.bool("ignore_eos", &p.IgnoreEOS)
	f.ids("stop_token_ids", &p.Stop)

	req.N = 1
	f.int("n", &req.N, 1, maxChoices)
	p.Seed = f.seed()
	req.Stop = f.stop()
	p.LogitBias = f.logitBias(vocab)
}

// seed is the request's, of any sign and size a client may take it from, or a
// random one.
func (f *fields) seed() uint64 {
	raw, ok := f.take("seed")
	if !ok {
		return rand.Uint64()
	}
	if v, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return uint64(v)
	}
	v, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil {
		f.wrongType("seed", "a 64-bit integer", raw)
	}
	return v
}

// stop reads a string or a list of at most maxStops strings.
func (f *fields) stop() []string {
	raw, ok := f.take("stop")
	if !ok {
		return nil
	}
	var stops []string
	if one := ""; json.Unmarshal(raw, &one) == nil {
		stops = []string{one}
	} else if json.Unmarshal(raw, &stops) != nil {
		f.wrongType("stop", "a string or a list of strings", raw)
		return nil
	}
	if len(stops) > maxStops {
		f.fail(codeValue, "stop", "at most %d strings are allowed, but got %d.", maxStops, len(stops))
	}
	for _, s := range stops {
		if s == "" || len(s) > maxStopLen {
			f.fail(codeValue, "stop", "a stop string has 1 to %d bytes, but one has %d.", maxStopLen, len(s))
		}
	}
	return stops
}

// logitBias reads {"token id": bias}.
func (f *fields) logitBias(vocab int) map[int32]float32 {
	raw, ok := f.take("logit_bias")
	if !ok {
		return nil
	}
	var entries map[string]json.RawMessage
	if json.Unmarshal(raw, &entries) != nil {
		f.wrongType("logit_bias", "an object", raw)
		return nil
	}
	if len(entries) > maxLogitBias {
		f.fail(codeValue, "logit_bias", "at most %d tokens are allowed, but got %d.", maxLogitBias, len(entries))
		return nil
	}
	bias := make(map[int32]float32, len(entries))
	for key, raw := range entries {
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil || id < 0 || int(id) >= vocab {
			f.fail(codeValue, "logit_bias", "%q is no token id between 0 and %d.", brief([]byte(key)), vocab-1)
			return nil
		}
		var v float64
		if json.Unmarshal(raw, &v) != nil || v < -100 || v > 100 {
			f.fail(codeValue, "logit_bias", "the bias of token %d must be a number between -100 and 100, but got %s.", id, brief(raw))
			return nil
		}
		bias[int32(id)] = float32(v)
	}
	return bias
}

// tokenLimit reads how many tokens a choice may have, of at least lo; the
// first of names that is there counts. 0 is "no tokens", absent "up to the
// context".
func (f *fields) tokenLimit(req *tts.Request, lo int, names ...string) {
	given := false
	for _, name := range names {
		var v int
		if f.int(name, &v, lo, math.MaxInt32) && !given {
			given = true
			req.Sampling.MaxTokens = v
			req.NoTokens = v == 0
		}
	}
}

// streaming reads stream and stream_options.
func (f *fields) streaming() (stream, includeUsage bool) {
	f.bool("stream", &stream)
	if !stream && f.has("stream_options") {
		f.fail(codeValue, "stream_options", "it is only allowed when 'stream' is true.")
	}
	if o, ok := f.object("stream_options"); ok {
		o.bool("include_usage", &includeUsage)
		f.adopt(o)
	}
	return stream, includeUsage
}

// adopt takes over the fault and the unknown fields of an object inside f.
func (f *fields) adopt(o *fields) {
	if f.err == nil {
		f.err = o.err
	}
	for name, raw := range o.raw {
		f.raw[o.path[len(f.path):]+name] = raw
	}
}
