package judge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// Options say how a verifier judges. They are the operator's: no request brings any.
type Options struct {
	Name   string `yaml:"name"`   // of the verifier, as plans name it
	Format string `yaml:"format"` // think-prm, gen-prm or rubric; empty: rubric
	Criteria
}

// Criteria are the settings of a verifier that writes critiques, whichever model it is.
type Criteria struct {
	Rubric    string `yaml:"rubric"`     // what to judge by
	Template  string `yaml:"template"`   // the prompt, with {question}, {answer}, {rubric} and {scale}; empty: the form's own
	Scale     int    `yaml:"scale"`      // highest score of a rubric, the lowest is 0; 0: 5
	Steps     bool   `yaml:"steps"`      // a rubric judges solution steps too, not whole answers alone
	Critiques int    `yaml:"critiques"`  // where a request says nothing; 0: 1
	MaxTokens int    `yaml:"max_tokens"` // of a critique, likewise; 0: 512
}

const (
	mostName       = 64
	mostText       = 16 << 10 // bytes of a rubric, or a template
	mostScale      = 100
	defaultScale   = 5
	defaultTokens  = 512
	defaultWarmth  = 0.6 // of several critiques; a single one is greedy
	mostTogether   = 64  // critiques of a request under way at once
	mostSteps      = 64  // latest solution steps that are judged of what a candidate gains at once
	questionPlace  = "{question}"
	answerPlace    = "{answer}"
	rubricPlace    = "{rubric}"
	scalePlace     = "{scale}"
	judgingNumbers = 0x6372697469717565 // keeps its random numbers apart from the candidates'
)

// Validate reports the first fault; it begins with the option's name and a colon.
func (o *Options) Validate() error {
	form := cmp.Or(o.Format, FormatRubric)
	switch {
	case o.Name == "" || len(o.Name) > mostName:
		return fmt.Errorf("name: it has 1 to %d bytes", mostName)
	case !slices.Contains(Formats(), form):
		return fmt.Errorf("format: %.40q is none of %s", o.Format, strings.Join(Formats(), ", "))
	case form != FormatRubric && (o.Rubric != "" || o.Template != "" || o.Scale != 0 || o.Steps):
		return fmt.Errorf("format: rubric, template, scale and steps are for a rubric, not for %s", form)
	case form == FormatRubric && strings.TrimSpace(o.Rubric) == "" && o.Template == "":
		return errors.New("rubric: there is nothing to judge by")
	case len(o.Rubric) > mostText:
		return fmt.Errorf("rubric: it has %d bytes, at most %d are allowed", len(o.Rubric), mostText)
	case len(o.Template) > mostText:
		return fmt.Errorf("template: it has %d bytes, at most %d are allowed", len(o.Template), mostText)
	case o.Template != "" && strings.Count(o.Template, answerPlace) != 1:
		return fmt.Errorf("template: %s stands in it once", answerPlace)
	case strings.Count(o.Template, questionPlace) > 1:
		return fmt.Errorf("template: %s stands in it at most once", questionPlace)
	case o.Scale < 0 || o.Scale > mostScale:
		return fmt.Errorf("scale: %d is outside 1..%d", o.Scale, mostScale)
	case o.Critiques < 0 || o.Critiques > scaling.MostCritiques:
		return fmt.Errorf("critiques: %d is outside 1..%d", o.Critiques, scaling.MostCritiques)
	case o.MaxTokens < 0 || o.MaxTokens > scaling.MostCritiqueTokens:
		return fmt.Errorf("max_tokens: %d is outside 1..%d", o.MaxTokens, scaling.MostCritiqueTokens)
	}
	return nil
}

// Formats returns the names of the forms in which a verifier judges.
func Formats() []string { return []string{FormatThink, FormatGen, FormatRubric} }

// Scorer has critiques written. It may be used by many searches at once.
type Scorer struct {
	opt   Options
	model *tts.Model // that writes; nil: the generator
}

// New makes a scorer of valid options. m writes; nil: whichever model has written the candidates.
func New(o Options, m *tts.Model) *Scorer {
	o.Format = cmp.Or(o.Format, FormatRubric)
	o.Scale = cmp.Or(o.Scale, defaultScale)
	o.Critiques = cmp.Or(o.Critiques, 1)
	o.MaxTokens = cmp.Or(o.MaxTokens, defaultTokens)
	return &Scorer{o, m}
}

// Self returns the scorer that asks the generator to check its own candidates (Weng et al. 2022,
// "Large Language Models are Better Reasoners with Self-Verification").
func Self() *Scorer { return New(Options{Name: scaling.VerifierSelf, Format: FormatThink}, nil) }

// Model returns the model that writes; nil: the generator.
func (s *Scorer) Model() *tts.Model { return s.model }

// For implements tts.Generative.
func (s *Scorer) For(p *scaling.Plan) (tts.Scorer, scaling.Judge, error) {
	j := p.Judge
	j.Critiques = cmp.Or(j.Critiques, s.opt.Critiques)
	j.MaxTokens = cmp.Or(j.MaxTokens, s.opt.MaxTokens)
	j.TotalTokens = cmp.Or(j.TotalTokens, p.Budget.Tokens)
	if j.Temperature == nil {
		j.Temperature = new(float32)
		if j.Critiques > 1 {
			*j.Temperature = defaultWarmth
		}
	}
	if j.Combine == "" {
		j.Combine = scaling.CombineMean
	}
	switch {
	case *j.Temperature == 0 && j.Critiques > 1:
		return nil, j, scaling.Errorf(scaling.CodeTemperatureZero, "judge.temperature", "at temperature 0 all %d critiques would be the same", j.Critiques)
	case p.Stepwise() && s.opt.Format == FormatRubric && !s.opt.Steps:
		return nil, j, scaling.Errorf(scaling.CodeValue, "verifier", "%.80q judges whole answers, and %s judges solution steps", s.opt.Name, p.Method)
	}
	return &planned{Scorer: s, how: j, stops: p.Step.Stop}, j, nil
}

// Open implements tts.Scorer, for searches by the default plan.
func (s *Scorer) Open(ctx context.Context, m *tts.Model, req *tts.Request, prompt []int32) (tts.Judge, error) {
	limits := scaling.DefaultLimits()
	p := scaling.Plan{Method: scaling.BestOfN}.WithDefaults(&limits)
	one, _, err := s.For(&p)
	if err != nil {
		return nil, err
	}
	return one.Open(ctx, m, req, prompt)
}
