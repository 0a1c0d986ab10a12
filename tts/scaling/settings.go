package scaling

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Setting is a setting of a plan. Plans are read, checked, written and described by Settings.
type Setting struct {
	Key     string   // path in JSON; in the written form, the key
	Words   []string // that a text or a list may have; nil: any
	Lo, Hi  float64  // bounds of a number; of a count, Hi 0 is MaxCount
	Auto    bool     // "auto" is AutoN
	Default string   // in words, for docs/api.md
	Doc     string   // likewise

	at func(*Plan) any // what holds the value: a pointer of one of the types that Source lists
	// always writes the setting where its value is zero, too.
	always bool
	// unsaid leaves the setting out of what is written: it says how the answer is found or reported,
	// which is no part of what makes it.
	unsaid bool
	// of tells whether the setting is in force in a plan; nil: always.
	of func(*Plan) bool
}

// Type returns the type of the value in JSON Schema's word; empty: it may be of several.
func (s *Setting) Type() string {
	switch s.at(new(Plan)).(type) {
	case *string:
		return "string"
	case *int, *time.Duration:
		if s.Auto {
			return ""
		}
		return "integer"
	case *float64, **float32:
		return "number"
	case *[]float64, *[]string, *Include:
		return "array"
	case *json.RawMessage:
		return "object"
	}
	return "" // switches may be objects, and delimiters a text
}

// Source is a plan as somebody has written it: an object in JSON, or a list of settings. Read sets
// dst, a pointer to a
//
//	string, *float32, bool, Negated          a name, a temperature, a switch, and one that is inverted
//	int, float64, time.Duration, []float64   a count, a number, milliseconds, several numbers
//	[]string, Delimiters, json.RawMessage    texts, texts of which a single one needs no list, an object
//	Include                                  some of Setting.Words
//
// to the value of a setting. It leaves dst as it is, and returns false, where it lacks the setting
// or cannot read it. Faults are its own to report.
type Source interface {
	Read(s *Setting, dst any) bool
}

// Negated is a switch that is true where the plan's field is false.
type Negated bool

// Delimiters end solution steps.
type Delimiters []string

// MaxCount keeps sums and products of sizes far from overflow.
const MaxCount = 1 << 30

func rounds(p *Plan) bool    { return p.Adaptive.On }
func confident(p *Plan) bool { return p.Method == DeepConfidence }
func particles(p *Plan) bool { return p.Method == ParticleFiltering }
func never(*Plan) bool       { return false }

// Settings are all settings of plans.
var Settings = []Setting{
	{Key: "method", Default: "required, or the next place's", Doc: "`none` (the plain answer), `self_consistency` (vote), `best_of_n`, [`deepconf`](#answers-that-end-early), `beam_search` (by solution steps), `dvts` (n/width independent beam searches), [`particle_filtering`](#particles), `auto` (a few votes, and a search when they disagree)", always: true,
		at: func(p *Plan) any { return (*string)(&p.Method) }},
	{Key: "n", Auto: true, Default: "8", Doc: "candidates, or beams of a beam search, at most `search.n`; `\"auto\"`: as many as lanes are idle", always: true,
		at: func(p *Plan) any { return &p.N }},
	{Key: "width", Default: "4", Doc: "children of a surviving beam; `n` is a multiple of it",
		at: func(p *Plan) any { return &p.Width }},
	{Key: "max_steps", Default: "40", Doc: "solution steps",
		at: func(p *Plan) any { return &p.MaxSteps }},
	{Key: "step.stop", Default: "`[\"\\n\"]`", Doc: "texts that end a solution step and stay in it. Where lines end steps, a sentence ends one too once its line has 48 tokens; in a fenced block of code a line ends one only then",
		at: func(p *Plan) any { return (*Delimiters)(&p.Step.Stop) }},
	{Key: "step.members", Default: "`true` with a JSON Schema and no `step.stop`, else `false`", Doc: "within JSON, [solution steps](#calls-and-json-in-a-search) end with members",
		at: func(p *Plan) any { return &p.Step.Members }},
	{Key: "step.max_tokens", Default: "256", Doc: "tokens of a solution step",
		at: func(p *Plan) any { return &p.Step.MaxTokens }},
	{Key: "verifier", Default: "the model's probe and the first reward model that reads its words, multiplied, or either; else `logprob` where steps are judged", Doc: "the name of a [probe](test-time-scaling.md#a-probe-of-your-own-model), reward model, [judge](#critiques) or [service](test-time-scaling.md#a-service-of-your-own); `self` (the model [checks its own candidates](#critiques)), `logprob` or `self_certainty`. `best_of_n` needs none. `*` multiplies up to four",
		at: func(p *Plan) any { return &p.Verifier }},
	{Key: "verify.language", Doc: "`javascript` or `python`: the language of the tests",
		at: func(p *Plan) any { return &p.Verify.Language }},
	{Key: "verify.tests", Doc: "score: the share that pass, of at most 64 tests of 8 KiB, 64 KiB together. Each runs after the code of the fenced blocks that name the language; if none passes, after the last block alone; without blocks, after the whole answer. It fails if it throws, or is an expression that is false. [What code may do](test-time-scaling.md#answers-that-can-be-checked)",
		at: func(p *Plan) any { return &p.Verify.Tests }},
	{Key: "verify.json_schema", Doc: "score: 1 or 0. A JSON Schema for the answer, or its last fenced block: at most 64 KiB, with the keywords of [structured answers](#structured-answers) and no references to others; `format` is not checked",
		at: func(p *Plan) any { return &p.Verify.Schema }},
	{Key: "verify.pattern", Doc: "score: 1 or 0. An expression in RE2 syntax, at most 512 bytes, that the final answer (`answer.extract`) must contain",
		at: func(p *Plan) any { return &p.Verify.Pattern }},
	{Key: "verify.arithmetic", Doc: "score: the share of true equations between numbers, such as `3*12=36`; 0.5 without any",
		at: func(p *Plan) any { return &p.Verify.Arithmetic }},
	{Key: "aggregate", Words: aggregates, Default: "`last`", Doc: "combines the scores of steps",
		at: func(p *Plan) any { return (*string)(&p.Aggregate) }},
	{Key: "select", Words: []string{string(SelectMax), string(SelectVote), string(SelectWeightedVote)}, Default: "`weighted_vote` with a verifier, else `vote`; `max` for `particle_filtering`, `best_of_n` without a verifier, and probes outside votes", Doc: "`max`: the best score; a vote falls back to it when fewer than half of the answers can be extracted", always: true,
		at: func(p *Plan) any { return (*string)(&p.Select) }},
	{Key: "answer.extract", Default: "`auto`", Doc: "`boxed`, `answer`, `number`, `choice`, `line`, `regex:…`, `json:/…`",
		at: func(p *Plan) any { return &p.Answer.Extract }},
	{Key: "answer.normalize", Default: "`math`", Doc: "`math`, `text`, `none`",
		at: func(p *Plan) any { return &p.Answer.Normalize }},
	{Key: "temperature", Default: "the request's, else 0.8", Doc: "other sampling fields are the request's, else off, as in the papers; the answer's `sampling` has them",
		at: func(p *Plan) any { return &p.Temperature }},
	{Key: "early_stop", Default: "`true`", Doc: "stop when the rest cannot change a vote",
		at: func(p *Plan) any { return (*Negated)(&p.EarlyStop.Off) }},
	{Key: "early_stop.consensus", Lo: 0.5, Hi: 1, Doc: "stop also once the leading answer stays ahead with this probability",
		at: func(p *Plan) any { return &p.EarlyStop.Consensus }},
	{Key: "judge.critiques", Default: "1", Doc: "critiques of each candidate or solution step, at most 16",
		at: func(p *Plan) any { return &p.Judge.Critiques }},
	{Key: "judge.max_tokens", Default: "512", Doc: "tokens of a critique, at most 4096; when they are spent, the judge is made to decide",
		at: func(p *Plan) any { return &p.Judge.MaxTokens }},
	{Key: "judge.total_tokens", Default: "`budget.tokens`", Doc: "tokens of all critiques of the search, shared among the ones to come; without any left, a judge decides at once",
		at: func(p *Plan) any { return &p.Judge.TotalTokens }},
	{Key: "judge.temperature", Default: "0; 0.6 for several",
		at: func(p *Plan) any { return &p.Judge.Temperature }},
	{Key: "judge.combine", Words: []string{string(CombineMean), string(CombineMajority)}, Default: "`mean`", Doc: "combines scores; `majority`: each critique has one vote",
		at: func(p *Plan) any { return (*string)(&p.Judge.Combine) }},
	{Key: "adaptive", Default: "`false`", Doc: "`true`, or an object with the settings of [candidates in rounds](#candidates-in-rounds), for `self_consistency` and `best_of_n`", of: never,
		at: func(p *Plan) any { return &p.Adaptive.On }},
	{Key: "adaptive.first", Default: "3", Doc: "candidates of the first round", always: true, of: rounds,
		at: func(p *Plan) any { return &p.Adaptive.First }},
	{Key: "adaptive.threshold", Lo: 0.5, Hi: 1, Default: "0.95", Doc: "probability that the leading answer stays ahead", always: true, of: rounds,
		at: func(p *Plan) any { return &p.Adaptive.Threshold }},
	{Key: "adaptive.price", Lo: leastCost, Hi: 1, Default: "0.01", Doc: "price of one candidate decoded alone, as a probability", always: true, of: rounds,
		at: func(p *Plan) any { return &p.Adaptive.Price }},
	{Key: "adaptive.step_cost", Default: "`[1, 1.25, 1.75, 2.75, 4.75, 9]`", Doc: "cost of an engine step with 1, 2, 4, 8, … rows, relative to one row; m candidates cost `price` times this. The default lies between [two machines](performance.md#whole-models) with a 1B model", always: true, of: rounds,
		at: func(p *Plan) any { return &p.Adaptive.StepCost }},
	{Key: "deepconf.warmup", Default: "a fifth of `n`, 3 to 16", Doc: "candidates that set the threshold; later rounds are as large", always: true, of: confident,
		at: func(p *Plan) any { return &p.DeepConf.Warmup }},
	{Key: "deepconf.eta", Lo: 1, Hi: 100, Default: "90", Doc: "percentage of the most confident warm-up candidates that pass; 10 ends all but the surest", always: true, of: confident,
		at: func(p *Plan) any { return &p.DeepConf.Eta }},
	{Key: "deepconf.window", Hi: 1 << 20, Default: "a quarter of a mean warm-up answer, at most 2048", Doc: "tokens of a group", of: confident,
		at: func(p *Plan) any { return &p.DeepConf.Window }},
	{Key: "deepconf.top_k", Hi: 128, Default: "20", Doc: "likeliest tokens", always: true, of: confident, // as many as a sampler lists
		at: func(p *Plan) any { return &p.DeepConf.TopK }},
	{Key: "deepconf.weight", Words: []string{string(MeasureLowest), string(MeasureBottom), string(MeasureTail), string(MeasureMean)}, Default: "`lowest`", Doc: "weight of a vote: the `lowest` group, `bottom` (mean of the lowest tenth), `tail` (the last group), `mean` of all tokens", always: true, of: confident,
		at: func(p *Plan) any { return (*string)(&p.DeepConf.Weight) }},
	{Key: "deepconf.tau", Lo: 0.5, Hi: 1, Default: "0.95", Doc: "share of the votes' weight that ends the search", always: true, of: confident,
		at: func(p *Plan) any { return &p.DeepConf.Tau }},
	{Key: "particles.resampling", Words: []string{string(Multinomial), string(Systematic)}, Default: "`multinomial`", Doc: "`multinomial`: each draw by itself; `systematic`: at equal distances, which drops fewer", always: true, of: particles,
		at: func(p *Plan) any { return (*string)(&p.Particles.Resampling) }},
	{Key: "particles.temperature", Lo: 0.01, Hi: 100, Default: "1", Doc: "temperature of the softmax; higher keeps more different particles", always: true, of: particles,
		at: func(p *Plan) any { return &p.Particles.Temperature }},
	{Key: "particles.iterations", Default: "1", Doc: "more than 1: particle Gibbs. This many filterings in turn share `n`, a multiple of it; the candidates are the last one's particles", always: true, of: particles,
		at: func(p *Plan) any { return &p.Particles.Iterations }},
	{Key: "particles.references", Default: "1 with `iterations`", Doc: "particles, drawn by score, that the next iteration keeps unchanged; it may draw them up to its own step", of: particles,
		at: func(p *Plan) any { return &p.Particles.References }},
	{Key: "budget.tokens", Default: "`search.tokens`", Doc: "most tokens; when they are spent, the best so far is the answer", always: true,
		at: func(p *Plan) any { return &p.Budget.Tokens }},
	{Key: "budget.time_ms", Default: "`search.time`", Doc: "most time, likewise", always: true,
		at: func(p *Plan) any { return &p.Budget.Time }},
	{Key: "quality", Lo: leastQuality, Hi: 1, Default: "none", Doc: "[the quality to reach](#quality-and-deadline), in place of a method", unsaid: true,
		at: func(p *Plan) any { return &p.Quality }},
	{Key: "deadline_ms", Default: "none", Doc: "[the time to reach it](#quality-and-deadline); with a `method`, only ends it", unsaid: true,
		at: func(p *Plan) any { return &p.Deadline }},
	{Key: "stream_mode", Words: []string{string(StreamCommitted), string(StreamFinal), string(StreamCandidates), string(StreamReasoning)}, Default: "`committed`", Doc: "`committed`: text as soon as it is final; `final`: all at the end; `candidates`: the same, and progress lists each candidate; `reasoning`: the same, and the search describes its course as [`reasoning_content`](#reasoning)", unsaid: true,
		at: func(p *Plan) any { return (*string)(&p.Stream) }},
	{Key: "include", Words: []string{"candidates", "steps", "tree", "partial", "critiques"}, Default: "none", Doc: "adds these to the answer; in streams `partial`: candidates [while they are written](#candidates-while-they-are-written)", unsaid: true,
		at: func(p *Plan) any { return &p.Include }},
}

// Add switches on what a word asks for; false: there is no such word.
func (i *Include) Add(word string) bool {
	on := map[string]*bool{"candidates": &i.Candidates, "steps": &i.Steps, "tree": &i.Tree, "partial": &i.Partial, "critiques": &i.Critiques}[word]
	if on != nil {
		*on = true
	}
	return on != nil
}

// Most returns the largest count that a setting may have.
func (s *Setting) Most() int {
	if s.Hi > 0 {
		return int(s.Hi)
	}
	return MaxCount
}

// Range returns the values of a setting in words; empty: the documentation has them.
func (s *Setting) Range() string {
	switch s.at(new(Plan)).(type) {
	case *bool, *Negated:
		return "true, false"
	case *float64:
		return fmt.Sprintf("%v to %v", strconv.FormatFloat(s.Lo, 'f', -1, 64), s.Hi)
	case *int:
		if s.Hi > 0 {
			return fmt.Sprintf("1 to %d", s.Most())
		}
		return "1 up"
	case *time.Duration:
		return "1 up"
	case **float32:
		return "0 to 2"
	}
	if s.Words == nil {
		return ""
	}
	return "`" + strings.Join(s.Words, "`, `") + "`"
}

// Read sets what a source says, and leaves the rest as it is. Sizes and names are checked by
// Validate.
func (p *Plan) Read(src Source) {
	for i := range Settings {
		s := &Settings[i]
		if src.Read(s, s.at(p)) && strings.HasPrefix(s.Key, "adaptive.") {
			p.Adaptive.On = true
		}
	}
}

// validateSettings reports the first setting with a value outside of its bounds.
func (p *Plan) validateSettings() error {
	for i := range Settings {
		s := &Settings[i]
		v, lo, hi := 0.0, s.Lo, s.Hi
		switch dst := s.at(p).(type) {
		case *float64:
			v = *dst
		case *int:
			if v, lo = float64(*dst), 1; s.Auto {
				continue // see validateSizes
			}
			if hi == 0 {
				hi = math.Inf(1) // a default is the server's limit
			}
		case *string:
			if *dst != "" && s.Words != nil && !slices.Contains(s.Words, *dst) {
				last := len(s.Words) - 1
				return Errorf(CodeValue, s.Key, "expected %s or %s, but got %.40q", strings.Join(s.Words[:last], ", "), s.Words[last], *dst)
			}
		}
		if v != 0 && !(v >= lo && v <= hi) { // NaN is outside
			return Errorf(CodeValue, s.Key, "%v is not between %v and %v", v, lo, hi)
		}
	}
	return nil
}

// value returns what a plan has of a setting in JSON; false: nothing, which is its default.
func (s *Setting) value(p *Plan) (json.RawMessage, bool) {
	if s.of != nil && !s.of(p) {
		return nil, false
	}
	var v any
	dst := s.at(p)
	switch d := dst.(type) {
	case *time.Duration:
		v = d.Milliseconds()
	case *Negated:
		v = !*d
	default:
		v = dst
	}
	if !s.always && reflect.ValueOf(dst).Elem().IsZero() {
		return nil, false
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers that Validate lets through, and texts
	}
	return text, true
}

// section returns the object of a plan's settings below a name; nil: there are none.
func (p *Plan) section(name string) json.RawMessage {
	out := []byte("{")
	for i := range Settings {
		key, below := strings.CutPrefix(Settings[i].Key, name+".")
		if value, ok := Settings[i].value(p); ok && below {
			out = member(out, key, value)
		}
	}
	if len(out) == 1 {
		return nil
	}
	return append(out, '}')
}

// JSON writes a plan with all that is in force, as the object that asks for it. How it is found
// and reported is left out.
func (p *Plan) JSON() json.RawMessage {
	out, written := []byte("{"), map[string]bool{}
	for i := range Settings {
		s := &Settings[i]
		name, _, nested := strings.Cut(s.Key, ".")
		if s.unsaid || written[name] {
			continue
		}
		value, ok := s.value(p)
		if nested {
			value = p.section(name)
			ok = value != nil
		}
		if written[name] = ok || nested; ok {
			out = member(out, name, value)
		}
	}
	return append(out, '}')
}

// member adds one to the text of an object.
func member(object []byte, name string, value []byte) []byte {
	if len(object) > 1 {
		object = append(object, ',')
	}
	return fmt.Appendf(object, "%q:%s", name, value)
}

// MethodSettings are the settings of single methods that are in force, as an answer tells of
// them.
type MethodSettings struct {
	Judge     json.RawMessage `json:"judge,omitempty"` // of a verifier that writes critiques
	Adaptive  json.RawMessage `json:"adaptive,omitempty"`
	DeepConf  json.RawMessage `json:"deepconf,omitempty"`
	Particles json.RawMessage `json:"particles,omitempty"`
}

// MethodSettings returns the settings of the method, of a plan that has its defaults.
func (p *Plan) MethodSettings() MethodSettings {
	return MethodSettings{p.section("judge"), p.section("adaptive"), p.section("deepconf"), p.section("particles")}
}
