package fields

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
)

// Sampling reads into req how its answer is sampled and where it ends. Numbers that the request does not name
// are the model's defaults, and below them the API's in custom; if that is empty, OpenAI's. It returns the
// numbers that the request names.
func (f Reader) Sampling(req *tts.Request, m *tts.Model, maxChoices int, custom sampling.Config) sampling.Config {
	s := sampled{Fields: f.Fields, req: req, model: m, choices: maxChoices}
	for i := range sampling.Fields {
		readDrawn(f.Fields, &sampling.Fields[i], &s.named)
	}
	readRepetition(f.Fields, &s.named)
	s.named.Or(m.Defaults(custom)).Apply(&req.Sampling)
	for _, row := range Sampled {
		row.read(&s)
	}
	if custom.Empty() && req.Repetition.MaxPattern > 0 {
		m.Guard(&req.Sampling, s.named)
	}
	return s.named
}

// sampled holds the request that fields are read into.
type sampled struct {
	*jsonread.Fields
	req     *tts.Request
	model   *tts.Model
	choices int // that a request may have
	named   sampling.Config
}

// Sampled are the fields besides sampling.Fields that say how answers are sampled and where they
// end, in all APIs that take OpenAI's names.
var Sampled = []Row{
	{"`ignore_eos`", "default false", "an answer goes on past tokens that end a turn, as in vLLM", func(s *sampled) { s.Bool("ignore_eos", &s.req.Sampling.IgnoreEOS) }},
	{"`stop_token_ids`", count(MaxStopTokens, "token ids"), "each ends an answer", func(s *sampled) {
		s.req.Sampling.Stop = sampling.NewTokenSet(s.IDs("stop_token_ids", MaxStopTokens, s.model.Vocab))
	}},
	{"`min_tokens`", "0 up", "no token or stop string ends a choice earlier; at most `max_tokens`", func(s *sampled) { s.Int("min_tokens", &s.req.MinTokens, 0, math.MaxInt32) }},
	{"`repetition_detection`", "an object", "vLLM's: `max_pattern_size` (to 1024), `min_pattern_size` (default 1), `min_count` (from 2). A pattern of so many tokens that comes `min_count` times in a row ends the answer with finish reason `repetition`. Where nobody names a temperature or `frequency_penalty`, and the author no sampling, the latter is 0.2, and `min_p` 0.1 unless it is named", func(s *sampled) {
		s.req.Repetition = readRepetitionDetection(s.Fields)
	}},
	{"`bad_words`", count(MaxBadWords, fmt.Sprintf("of 1 to %d bytes", MaxBadWordLen)), "words that are never completed, in their tokens at a text's beginning and after a space", func(s *sampled) { s.req.BadWords = readBadWords(s.Fields) }},
	{"`allowed_token_ids`", count(MaxAllowed, "token ids"), "only these are sampled, so a turn ends only if its token is listed", func(s *sampled) { s.req.Allowed = readAllowed(s.Fields, s.model.Vocab) }},
	{"`include_stop_str_in_output`", "default false", "the answer's text keeps what ended it", func(s *sampled) { s.Bool("include_stop_str_in_output", &s.req.KeepStop) }},
	{"`skip_special_tokens`", "default true", "false writes special tokens out", func(s *sampled) {
		skip := true
		s.Bool("skip_special_tokens", &skip)
		s.req.Special = !skip
	}},
	{"`dry_sequence_breakers`", count(MaxBreakers, fmt.Sprintf("of 1 to %d bytes", MaxStopLen)), "texts across which DRY counts no repetition; default `\\n`, `:`, `\"` and `*`", func(s *sampled) {
		s.req.DRYBreakers = readTexts(s.Fields, "dry_sequence_breakers", MaxBreakers)
	}},
	{"`n`", "1 to `server.max_choices`", "choices of each prompt, which is computed once", func(s *sampled) {
		s.req.N = 1
		s.Int("n", &s.req.N, 1, s.choices)
	}},
	{"`seed`", "64 bits", "same request and seed, same answer, whatever else runs; random if absent", func(s *sampled) { s.req.Sampling.Seed = readSeed(s.Fields) }},
	{"`stop`", count(MaxStops, fmt.Sprintf("strings of 1 to %d bytes", MaxStopLen)), "a string or a list; the first to be complete ends the answer and is not delivered", func(s *sampled) { s.req.Stop = readTexts(s.Fields, "stop", MaxStops) }},
	{"`logit_bias`", count(MaxLogitBias, "tokens, -100 to 100"), "token id → bias; or llama.cpp's list of pairs: a token id, or a text for all its tokens, and a bias, or `false` for never", func(s *sampled) {
		s.req.Sampling.LogitBias = readLogitBias(s.Fields, s.model)
	}},
}

// readDrawn reads a number of how tokens are drawn.
func readDrawn(f *jsonread.Fields, row *sampling.Field, named *sampling.Config) {
	least := row.Lo
	if row.MinusOne {
		least = -1
	}
	if row.Whole() {
		if n := 0; f.Int(row.Name, &n, int(least), int(row.Hi)) {
			row.Put(named, max(float64(n), row.Lo))
		}
	} else if x := float32(0); f.Float32(row.Name, &x, least, row.Hi) {
		row.Put(named, float64(x))
	}
}

// readRepetition reads llama.cpp's name for the penalty of tokens seen: repetition_penalty is of all of
// them, repeat_penalty of the latest repeat_last_n, where -1 is all and 0 none.
func readRepetition(f *jsonread.Fields, named *sampling.Config) {
	if named.RepetitionPenalty != nil {
		if f.Has("repeat_penalty") {
			f.Fail(jsonread.CodeValue, "repeat_penalty", "it cannot be given together with 'repetition_penalty'.")
		}
		named.RepeatLastN = new(-1)
		return
	}
	row := sampling.Named("repetition_penalty")
	if x := float32(0); f.Float32("repeat_penalty", &x, row.Lo, row.Hi) {
		named.RepetitionPenalty = &x
	}
}

// readRepetitionDetection reads vLLM's field of that name.
func readRepetitionDetection(f *jsonread.Fields) (r tts.Repetition) {
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

// readBadWords reads words that must not be completed.
func readBadWords(f *jsonread.Fields) []string {
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

// readAllowed reads the tokens that may be sampled at all; nil: all of them.
func readAllowed(f *jsonread.Fields, vocab int) []int32 {
	if !f.Has("allowed_token_ids") {
		return nil
	}
	ids := f.IDs("allowed_token_ids", MaxAllowed, vocab)
	if len(ids) == 0 {
		f.Fail(jsonread.CodeValue, "allowed_token_ids", "the list is empty.")
	}
	return ids
}

// readSeed returns the request's, of any sign that fits into 64 bits, or a random one.
func readSeed(f *jsonread.Fields) uint64 {
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

// readTexts reads a string or a list of at most that many strings; nil: there is none.
func readTexts(f *jsonread.Fields, name string, most int) []string {
	raw, ok := f.Take(name)
	if !ok {
		return nil
	}
	items := []json.RawMessage{raw}
	if jsonread.Kind(raw) == "a list" {
		items, _ = f.Items(name, raw, most)
	}
	texts := make([]string, 0, len(items))
	for _, item := range items {
		s, ok := jsonread.Text(item)
		if !ok {
			f.WrongType(name, "a string or a list of strings", item)
		} else if s == "" || len(s) > MaxStopLen {
			f.Fail(jsonread.CodeValue, name, "a text has 1 to %d bytes, but one has %d.", MaxStopLen, len(s))
		}
		texts = append(texts, s)
	}
	return texts
}

// readLogitBias reads OpenAI's {"token id": bias}, or llama.cpp's list of pairs: a
// token id, or a text for each of its tokens, and a bias, or false for never.
func readLogitBias(f *jsonread.Fields, m *tts.Model) map[int32]float32 {
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
		pairs = readPairs(f, name, raw)
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
		for _, id := range readBiased(f, name, token, object, m) {
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

// readPairs returns the elements of raw, found at name, a list of lists of two.
func readPairs(f *jsonread.Fields, name string, raw json.RawMessage) iter.Seq2[json.RawMessage, json.RawMessage] {
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

// readBiased returns the tokens that an entry of logit_bias is about. As an object's key a
// string is an id; in a list it is a text.
func readBiased(f *jsonread.Fields, name string, token json.RawMessage, key bool, m *tts.Model) []int32 {
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
func (f Reader) TokenLimit(req *tts.Request, lo int, names ...string) {
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
