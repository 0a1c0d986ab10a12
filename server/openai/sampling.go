package openai

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/generation"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
)

// Sampling reads the fields that chats and completions share into req. What it does not name is
// the model's default, below which custom has the API's; an empty one has OpenAI's. The fields of
// sampling that it names are returned.
func (f Fields) Sampling(req *tts.Request, m *tts.Model, maxChoices int, custom generation.Config) (named generation.Config) {
	p := &req.Sampling
	number := func(name string, dst **float32, lo, hi float64) {
		if x := float32(0); f.Float32(name, &x, lo, hi) {
			*dst = &x
		}
	}
	number("temperature", &named.Temperature, 0, 2)
	number("top_p", &named.TopP, 0, 1)
	if k := 0; f.Int("top_k", &k, -1, math.MaxInt32) {
		named.TopK = new(max(k, 0)) // -1 is vLLM's value for off
	}
	number("min_p", &named.MinP, 0, 1)
	number("typical_p", &named.TypicalP, 0, 1)
	f.repetition(&named)
	number("presence_penalty", &named.PresencePenalty, -2, 2)
	number("frequency_penalty", &named.FrequencyPenalty, -2, 2)
	tts.SetSampling(p, named.Or(m.Defaults(custom)))
	f.Bool("ignore_eos", &p.IgnoreEOS)
	p.Stop = sampling.NewTokenSet(f.IDs("stop_token_ids", MaxStopTokens, m.Vocab))
	f.Int("min_tokens", &req.MinTokens, 0, math.MaxInt32)
	req.Repetition = f.repetitionDetection()
	req.BadWords = f.badWords()
	req.Allowed = f.allowed(m.Vocab)
	f.Bool("include_stop_str_in_output", &req.KeepStop)
	skip := true
	f.Bool("skip_special_tokens", &skip)
	req.Special = !skip

	req.N = 1
	f.Int("n", &req.N, 1, maxChoices)
	p.Seed = f.seed()
	req.Stop = f.stop()
	p.LogitBias = f.logitBias(m)
	return named
}

// repetition reads the penalty of tokens seen: repetition_penalty is of all of them,
// llama.cpp's repeat_penalty of the latest repeat_last_n, where -1 is all and 0 none.
func (f Fields) repetition(named *generation.Config) {
	if f.Has("repetition_penalty") && f.Has("repeat_penalty") {
		f.Fail(jsonread.CodeValue, "repeat_penalty", "it cannot be given together with 'repetition_penalty'.")
	}
	if last := 0; f.Int("repeat_last_n", &last, -1, math.MaxInt32) {
		named.RepeatLastN = &last
	}
	penalty := float32(0)
	switch {
	case f.Float32("repetition_penalty", &penalty, 0.01, 10):
		named.RepetitionPenalty, named.RepeatLastN = &penalty, new(-1)
	case f.Float32("repeat_penalty", &penalty, 0.01, 10):
		named.RepetitionPenalty = &penalty
	}
}

// repetitionDetection reads vLLM's field of that name.
func (f Fields) repetitionDetection() (r tts.Repetition) {
	o, ok := f.Object("repetition_detection")
	if !ok {
		return r
	}
	o.Int("max_pattern_size", &r.MaxPattern, 0, tts.MostPattern)
	o.Int("min_pattern_size", &r.MinPattern, 0, r.MaxPattern)
	if r.MinCount = 2; !o.Int("min_count", &r.MinCount, 2, math.MaxInt32/tts.MostPattern) && r.MaxPattern > 0 {
		o.Fail(jsonread.CodeMissing, "min_count", "it says how often a pattern comes at least.")
	}
	f.Adopt(o)
	return r
}

// badWords reads words that must not be completed.
func (f Fields) badWords() []string {
	items, _ := f.List("bad_words", MaxBadWords)
	words := make([]string, len(items))
	for i, item := range items {
		w, ok := jsonread.Text(item)
		if !ok {
			f.WrongType("bad_words", "a list of strings", item)
		}
		words[i] = strings.TrimLeft(w, " ")
		if words[i] == "" || len(w) > MaxBadWordLen {
			f.Fail(jsonread.CodeValue, fmt.Sprintf("bad_words[%d]", i), "a word has 1 to %d bytes that are more than spaces.", MaxBadWordLen)
		}
	}
	return words
}

// allowed reads the tokens that may be sampled at all; nil: all of them.
func (f Fields) allowed(vocab int) []int32 {
	if !f.Has("allowed_token_ids") {
		return nil
	}
	ids := f.IDs("allowed_token_ids", MaxAllowed, vocab)
	if len(ids) == 0 {
		f.Fail(jsonread.CodeValue, "allowed_token_ids", "the list is empty.")
	}
	return ids
}

// seed returns the request's, of any sign that fits into 64 bits, or a random one.
func (f Fields) seed() uint64 {
	raw, ok := f.Take("seed")
	if !ok {
		return rand.Uint64()
	}
	if v, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return uint64(v)
	}
	v, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil {
		f.WrongType("seed", "a 64-bit integer", raw)
	}
	return v
}

// stop reads a string or a list of at most maxStops strings.
func (f Fields) stop() []string {
	raw, ok := f.Take("stop")
	if !ok {
		return nil
	}
	items := []json.RawMessage{raw}
	if jsonread.Kind(raw) == "a list" {
		items, _ = f.Items("stop", raw, MaxStops)
	}
	stops := make([]string, 0, len(items))
	for _, item := range items {
		s, ok := jsonread.Text(item)
		if !ok {
			f.WrongType("stop", "a string or a list of strings", item)
		} else if s == "" || len(s) > MaxStopLen {
			f.Fail(jsonread.CodeValue, "stop", "a stop string has 1 to %d bytes, but one has %d.", MaxStopLen, len(s))
		}
		stops = append(stops, s)
	}
	return stops
}

// logitBias reads OpenAI's {"token id": bias}, or llama.cpp's list of pairs: a
// token id, or a text for each of its tokens, and a bias, or false for never.
func (f Fields) logitBias(m *tts.Model) map[int32]float32 {
	const name = "logit_bias"
	raw, ok := f.Take(name)
	if !ok {
		return nil
	}
	var pairs iter.Seq2[json.RawMessage, json.RawMessage]
	object := jsonread.Kind(raw) == "an object"
	switch {
	case object:
		pairs = jsonread.Members(raw)
	case jsonread.Kind(raw) == "a list":
		pairs = f.pairs(name, raw)
	default:
		f.WrongType(name, "an object, or a list of pairs,", raw)
		return nil
	}
	bias, n := map[int32]float32{}, 0
	for token, value := range pairs {
		v := math.Inf(-1)
		if (object || string(value) != "false") && (json.Unmarshal(value, &v) != nil || v < -100 || v > 100) {
			f.Fail(jsonread.CodeValue, name, "the bias of token %s must be a number between -100 and 100, but got %s.", jsonread.Brief(token), jsonread.Brief(value))
		}
		for _, id := range f.biased(name, token, object, m) {
			bias[id] = float32(v)
		}
		if n++; n > MaxLogitBias || len(bias) > MaxLogitBias {
			f.Fail(jsonread.CodeValue, name, "at most %d tokens are allowed.", MaxLogitBias)
		}
		if f.Err != nil {
			return nil
		}
	}
	return bias
}

// pairs returns the elements of raw, found at name, a list of lists of two.
func (f Fields) pairs(name string, raw json.RawMessage) iter.Seq2[json.RawMessage, json.RawMessage] {
	return func(yield func(a, b json.RawMessage) bool) {
		for pair := range jsonread.Elements(raw) {
			items, ok := f.Items(name, pair, 2)
			if ok && len(items) != 2 {
				f.Fail(jsonread.CodeValue, name, "expected pairs of a token and a bias, but got a list of %d.", len(items))
			}
			if f.Err != nil || !yield(items[0], items[1]) {
				return
			}
		}
	}
}

// biased returns the tokens that an entry of logit_bias is about. As an object's key a
// string is an id; in a list it is a text.
func (f Fields) biased(name string, token json.RawMessage, key bool, m *tts.Model) []int32 {
	id := string(token)
	if s, ok := jsonread.Text(token); ok {
		if !key && len(s) <= MaxStopLen {
			return m.Tokenizer.Encode(nil, s, tokenizer.Options{ParseSpecial: true})
		}
		id = s
	}
	v, err := strconv.ParseInt(id, 10, 32)
	if err != nil || v < 0 || int(v) >= m.Vocab {
		f.Fail(jsonread.CodeValue, name, "%s is not a token id between 0 and %d.", jsonread.Brief(token), m.Vocab-1)
		return nil
	}
	return []int32{int32(v)}
}

// TokenLimit reads how many tokens a choice may have, at least lo. The first of names
// that is there counts, llama.cpp's n_predict before them. 0 is no tokens; absent, or
// -1 as n_predict, is up to the context's end.
func (f Fields) TokenLimit(req *tts.Request, lo int, names ...string) {
	given := string(f.Raw("n_predict")) == "-1"
	if given {
		f.Ignore("n_predict")
		req.Sampling.MaxTokens = 0
	}
	names = append([]string{"n_predict"}, names...)
	for _, name := range names {
		var v int
		if f.Int(name, &v, lo, math.MaxInt32) && !given {
			given = true
			req.Sampling.MaxTokens = v
			req.NoTokens = v == 0
		}
	}
	if most := req.Sampling.MaxTokens; req.MinTokens > most && most > 0 || req.NoTokens && req.MinTokens > 0 {
		f.Fail(jsonread.CodeValue, "min_tokens", "%d are more than the %d tokens that a choice may have.", req.MinTokens, most)
	}
}
