package scaling

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
		"cert8":                        {Method: SelfConsistency, N: 8, Verifier: VerifierSelfCertainty},
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
		"asc16":                                {Method: SelfConsistency, N: 16, Adaptive: Adaptive{On: true}},
		"abon8;adaptive.step_cost=1, 1.5, 3":   {Method: BestOfN, N: 8, Adaptive: Adaptive{On: true, StepCost: []float64{1, 1.5, 3}}},
		"sc8;adaptive.price=0.1":               {Method: SelfConsistency, N: 8, Adaptive: Adaptive{On: true, Price: 0.1}},
		"asc8;adaptive=false":                  {Method: SelfConsistency, N: 8},
		"deepconf16;deepconf.eta=10":           {Method: DeepConfidence, N: 16, DeepConf: DeepConf{Eta: 10}},
		"deepconf;n=auto;deepconf.weight=tail": {Method: DeepConfidence, N: AutoN, DeepConf: DeepConf{Weight: MeasureTail}},
		"pf16;particles.resampling=systematic;particles.temperature=2": {Method: ParticleFiltering, N: 16, Particles: Particles{Resampling: Systematic, Temperature: 2}},
		"pf12;particles.iterations=3;particles.references=2":           {Method: ParticleFiltering, N: 12, Particles: Particles{Iterations: 3, References: 2}},
		"sc8;include=candidates, tree;stream_mode=final":               {Method: SelfConsistency, N: 8, Include: Include{Candidates: true, Tree: true}, Stream: StreamFinal},
	} {
		got, err := Parse(written)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", written, got, err, want)
		}
		if err := got.Validate(DefaultLimits()); err != nil {
			t.Errorf("%q: Validate() = %v", written, err)
		}
	}
}

func TestFaultyPlansAreRefusedWithTheirCode(t *testing.T) {
	for written, want := range map[string]Error{
		"":                           {Code: CodeUnknownMethod, Field: "method"},
		"magic;n=4":                  {Code: CodeUnknownMethod, Field: "method"},
		"beam_search;n=10;width=4":   {Code: CodeNotDivisible, Field: "n"},
		"beam6x4":                    {Code: CodeNotDivisible, Field: "n"},
		"pf8;particles.iterations=3": {Code: CodeNotDivisible, Field: "n"},
		"pf8;particles.iterations=8": {Code: CodeValue, Field: "particles.references"},
		"pf8;particles.references=1": {Code: CodeValue, Field: "particles.references"},
		"pf8;particles.iterations=0": {Code: CodeValue, Field: "particles.iterations"},
		"particle_filtering;n=auto;particles.iterations=2": {Code: CodeValue, Field: "n"},
		"bon65":                         {Code: CodeSearchLimit, Field: "n"},
		"sc0":                           {Code: CodeUnknownMethod, Field: "method"},
		"beam8x0":                       {Code: CodeUnknownMethod, Field: "method"},
		"sc8;max_steps=1000":            {Code: CodeSearchLimit, Field: "max_steps"},
		"sc8;budget.tokens=10000000":    {Code: CodeSearchLimit, Field: "budget.tokens"},
		"sc8;budget.time_ms=9999999":    {Code: CodeSearchLimit, Field: "budget.time_ms"},
		"sc8;n=0":                       {Code: CodeValue, Field: "n"},
		"sc8;n=99999999999999999999":    {Code: CodeValue, Field: "n"},
		"sc8;width=-1":                  {Code: CodeValue, Field: "width"},
		"sc8;n=4;n=5":                   {Code: CodeValue, Field: "n"},
		"sc8;n":                         {Code: CodeValue},
		"sc8;colour=red":                {Code: CodeValue},
		"sc8;n;width=4":                 {Code: CodeValue},
		"sc8;temperature=NaN":           {Code: CodeValue, Field: "temperature"},
		"sc8;temperature=-1":            {Code: CodeValue, Field: "temperature"},
		"sc8;early_stop=perhaps":        {Code: CodeValue, Field: "early_stop"},
		"sc8;early_stop.consensus=1.01": {Code: CodeValue, Field: "early_stop.consensus"},
		"sc8;early_stop.consensus=0.49": {Code: CodeValue, Field: "early_stop.consensus"},
		"sc8;early_stop.consensus=0":    {Code: CodeValue, Field: "early_stop.consensus"},
		"sc8;early_stop.consensus=NaN":  {Code: CodeValue, Field: "early_stop.consensus"},
		"sc8;aggregate=median":          {Code: CodeValue, Field: "aggregate"},
		"sc8;select=best":               {Code: CodeValue, Field: "select"},
		"sc8;stream_mode=loud":          {Code: CodeValue, Field: "stream_mode"},
		"sc8;include=all":               {Code: CodeValue, Field: "include"},
		"sc8;answer.extract=regex:(":    {Code: CodeValue, Field: "answer"},
		`sc8;verifier="x`:               {Code: CodeValue, Field: "verifier"},
		`sc8;verifier="x"y`:             {Code: CodeValue, Field: "verifier"},
		"beam8x4;adaptive=true":         {Code: CodeValue, Field: "adaptive"},
		"sc8;adaptive.first=0":          {Code: CodeValue, Field: "adaptive.first"},
		"sc8;adaptive.threshold=0.2":    {Code: CodeValue, Field: "adaptive.threshold"},
		"sc8;adaptive.price=NaN":        {Code: CodeValue, Field: "adaptive.price"},
		"sc8;adaptive.step_cost=1,2,x":  {Code: CodeValue, Field: "adaptive.step_cost"},
		"sc8;adaptive.step_cost=2,1":    {Code: CodeValue, Field: "adaptive.step_cost"},
		"sc8;adaptive.step_cost=NaN":    {Code: CodeValue, Field: "adaptive.step_cost"},
		"sc8;adaptive.step_cost=1" + strings.Repeat(",1", 16): {Code: CodeValue, Field: "adaptive.step_cost"},
		"deepconf8;deepconf.warmup=9":                         {Code: CodeValue, Field: "deepconf.warmup"},
		"deepconf8;deepconf.eta=101":                          {Code: CodeValue, Field: "deepconf.eta"},
		"deepconf8;deepconf.tau=0.1":                          {Code: CodeValue, Field: "deepconf.tau"},
		"deepconf8;deepconf.top_k=129":                        {Code: CodeValue, Field: "deepconf.top_k"},
		"deepconf8;deepconf.window=2000000":                   {Code: CodeValue, Field: "deepconf.window"},
		"deepconf8;deepconf.weight=best":                      {Code: CodeValue, Field: "deepconf.weight"},
		"deepconf8;verifier=v":                                {Code: CodeValue, Field: "verifier"},
		"pf8;particles.resampling=x":                          {Code: CodeValue, Field: "particles.resampling"},
		"pf8;particles.temperature=0":                         {Code: CodeValue, Field: "particles.temperature"},
		`beam8x4;step.stop=""`:                                {Code: CodeValue, Field: "step.stop"},
		"sc8;verifier=" + strings.Repeat("x", maxPlan):        {Code: CodeValue},
	} {
		p, err := Parse(written)
		if err == nil {
			err = p.Validate(DefaultLimits())
		}
		var got *Error
		if !errors.As(err, &got) || got.Code != want.Code || got.Field != want.Field || got.Message == "" {
			t.Errorf("%.60q gives %v, want %s of %q", written, err, want.Code, want.Field)
		}
	}
}

func FuzzParsePlan(f *testing.F) {
	for _, s := range []string{"dvts", "none;n=9999;early_stop.consensus=0.5", "beam16x4", "sc8;early_stop.consensus=0.9", `auto;step.stop="\n;";n=auto`, "bon8;temperature=1e39", `x;"=1`, "dvts999x999;include=,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := Parse(s)
		var fault *Error
		if err != nil {
			if !errors.As(err, &fault) {
				t.Fatalf("Parse(%q) = %v, not an Error", s, err)
			}
			return
		}
		l := DefaultLimits()
		if err := p.Validate(l); err != nil {
			if !errors.As(err, &fault) {
				t.Fatalf("Validate of %q = %v, not an Error", s, err)
			}
			return
		}
		d := p.WithDefaults(&l)
		if p.Method == None {
			return
		}
		if d.N > l.N || d.N < AutoN || d.N == 0 || d.Width < 1 || d.Budget.Tokens > l.Tokens || d.Budget.Time > l.Time || d.MaxSteps > l.MaxSteps {
			t.Fatalf("%q passed as %+v", s, d)
		}
		if again, err := Parse(d.String()); err != nil || again.Method != d.Method || again.N != d.N {
			t.Fatalf("Parse(%q) of %q = %+v, %v", d.String(), s, again, err)
		}
	})
}

func TestEverySettingOfAPlanHasARow(t *testing.T) {
	p, rows := reflect.ValueOf(new(Plan)).Elem(), map[uintptr]string{}
	plan := p.Addr().Interface().(*Plan)
	for _, s := range Settings {
		at := reflect.ValueOf(s.at(plan)).Pointer()
		if rows[at] != "" {
			t.Errorf("%s and %s are the same field", rows[at], s.Key)
		}
		rows[at] = s.Key
		if s.Doc == "" && s.Default == "" {
			t.Errorf("%s has no words for docs/api.md", s.Key)
		}
	}
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		for i := range v.NumField() {
			field, name := v.Field(i), path+v.Type().Field(i).Name
			at := field.Addr().Pointer()
			if field.Kind() == reflect.Struct && name != "Include" {
				walk(name+".", field)
			} else if rows[at] == "" {
				t.Errorf("%s has no row in Settings", name)
			}
			delete(rows, at)
		}
	}
	walk("", p)
	for _, key := range rows {
		t.Errorf("%s is no field of Plan", key)
	}
}
