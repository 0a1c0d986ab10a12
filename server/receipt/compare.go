package receipt

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/lutra-lm/lutra/batcher/sampling"
)

// Verdict is the result of a comparison.
type Verdict struct {
	// Apart says why the answers cannot be compared: what they were computed from or
	// with is not the same.
	Apart []string `json:"not_comparable,omitempty"`
	Where []Place  `json:"differs,omitempty"` // where they part: choices or candidates, in their order
	Notes []string `json:"notes,omitempty"`   // what else is not the same
	// Choices, Candidates and Tokens were compared.
	Choices    int `json:"choices"`
	Candidates int `json:"candidates"`
	Tokens     int `json:"tokens"`
}

// Same tells whether the answers have the same bits.
func (v *Verdict) Same() bool { return len(v.Apart) == 0 && len(v.Where) == 0 }

// Place is where a choice or a candidate parts from the one that it should be.
type Place struct {
	Candidate bool `json:"candidate"` // of a search, else a choice
	Prompt    int  `json:"prompt"`    // of a candidate
	Index     int  `json:"index"`
	// Token is the position of the first token that is another one; -1: it is not known,
	// or all are the same.
	Token int `json:"token"`
	// Was and Now are the tokens there; -1: there is none, or it is not known.
	Was    int32   `json:"was"`
	Now    int32   `json:"now"`
	Before []int32 `json:"-"`             // the last tokens before it
	Why    string  `json:"why,omitempty"` // where the tokens are the same or not known
}

// before is the number of tokens that are remembered before a Place.
const before = 16

// Compare compares an answer's receipt with the receipt of the same request computed again.
func Compare(was, now *Receipt) *Verdict {
	v := &Verdict{}
	v.Apart = apart(was, now)
	v.Notes = notes(was, now)
	if len(v.Apart) > 0 {
		return v
	}
	v.Choices, v.Candidates = len(was.Choices), len(was.Candidates)
	v.compare(false, was.Choices, now.Choices)
	tokens := v.Tokens
	v.compare(true, was.Candidates, now.Candidates)
	if v.Tokens > tokens { // the choices are among the candidates
		v.Tokens -= tokens
	}
	return v
}

// apart lists what was not the same before any token was computed.
func apart(was, now *Receipt) (reasons []string) {
	note := func(what string, was, now any) {
		if !reflect.DeepEqual(was, now) {
			reasons = append(reasons, fmt.Sprintf("%s: %v there, %v here", what, shown(was), shown(now)))
		}
	}
	model := func(what string, was, now *Model) {
		note(what+".sha256", was.SHA256, now.SHA256)
		note(what+".metadata", was.Metadata, now.Metadata)
		note(what+".packing", was.Packing, now.Packing)
		note(what+".kv", was.KV, now.KV)
		note(what+".adapters", adapters(was), adapters(now))
	}
	model("model", &was.Model, &now.Model)
	note("kernels", was.Kernels, now.Kernels)
	note("endpoint", was.Endpoint, now.Endpoint)
	note("sampling.seed", was.Sampling.Seed, now.Sampling.Seed)
	for i, w := range was.Sampling.whole() {
		note("sampling."+w.name, *w.value, *now.Sampling.whole()[i].value)
	}
	for i := range sampling.Fields {
		f := &sampling.Fields[i]
		note("sampling."+f.Name, f.Value(&was.Sampling.Params), f.Value(&now.Sampling.Params))
	}
	switch {
	case (was.Search == nil) != (now.Search == nil):
		note("search", was.Search != nil, now.Search != nil)
	case was.Search != nil:
		note("search.plan", value(was.Search.Plan), value(now.Search.Plan))
		before, after := was.Search.Verifier, now.Search.Verifier
		if before == nil || after == nil {
			note("search.verifier", before != nil, after != nil)
		} else {
			model("search.verifier", before, after)
		}
		note("search.probe", probe(was.Search), probe(now.Search))
	}
	note("prompts", len(was.Prompts), len(now.Prompts))
	for i := range min(len(was.Prompts), len(now.Prompts)) {
		if was.Prompts[i] != now.Prompts[i] {
			reasons = append(reasons, fmt.Sprintf("prompts[%d]: its %d tokens there are not its %d here; does the chat template write the date?", i, was.Prompts[i].Tokens, now.Prompts[i].Tokens))
		}
	}
	note("choices", len(was.Choices), len(now.Choices))
	return reasons
}

// probe returns the hash of the probe that judged in a search.
func probe(s *Search) string {
	if s.Probe == nil {
		return ""
	}
	return s.Probe.SHA256
}

// adapters writes the files of a model's adapters, whatever their names, and their scales.
func adapters(m *Model) (text string) {
	for _, a := range m.Adapters {
		text += fmt.Sprintf("%s at %v ", a.SHA256, a.Scale)
	}
	return text
}

// shown returns v as a reason shows it.
func shown(v any) any {
	if v == "" {
		return "none"
	}
	if m, ok := v.(map[string]any); ok {
		text, _ := json.Marshal(m) // was read from JSON
		return string(text)
	}
	return v
}

// value is JSON as values that can be compared.
func value(raw json.RawMessage) (v any) {
	_ = json.Unmarshal(raw, &v) // what is no JSON is nil, and has been refused
	return v
}

// notes lists what may be the cause of a difference, or does not matter.
func notes(was, now *Receipt) (list []string) {
	if was.Build != now.Build {
		list = append(list, fmt.Sprintf("build: %s there, %s here", was.Build, now.Build))
	}
	if was.Model.Context != now.Model.Context {
		list = append(list, fmt.Sprintf("model.context: %d there, %d here", was.Model.Context, now.Model.Context))
	}
	if was.Search != nil && now.Search != nil {
		if !slices.Equal(was.Search.Stopped, now.Search.Stopped) {
			list = append(list, fmt.Sprintf("search.stop_reasons: %v there, %v here", was.Search.Stopped, now.Search.Stopped))
		}
		stops := append(slices.Clone(was.Search.Stopped), now.Search.Stopped...)
		if slices.Contains(stops, "budget_time") {
			list = append(list, "a search ended with its budget of time, so it depends on speed: give it a budget of tokens alone")
		}
		if slices.Contains(stops, "deadline") {
			list = append(list, "a search ended at its deadline, so it depends on speed; the replica had none")
		}
		if was.Search.Degraded || now.Search.Degraded {
			list = append(list, "a search had too little KV memory for all its candidates, so it depends on the size of the pool")
		}
	}
	return list
}

// String returns the build in a line.
func (b Build) String() string {
	s := cmp.Or(b.Version, "unknown")
	if b.Revision != "" {
		s += " of revision " + b.Revision[:min(12, len(b.Revision))]
	}
	if b.Modified {
		s += ", changed since"
	}
	return s + ", " + cmp.Or(b.Go, "unknown Go")
}

// compare compares choices or candidates one by one.
func (v *Verdict) compare(candidates bool, was, now []Choice) {
	byIndex := func(list []Choice) []Choice {
		list = slices.Clone(list)
		slices.SortStableFunc(list, func(a, b Choice) int { return cmp.Or(cmp.Compare(a.Prompt, b.Prompt), cmp.Compare(a.Index, b.Index)) })
		return list
	}
	was, now = byIndex(was), byIndex(now)
	for i := range min(len(was), len(now)) {
		v.Tokens += was[i].Tokens
		p := Place{Candidate: candidates, Prompt: was[i].Prompt, Index: was[i].Index, Token: -1, Was: -1, Now: -1}
		if p.find(&was[i], &now[i]) {
			v.Where = append(v.Where, p)
		}
	}
	if len(was) != len(now) {
		p := Place{Candidate: candidates, Index: min(len(was), len(now)), Token: -1, Was: -1, Now: -1}
		p.Why = fmt.Sprintf("there are %d in all there, %d here", len(was), len(now))
		v.Where = append(v.Where, p)
	}
}

// find tells whether two that should be the same differ, and where.
func (p *Place) find(was, now *Choice) bool {
	differ := func(format string, args ...any) bool {
		p.Why = fmt.Sprintf(format, args...)
		return true
	}
	if was.Hash != now.Hash {
		if len(was.IDs) != was.Tokens || len(now.IDs) != now.Tokens {
			return differ("%d tokens there, %d here, which are others; where is not known, since the receipt has hashes alone", was.Tokens, now.Tokens)
		}
		n := 0
		for n < min(len(was.IDs), len(now.IDs)) && was.IDs[n] == now.IDs[n] {
			n++
		}
		p.Token, p.Before = n, was.IDs[max(0, n-before):n]
		if n < len(was.IDs) {
			p.Was = was.IDs[n]
		}
		if n < len(now.IDs) {
			p.Now = now.IDs[n]
		}
		return true
	}
	switch {
	case was.Index != now.Index || was.Prompt != now.Prompt:
		return differ("it is candidate %d of prompt %d here", now.Index, now.Prompt)
	case was.Finish != now.Finish:
		return differ("it ended with %q there, with %q here", was.Finish, now.Finish)
	case !sameScore(was.Score, now.Score):
		return differ("its score is %s there, %s here", score(was.Score), score(now.Score))
	}
	for i := range min(len(was.Steps), len(now.Steps)) {
		if a, b := was.Steps[i], now.Steps[i]; math.Float32bits(a) != math.Float32bits(b) {
			return differ("the score of its solution step %d is %v there, %v here", i, a, b)
		}
	}
	if len(was.Steps) != len(now.Steps) {
		return differ("it has %d scores there, %d here", len(was.Steps), len(now.Steps))
	}
	return false
}

func sameScore(a, b *float32) bool {
	return (a == nil) == (b == nil) && (a == nil || math.Float32bits(*a) == math.Float32bits(*b))
}

func score(s *float32) string {
	if s == nil {
		return "none"
	}
	return fmt.Sprint(*s)
}
