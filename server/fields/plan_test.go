package fields

import (
	"reflect"
	"testing"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// parsed returns the fields of a body.
func parsed(t *testing.T, body string) Reader {
	t.Helper()
	f, err := jsonread.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return Reader{Fields: f}
}

func TestAFieldOfTheObjectIsTheSameAsAWordOfTheString(t *testing.T) {
	object := `{"method":"beam_search","n":16,"width":4,"max_steps":9,"step":{"stop":["\n",";"],"members":true,"max_tokens":12},"verifier":"v","aggregate":"min",
		"select":"max","answer":{"extract":"number","normalize":"text"},"temperature":0.5,"early_stop":{"consensus":0.95},"adaptive":{"first":2,"threshold":0.9,"price":0.5,"step_cost":[1,2.5]},
		"deepconf":{"warmup":2,"eta":50,"window":9,"top_k":5,"weight":"tail","tau":0.75},"particles":{"resampling":"systematic","temperature":2,"iterations":4,"references":2},
		"budget":{"tokens":500,"time_ms":1500},"stream_mode":"final","include":["tree","steps","candidates"]}`
	text := `beam_search;n=16;width=4;max_steps=9;step.stop="\n";step.stop=";";step.members=true;step.max_tokens=12;verifier=v;aggregate=min;select=max;` +
		`answer.extract=number;answer.normalize=text;temperature=0.5;early_stop.consensus=0.95;adaptive.first=2;adaptive.threshold=0.9;adaptive.price=0.5;adaptive.step_cost=1,2.5;` +
		`deepconf.warmup=2;deepconf.eta=50;deepconf.window=9;deepconf.top_k=5;deepconf.weight=tail;deepconf.tau=0.75;particles.resampling=systematic;particles.temperature=2;particles.iterations=4;particles.references=2;budget.tokens=500;budget.time_ms=1500;stream_mode=final;include=candidates,steps,tree`
	f := parsed(t, `{"test_time_scaling":`+object+`}`)
	got := readPlan(f.Fields, nil)
	if f.Err != nil || len(f.Unread()) != 0 {
		t.Fatal(f.Err, f.Unread())
	}
	want, err := scaling.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(*got.Plan, want) {
		t.Errorf("the object gives\n%+v\nthe string\n%+v", *got.Plan, want)
	}
}

func TestAnObjectWithoutAMethodChangesWhatItNamesAlone(t *testing.T) {
	base, err := scaling.Parse(`beam_search;n=16;width=4;step.stop=";";step.max_tokens=12;early_stop=false;budget.time_ms=1500;budget.tokens=500;select=max;temperature=0.5`)
	if err != nil {
		t.Fatal(err)
	}
	f := parsed(t, `{"test_time_scaling":{"n":8,"step":{"max_tokens":5},"budget":{"tokens":90},"include":["partial"]}}`)
	got := readPlan(f.Fields, func() scaling.Plan { return base })
	want := base
	want.N, want.Step.MaxTokens, want.Budget.Tokens, want.Include.Partial = 8, 5, 90, true
	if f.Err != nil || !reflect.DeepEqual(*got.Plan, want) {
		t.Errorf("%v: %+v, want %+v", f.Err, *got.Plan, want)
	}
}
