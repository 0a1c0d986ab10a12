package tts

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/tts/answer"
)

func TestWrittenPlansAreRead(t *testing.T) {
	warm := float32(0.7)
	for written, want := range map[string]Plan{
		"beam_search;n=16;width=4":     {Method: BeamSearch, N: 16, Width: 4},
		" best_of_n ; n = 8 ;":         {Method: BestOfN, N: 8},
		"bon8":                         {Method: BestOfN, N: 8},
		"sc16":                         {Method: SelfConsistency, N: 16},
		"beam16x4;aggregate=min":       {Method: BeamSearch, N: 16, Width: 4, Aggregate: AggregateMin},
		"dvts8x2;select=max":           {Method: DVTS, N: 8, Width: 2, Select: SelectMax},
		"auto":                         {Method: Auto, N: AutoN},
		"auto;n=16":                    {Method: Auto, N: 16},
		"best_of_n;n=auto":             {Method: BestOfN, N: AutoN},
		"dvts;max_steps=9;verifier=v/": {Method: DVTS, MaxSteps: 9, Verifier: "v/"},
		`beam_search;step.stop="\n\n";step.stop=";";step.max_tokens=64`: {Method: BeamSearch, Step: StepRule{Stop: []string{"\n\n", ";"}, MaxTokens: 64}},
		`sc8;answer.extract="regex:=(\\d+);";answer.normalize=none`:     {Method: SelfConsistency, N: 8, Answer: answer.Rule{Extract: `regex:=(\d+);`, Normalize: "none"}},
		"sc8;temperature=0.7;early_stop=false":                          {Method: SelfConsistency, N: 8, Temperature: &warm, EarlyStop: EarlyStop{Off: true}},
		"none":                                                          {Method: None},
		"none;width=99999":                                              {Method: None, Width: 99999},
		"sc8;early_stop.consensus=0.5":                                  {Method: SelfConsistency, N: 8, EarlyStop: EarlyStop{Consensus: 0.5}},
		"sc8;early_stop.consensus=1":                                    {Method: SelfConsistency, N: 8, EarlyStop: EarlyStop{Consensus: 1}},
		"sc8;early_stop.consensus=0.95":                                 {Method: SelfConsistency, N: 8, EarlyStop: EarlyStop{Consensus: 0.95}},
		"sc8;budget.tokens=100;budget.time_ms=1500":                     {Method: SelfConsistency, N: 8, Budget: Budget{100, 1500 * time.Millisecond}},
		"sc8;include=candidates, tree;stream_mode=final":                {Method: SelfConsistency, N: 8, Include: Include{Candidates: true, Tree: true}, Stream: StreamFinal},
	} {
		got, err := ParsePlan(written)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("ParsePlan(%q) = %+v, %v, want %+v", written, got, err, want)
		}
		if err := got.Validate(DefaultLimits()); err != nil {
			t.Errorf("%q: Validate() = %v", written, err)
		}
	}
}

func TestFaultyPlansAreRefusedWithTheirCode(t *testing.T) {
	for written, want := range map[string]PlanError{
		"":                              {Code: CodeUnknownMethod, Field: "method"},
		"magic;n=4":                     {Code: CodeUnknownMethod, Field: "method"},
		"beam_search;n=10;width=4":      {Code: CodeNotDivisible, Field: "n"},
		"beam6x4":                       {Code: CodeNotDivisible, Field: "n"},
		"bon65":                         {Code: CodeSearchLimit, Field: "n"},
		"sc0":                           {Code: CodeUnknownMethod, Field: "method"},
		"beam8x0":                       {Code: CodeUnknownMethod, Field: "method"},
		"sc8;max_steps=1000":            {Code: CodeSearchLimit, Field: "max_steps"},
		"sc8;budget.tokens=10000000":    {Code: CodeSearchLimit, Field: "budget.tokens"},
		"sc8;budget.time_ms=9999999":    {Code: CodeSearchLimit, Field: "budget.time_ms"},
		"sc8;n=0":                       {Code: CodePlanValue, Field: "n"},
		"sc8;n=99999999999999999999":    {Code: CodePlanValue, Field: "n"},
		"sc8;width=-1":                  {Code: CodePlanValue, Field: "width"},
		"sc8;n=4;n=5":                   {Code: CodePlanValue, Field: "n"},
		"sc8;n":                         {Code: CodePlanValue},
		"sc8;colour=red":                {Code: CodePlanValue},
		"sc8;n;width=4":                 {Code: CodePlanValue},
		"sc8;temperature=NaN":           {Code: CodePlanValue, Field: "temperature"},
		"sc8;temperature=-1":            {Code: CodePlanValue, Field: "temperature"},
		"sc8;early_stop=perhaps":        {Code: CodePlanValue, Field: "early_stop"},
		"sc8;early_stop.consensus=1.01": {Code: CodePlanValue, Field: "early_stop.consensus"},
		"sc8;early_stop.consensus=0.49": {Code: CodePlanValue, Field: "early_stop.consensus"},
		"sc8;early_stop.consensus=0":    {Code: CodePlanValue, Field: "early_stop.consensus"},
		"sc8;early_stop.consensus=NaN":  {Code: CodePlanValue, Field: "early_stop.consensus"},
		"sc8;aggregate=median":          {Code: CodePlanValue, Field: "aggregate"},
		"sc8;select=best":               {Code: CodePlanValue, Field: "select"},
		"sc8;stream_mode=loud":          {Code: CodePlanValue, Field: "stream_mode"},
		"sc8;include=all":               {Code: CodePlanValue, Field: "include"},
		"sc8;answer.extract=regex:(":    {Code: CodePlanValue, Field: "answer"},
		`sc8;verifier="x`:               {Code: CodePlanValue, Field: "verifier"},
		`sc8;verifier="x"y`:             {Code: CodePlanValue, Field: "verifier"},
		`beam8x4;step.stop=""`:          {Code: CodePlanValue, Field: "step.stop"},
		"sc8;verifier=" + strings.Repeat("x", maxPlan): {Code: CodePlanValue},
	} {
		p, err := ParsePlan(written)
		if err == nil {
			err = p.Validate(DefaultLimits())
		}
		var got *PlanError
		if !errors.As(err, &got) || got.Code != want.Code || got.Field != want.Field || got.Message == "" {
			t.Errorf("%.60q gives %v, want %s of %q", written, err, want.Code, want.Field)
		}
	}
}

func TestPlansAreHeldAgainstTheRequestAndTheVerifiers(t *testing.T) {
	m := run(t, thinks(t))
	zero := float32(0)
	for _, c := range []struct {
		plan Plan
		req  func(*Request)
		code string
	}{
		{plan: Plan{Method: BeamSearch}, code: CodeVerifierRequired},
		{plan: Plan{Method: DVTS}, code: CodeVerifierRequired},
		{plan: Plan{Method: BestOfN, Verifier: "nobody"}, code: CodeVerifierNotFound},
		{plan: Plan{Method: BestOfN, Temperature: &zero}, code: CodeTemperatureZero},
		{plan: Plan{Method: SelfConsistency}, req: func(r *Request) { r.Sampling.Temperature = 0 }, code: CodeTemperatureZero},
		{plan: Plan{Method: SelfConsistency, N: 2}, req: func(r *Request) { r.N = 3 }, code: CodePlanValue},
		{plan: Plan{Method: SelfConsistency}, req: func(r *Request) { r.Echo = true }, code: CodePlanValue},
		{plan: Plan{Method: SelfConsistency, N: 1}, req: func(r *Request) { r.Sampling.Temperature = 0 }},
		{plan: Plan{Method: BestOfN}},
		{plan: Plan{Method: BeamSearch, Verifier: VerifierLogprob}},
		{plan: Plan{Method: DVTS, Verifier: VerifierSelfCertainty}},
		{plan: Plan{Method: Auto, N: AutoN}},
	} {
		req := request(1, 1)
		if c.req != nil {
			c.req(req)
		}
		s := Search{Model: m, Plan: c.plan}
		var got *PlanError
		if _, err := s.Check(req); (err == nil) != (c.code == "") || err != nil && (!errors.As(err, &got) || got.Code != c.code) {
			t.Errorf("Check(%+v) = %v, want %q", c.plan, err, c.code)
		}
		if c.code == "" {
			carryOut(t, s, req)
			continue
		}
		for _, err := range s.Run(t.Context(), req) {
			if !errors.As(err, &got) || got.Code != c.code {
				t.Errorf("Run(%+v) gives %v first, want %q", c.plan, err, c.code)
			}
		}
	}
}

func FuzzParsePlan(f *testing.F) {
	for _, s := range []string{"dvts", "none;n=9999;early_stop.consensus=0.5", "beam16x4", "sc8;early_stop.consensus=0.9", `auto;step.stop="\n;";n=auto`, "bon8;temperature=1e39", `x;"=1`, "dvts999x999;include=,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePlan(s)
		var fault *PlanError
		if err != nil {
			if !errors.As(err, &fault) {
				t.Fatalf("ParsePlan(%q) = %v, not a PlanError", s, err)
			}
			return
		}
		l := DefaultLimits()
		if err := p.Validate(l); err != nil {
			if !errors.As(err, &fault) {
				t.Fatalf("Validate of %q = %v, not a PlanError", s, err)
			}
			return
		}
		d := p.withDefaults(&l)
		if p.Method == None {
			return
		}
		if d.N > l.N || d.N < AutoN || d.N == 0 || d.Width < 1 || d.Budget.Tokens > l.Tokens || d.Budget.Time > l.Time || d.MaxSteps > l.MaxSteps {
			t.Fatalf("%q passed as %+v", s, d)
		}
		if again, err := ParsePlan(d.String()); err != nil || again.Method != d.Method || again.N != d.N {
			t.Fatalf("ParsePlan(%q) of %q = %+v, %v", d.String(), s, again, err)
		}
	})
}
