// Package scaling says how one request wants to be searched: its Plan, read from
// JSON or from a line of text, with its defaults and bounds.
//
// It knows no models and no engines. Package tts carries plans out.
package scaling

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/internal/errtext"
	"github.com/lutra-lm/lutra/tts/answer"
)

// Method is a way to spend many candidates on one answer.
type Method string

// The methods.
const (
	SelfConsistency Method = "self_consistency" // whole answers, the most frequent wins (Wang et al. 2023)
	BestOfN         Method = "best_of_n"        // whole answers, the best scored wins
	BeamSearch      Method = "beam_search"      // the best solution steps of all go on (Snell et al. 2024, §5.2)
	DVTS            Method = "dvts"             // n/width independent beam searches of one beam (Beeching et al. 2024)
	// ParticleFiltering goes on with solution steps drawn by their scores (Puri et al. 2025).
	ParticleFiltering Method = "particle_filtering"
	// DeepConfidence ends answers whose tokens show little confidence (Fu et al. 2025).
	DeepConfidence Method = "deepconf"
	Auto           Method = "auto" // a few whole answers, and a search when they disagree
	None           Method = "none" // no search: the plain answer
)

// methodRow says what a method reads of a plan.
type methodRow struct {
	name   Method
	width  bool // continues beams in several ways
	steps  bool // works step by step
	judged bool // needs a verifier: it compares solution steps
}

// methods has a row for each, in the order in which they are listed.
var methods = []methodRow{
	{name: None},
	{name: SelfConsistency},
	{name: BestOfN},
	{name: DeepConfidence},
	{name: BeamSearch, width: true, steps: true, judged: true},
	{name: DVTS, width: true, steps: true, judged: true},
	{name: ParticleFiltering, steps: true, judged: true},
	{name: Auto, width: true, steps: true},
}

// Methods returns all of them, None first.
func Methods() []Method {
	list := make([]Method, len(methods))
	for i := range methods {
		list[i] = methods[i].name
	}
	return list
}

// Names returns the names of all methods, None last.
func Names() []string {
	var names []string
	for _, m := range append(Methods()[1:], None) {
		names = append(names, string(m))
	}
	return names
}

// namesWith lists the names, with a word ahead of the last.
func namesWith(word string) string {
	names := Names()
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + word + " " + names[last]
}

// row returns what the method's row says, of None where there is none.
func (m Method) row() *methodRow {
	for i := range methods {
		if methods[i].name == m {
			return &methods[i]
		}
	}
	return &methods[0]
}

// Beams tells whether the method is a beam search: it has a width.
func (m Method) Beams() bool { return m.row().width && m.row().judged }

// Judged tells whether the method needs a verifier: it compares solution steps.
func (m Method) Judged() bool { return m.row().judged }

// Aggregate makes one score of a candidate's step scores.
type Aggregate string

// The aggregates.
const (
	AggregateLast Aggregate = "last"
	AggregateMin  Aggregate = "min"
	AggregateProd Aggregate = "prod"
	AggregateMean Aggregate = "mean"
	AggregateMax  Aggregate = "max"
)

// aggregates are the names of all of them.
var aggregates = []string{string(AggregateLast), string(AggregateMin), string(AggregateProd), string(AggregateMean), string(AggregateMax)}

// Validate reports a name that is none of the aggregates.
func (a Aggregate) Validate() error {
	if slices.Contains(aggregates, string(a)) {
		return nil
	}
	return fmt.Errorf("expected last, min, prod, mean or max, but got %.40q", string(a))
}

// Of returns the aggregate of step scores, of which there is at least one.
func (a Aggregate) Of(scores []float32) float32 {
	switch a {
	case AggregateMin:
		return slices.Min(scores)
	case AggregateMax:
		return slices.Max(scores)
	case AggregateLast:
		return scores[len(scores)-1]
	}
	sum, product := float32(0), float32(1)
	for _, s := range scores {
		sum += s
		product *= s
	}
	if a == AggregateProd {
		return product
	}
	return sum / float32(len(scores))
}

// Select is the rule by which the answer is chosen among the candidates.
type Select string

// The rules. When fewer than half of the candidates have an answer that can
// be extracted, all fall back to SelectMax.
const (
	SelectMax          Select = "max"           // the best scored candidate
	SelectVote         Select = "vote"          // the best scored of the most frequent answer
	SelectWeightedVote Select = "weighted_vote" // the same, a vote counting as much as its score

)

// StreamMode says what is delivered while a search runs.
type StreamMode string

// The modes.
const (
	StreamCommitted  StreamMode = "committed"  // text that can no longer change, as soon as that is known
	StreamFinal      StreamMode = "final"      // nothing before the end
	StreamCandidates StreamMode = "candidates" // the same; Progress.Ended holds each candidate once it is complete
	StreamReasoning  StreamMode = "reasoning"  // the same; Reasoning says in words how the search goes
)

// AutoN as Plan.N takes the token lanes that the current kernel tile has to spare.
const AutoN = -1

// The names by which Plan.Verifier asks for the generator's own scores.
const (
	VerifierLogprob       = "logprob"        // mean log-probability of a candidate's tokens
	VerifierSelfCertainty = "self_certainty" // mean distance of their distributions from the uniform one
	VerifierSelf          = "self"           // what the generator writes of a candidate when it is asked to check it
)

// OwnVerifier tells whether a verifier is the generator itself.
func OwnVerifier(name string) bool {
	return name == VerifierLogprob || name == VerifierSelfCertainty || name == VerifierSelf
}

// Plan holds the settings of one request's search. The zero values of all fields but Method mean their
// defaults.
type Plan struct {
	Method      Method
	N           int // candidates, or beams of a beam search; 0: 8
	Width       int // children of a surviving beam; 0: 4, or N when that is less
	MaxSteps    int // solution steps at most; 0: 40
	Step        StepRule
	Verifier    string // who scores; "": the default one
	Verify      Verify // scores by a check, in place of a verifier
	Judge       Judge  // how a verifier that writes critiques does so
	Aggregate   Aggregate
	Select      Select
	Answer      answer.Rule
	Temperature *float32 // nil: the request's, and 0.8 where that has none
	EarlyStop   EarlyStop
	Adaptive    Adaptive
	DeepConf    DeepConf
	Particles   Particles
	Budget      Budget
	Quality     float64       // share of right answers to choose method and sizes for; 0: they are not chosen
	Deadline    time.Duration // from the request's arrival to the answer; 0: none
	Stream      StreamMode
	Include     Include
}

// StepRule says where a solution step ends. The delimiter stays in the text. A call of a tool is
// a candidate's last solution step, whatever it holds.
//
// Where lines end steps, a sentence ends one in a line that is long, and in a fenced block of code
// several lines are one.
type StepRule struct {
	Stop      []string // delimiters; none: a line's end
	Members   bool     // within JSON, steps end with members of objects and with items that are objects or arrays; where nothing sets Stop, answers in JSON have it
	MaxTokens int      // 0: 256
}

// EarlyStop ends votes before all candidates are complete. Once the rest
// cannot change the outcome there is nothing to lose, so that is on unless Off.
type EarlyStop struct {
	Off bool
	// Consensus in [0.5, 1] also stops when the leading answer is the more
	// frequent one of the first two with that probability (Aggarwal et al.
	// 2023, "Adaptive-Consistency", Beta criterion). No number of votes makes it
	// certain, so 1 stops nothing; nor does 0, which is unset.
	Consensus float64
}

// Budget bounds a search; when it is spent the best so far is the answer.
type Budget struct {
	Tokens int           // generated tokens of all candidates; 0: the server's limit
	Time   time.Duration // 0: the server's limit
}

// Include asks for more than the choices in an answer. The outcome always
// holds candidates, steps and tree; what is shown of them is up to the caller.
// Partial makes the search report what its candidates write while they do.
// Critiques adds to candidates what a verifier has written of them.
type Include struct{ Candidates, Steps, Tree, Partial, Critiques bool }

// Limits bound what a plan may ask for.
type Limits struct {
	N        int           `yaml:"n"`         // candidates
	MaxSteps int           `yaml:"max_steps"` // solution steps
	Tokens   int           `yaml:"tokens"`    // budget of generated tokens
	Time     time.Duration `yaml:"time"`      // budget of time
}

// DefaultLimits returns limits that are right for a server of a few cores.
func DefaultLimits() Limits {
	return Limits{N: 64, MaxSteps: 256, Tokens: 65536, Time: 5 * time.Minute}
}

// Validate reports every fault; each begins with the limit's name and a colon.
func (l *Limits) Validate() error {
	var faults []error
	for _, f := range []struct {
		name string
		v    int
		most int
	}{{"n", l.N, 1 << 12}, {"max_steps", l.MaxSteps, 1 << 16}, {"tokens", l.Tokens, 1 << 30}} {
		if f.v < 1 || f.v > f.most {
			faults = append(faults, fmt.Errorf("%s: %d is outside 1..%d", f.name, f.v, f.most))
		}
	}
	if l.Time <= 0 || l.Time > mostTime {
		faults = append(faults, fmt.Errorf("time: %v is outside 1ns..%v", l.Time, mostTime))
	}
	return errors.Join(faults...)
}

// mostTime is the longest time that a search can be given.
const mostTime = 24 * time.Hour

// Error says what is wrong with a plan.
type Error struct {
	Code    string // one of the Code constants
	Field   string // as in JSON, such as "step.max_tokens"
	Message string
}

func (e *Error) Error() string {
	if e.Field == "" {
		return "tts: test_time_scaling: " + e.Message
	}
	return fmt.Sprintf("tts: test_time_scaling.%s: %s", e.Field, e.Message)
}

// The codes of plan errors.
const (
	CodeUnknownMethod    = "unknown_method"
	CodeNotDivisible     = "n_not_divisible"
	CodeVerifierNotFound = "verifier_not_found"
	CodeTemperatureZero  = "temperature_zero"
	CodeSearchLimit      = "search_limit_exceeded"
	CodeValue            = "invalid_value"
	CodeProfileRequired  = "profile_required"
	CodeQuality          = "quality_unreachable"
	CodeDeadline         = "deadline_unreachable"
)

// CodeOf returns the code of a plan's error; empty for others.
func CodeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Errorf makes an error about a field of a plan. Errors among args are worded for clients.
func Errorf(code, field, format string, args ...any) *Error {
	return &Error{Code: code, Field: field, Message: errtext.Sprintf(format, args...)}
}

// The defaults.
const (
	defaultN          = 8
	DefaultWidth      = 4 // children of a surviving beam
	defaultMaxSteps   = 40
	defaultStepTokens = 256
)

// DefaultTemperature is a search's where nobody has asked for one: candidates
// are to differ, but not for the worse.
const DefaultTemperature = 0.8

// Lines tells whether solution steps end with lines.
func (r *StepRule) Lines() bool { return len(r.Stop) == 1 && r.Stop[0] == "\n" }

// Stepwise reports whether the method works step by step.
func (p *Plan) Stepwise() bool { return p.Method.row().steps }

// hasWidth reports whether the method continues beams in several ways.
func (p *Plan) hasWidth() bool { return p.Method.row().width }

// WithDefaults fills what is not set; Select follows from the verifier.
func (p Plan) WithDefaults(l *Limits) Plan {
	if p.Method == None {
		p = Plan{Method: None}
	}
	set(&p.N, min(defaultN, l.N))
	if p.N > 0 {
		set(&p.Width, min(DefaultWidth, p.N))
	} else {
		set(&p.Width, DefaultWidth)
	}
	set(&p.MaxSteps, min(defaultMaxSteps, l.MaxSteps))
	set(&p.Step.MaxTokens, defaultStepTokens)
	set(&p.Budget.Tokens, l.Tokens)
	if p.Budget.Time == 0 {
		p.Budget.Time = l.Time
	}
	if len(p.Step.Stop) == 0 {
		p.Step.Stop = []string{"\n"}
	}
	if p.Aggregate == "" {
		p.Aggregate = AggregateLast
	}
	if p.Stream == "" {
		p.Stream = StreamCommitted
	}
	p.withMethodDefaults()
	return p
}

// Validate reports the first fault of a plan as an *Error.
func (p Plan) Validate(l Limits) error {
	if err := p.validateAims(&l); err != nil {
		return err
	}
	if p.Unchosen() && p.Method == "" {
		p.Method = SelfConsistency // any stands for what will be chosen
	}
	p = p.WithDefaults(&l)
	switch {
	case p.Method == None:
		return nil // whatever else it says
	case p.Method == "":
		return Errorf(CodeUnknownMethod, "method", "a method is required: %s", namesWith("or"))
	case !slices.Contains(Methods(), p.Method):
		return Errorf(CodeUnknownMethod, "method", "there is no method %.40q; there are %s, and short forms such as bon8, sc16, beam16x4 and q95", string(p.Method), namesWith("and"))
	}
	if err := p.validateSettings(); err != nil {
		return err
	}
	for _, stop := range p.Step.Stop {
		if stop == "" || len(stop) > 64 {
			return Errorf(CodeValue, "step.stop", "a delimiter has 1 to 64 bytes")
		}
	}
	if len(p.Step.Stop) > 8 {
		return Errorf(CodeValue, "step.stop", "at most 8 delimiters are allowed")
	}
	if t := p.Temperature; t != nil && !(*t >= 0 && *t <= 100) {
		return Errorf(CodeValue, "temperature", "%v is not in [0, 100]", *t)
	}
	if _, err := p.Answer.Compile(); err != nil {
		return Errorf(CodeValue, "answer", "%v", err)
	}
	if err := p.validateSizes(&l); err != nil {
		return err
	}
	if err := p.validateVerify(); err != nil {
		return err
	}
	if err := p.validateJudge(&l); err != nil {
		return err
	}
	return p.validateMethod()
}

// validateSizes checks the numbers of a plan that has its defaults.
func (p *Plan) validateSizes(l *Limits) error {
	for _, c := range []struct {
		field         string
		v, least, cap int
	}{
		{"width", p.Width, 1, l.N},
		{"max_steps", p.MaxSteps, 1, l.MaxSteps},
		{"step.max_tokens", p.Step.MaxTokens, 1, l.Tokens},
		{"budget.tokens", p.Budget.Tokens, 1, l.Tokens},
		{"budget.time_ms", int(p.Budget.Time.Milliseconds()), 1, int(l.Time.Milliseconds())},
	} {
		if c.v < c.least {
			return Errorf(CodeValue, c.field, "%d is less than %d", c.v, c.least)
		}
		if c.v > c.cap {
			return Errorf(CodeSearchLimit, c.field, "%d is more than this server's limit of %d", c.v, c.cap)
		}
	}
	if p.N == AutoN {
		return nil
	}
	switch {
	case p.N < 1:
		return Errorf(CodeValue, "n", "%d is less than 1", p.N)
	case p.N > l.N:
		return Errorf(CodeSearchLimit, "n", "%d is more than this server's limit of %d", p.N, l.N)
	case p.hasWidth() && p.N%p.Width != 0:
		return Errorf(CodeNotDivisible, "n", "%d is not divisible by the width %d", p.N, p.Width)
	}
	return nil
}
