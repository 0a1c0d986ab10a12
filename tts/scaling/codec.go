package scaling

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Source is a plan as somebody has written it: an object in JSON, or a list
// of settings. Settings are found by their paths in JSON. A source leaves dst as
// it is, and returns false, where it lacks a setting or cannot read it. Faults
// are its own to report.
type Source interface {
	Name(key string, dst *string) bool                    // a short text
	Count(key string, dst *int) bool                      // 1 to MaxCount
	CountOrAuto(key string, dst *int) bool                // likewise, or auto, which is AutoN
	Number(key string, dst *float64, lo, hi float64) bool // within these bounds
	Numbers(key string, dst *[]float64) bool              // some; Validate has their bounds
	Temperature(key string, dst *float32) bool            // within the bounds of the source
	Switch(key string, dst *bool) bool
	Texts(key string, dst *[]string) bool                         // delimiters
	List(key string, dst *[]string) bool                          // texts; Validate has their bounds
	JSON(key string, dst *[]byte) bool                            // an object, as it is written
	Words(key string, known []string, add func(word string)) bool // some of the known ones
}

// MaxCount keeps sums and products of sizes far from overflow.
const MaxCount = 1 << 30

// Read sets what a source says, and leaves the rest as it is. Sizes and names
// are checked by Validate. It is the one list of a plan's settings.
func (p *Plan) Read(src Source) {
	readName(src, "method", &p.Method)
	readName(src, "aggregate", &p.Aggregate)
	readName(src, "select", &p.Select)
	readName(src, "stream_mode", &p.Stream)
	src.Name("verifier", &p.Verifier)
	p.Verify.read(src)
	p.Judge.read(src)
	src.CountOrAuto("n", &p.N)
	src.Count("width", &p.Width)
	src.Count("max_steps", &p.MaxSteps)
	var t float32
	if src.Temperature("temperature", &t) {
		p.Temperature = &t
	}
	src.Texts("step.stop", &p.Step.Stop)
	src.Switch("step.members", &p.Step.Members)
	src.Count("step.max_tokens", &p.Step.MaxTokens)
	src.Name("answer.extract", &p.Answer.Extract)
	src.Name("answer.normalize", &p.Answer.Normalize)
	src.Count("budget.tokens", &p.Budget.Tokens)
	var ms int
	if src.Count("budget.time_ms", &ms) {
		p.Budget.Time = time.Duration(ms) * time.Millisecond
	}
	src.Number("quality", &p.Quality, leastQuality, 1)
	if src.Count("deadline_ms", &ms) {
		p.Deadline = time.Duration(ms) * time.Millisecond
	}
	var on bool
	if src.Switch("early_stop", &on) {
		p.EarlyStop.Off = !on
	}
	src.Number("early_stop.consensus", &p.EarlyStop.Consensus, leastConsensus, mostConsensus)
	if src.Switch("adaptive", &on) {
		p.Adaptive.On = on
	}
	a, d := &p.Adaptive, &p.DeepConf
	settings := src.Count("adaptive.first", &a.First)
	settings = src.Number("adaptive.threshold", &a.Threshold, leastConsensus, mostConsensus) || settings
	settings = src.Number("adaptive.price", &a.Price, leastCost, 1) || settings
	if src.Numbers("adaptive.step_cost", &a.StepCost) || settings {
		a.On = true
	}
	src.Count("deepconf.warmup", &d.Warmup)
	src.Number("deepconf.eta", &d.Eta, leastEta, 100)
	src.Count("deepconf.window", &d.Window)
	src.Count("deepconf.top_k", &d.TopK)
	readName(src, "deepconf.weight", &d.Weight)
	src.Number("deepconf.tau", &d.Tau, leastTau, 1)
	readName(src, "particles.resampling", &p.Particles.Resampling)
	src.Number("particles.temperature", &p.Particles.Temperature, leastHeat, mostHeat)
	src.Count("particles.iterations", &p.Particles.Iterations)
	src.Count("particles.references", &p.Particles.References)
	src.Words("include", includes, p.Include.add)
}

func readName[T ~string](src Source, key string, dst *T) {
	name := string(*dst)
	if src.Name(key, &name) {
		*dst = T(name)
	}
}

// includes are the names of Include's fields.
var includes = []string{"candidates", "steps", "tree", "partial", "critiques"}

func (i *Include) add(name string) {
	*map[string]*bool{"candidates": &i.Candidates, "steps": &i.Steps, "tree": &i.Tree, "partial": &i.Partial, "critiques": &i.Critiques}[name] = true
}

// Set sets one field by its path in JSON and its value as text: method, n,
// width, max_steps, step.stop (adds one), step.members (true or false), step.max_tokens, verifier,
// aggregate, select, answer.extract, answer.normalize, temperature, early_stop
// (true or false), early_stop.consensus, adaptive (true or false; its settings switch it
// on), adaptive.first, adaptive.threshold, adaptive.price, adaptive.step_cost (a
// comma-separated list), verify.language, verify.tests (adds one), verify.json_schema,
// verify.pattern, verify.arithmetic (true or false), judge.critiques, judge.max_tokens,
// judge.total_tokens, judge.temperature, judge.combine, deepconf.warmup, deepconf.eta,
// deepconf.window, deepconf.top_k, deepconf.weight, deepconf.tau, particles.resampling,
// particles.temperature, particles.iterations, particles.references, budget.tokens,
// budget.time_ms, quality, deadline_ms, stream_mode, include (adds a comma-separated list).
func (p *Plan) Set(key, value string) error {
	s := written{key: key, value: value}
	p.Read(&s)
	if !s.known {
		return Errorf(CodeValue, "", "there is no setting %.40q", key)
	}
	return s.err
}

// written is a Source of one setting, its value as text.
type written struct {
	key, value string
	known      bool  // there is such a setting
	err        error // an *Error
}

// has reports whether the setting is that of key.
func (w *written) has(key string) bool {
	w.known = w.known || w.key == key
	return w.key == key
}

// read sets dst to what parse makes of the value of a setting, if that is the one of key.
func read[T any](w *written, key string, dst *T, parse func(value string) (T, error)) bool {
	if !w.has(key) {
		return false
	}
	v, err := parse(w.value)
	if err == nil {
		*dst = v
	} else if w.err = err; CodeOf(err) == "" {
		w.err = w.unreadable()
	}
	return err == nil
}

func (w *written) unreadable() error {
	return Errorf(CodeValue, w.key, "cannot read %.40q", w.value)
}

func (w *written) Name(key string, dst *string) bool {
	return read(w, key, dst, func(s string) (string, error) { return s, nil })
}

func (w *written) Count(key string, dst *int) bool {
	return read(w, key, dst, func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err == nil && (n < 1 || n > MaxCount) {
			err = strconv.ErrRange
		}
		return n, err
	})
}

func (w *written) CountOrAuto(key string, dst *int) bool {
	if w.has(key) && w.value == "auto" {
		*dst = AutoN
		return true
	}
	return w.Count(key, dst)
}

func (w *written) Number(key string, dst *float64, lo, hi float64) bool {
	return read(w, key, dst, func(s string) (float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		if err == nil && !(v >= lo && v <= hi) {
			err = Errorf(CodeValue, key, "%v is not between %v and %v", v, lo, hi)
		}
		return v, err
	})
}

func (w *written) Numbers(key string, dst *[]float64) bool {
	return read(w, key, dst, func(s string) (list []float64, err error) {
		for word := range strings.SplitSeq(s, ",") {
			v, bad := strconv.ParseFloat(strings.TrimSpace(word), 64)
			if bad != nil {
				return nil, bad
			}
			list = append(list, v)
		}
		return list, nil
	})
}

func (w *written) Temperature(key string, dst *float32) bool {
	return read(w, key, dst, func(s string) (float32, error) {
		v, err := strconv.ParseFloat(s, 32)
		return float32(v), err
	})
}

func (w *written) Switch(key string, dst *bool) bool { return read(w, key, dst, strconv.ParseBool) }

func (w *written) Texts(key string, dst *[]string) bool {
	return read(w, key, dst, func(s string) ([]string, error) { return append(*dst, s), nil })
}

func (w *written) List(key string, dst *[]string) bool { return w.Texts(key, dst) }

func (w *written) JSON(key string, dst *[]byte) bool {
	return read(w, key, dst, func(s string) ([]byte, error) { return []byte(s), nil })
}

func (w *written) Words(key string, known []string, add func(word string)) bool {
	if !w.has(key) {
		return false
	}
	for word := range strings.SplitSeq(w.value, ",") {
		word = strings.TrimSpace(word)
		if slices.Contains(known, word) {
			add(word)
		} else if word != "" {
			w.err = w.unreadable()
			return false
		}
	}
	return true
}
