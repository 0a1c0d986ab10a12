package profile

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// two is a profile of two models whose steps take as long as they have rows, in milliseconds.
const two = `{"version":1,"temperature":0.8,"models":[
 {"name":"large","sketch":"aa","step_ms":[1,2,4,8,16],"points":[
  {"plan":"single","quality":0.9,"ci_low":0.88,"ci_high":0.92,"tokens":50,"ms":50},
  {"plan":"single;temperature=0","quality":0.91,"ci_low":0.88,"ci_high":0.92,"tokens":50,"ms":50},
  {"plan":"best_of_n;n=4","verifier":"prm","quality":0.95,"ci_low":0.93,"ci_high":0.97,"tokens":200,"ms":80},
  {"plan":"best_of_n;n=16","verifier":"prm","quality":0.97,"ci_low":0.95,"ci_high":0.98,"tokens":800,"ms":200},
  {"plan":"beam_search;n=16;width=4","verifier":"prm","quality":0.96,"ci_low":0.95,"ci_high":0.98,"tokens":800,"ms":150}]},
 {"name":"small","points":[
  {"plan":"self_consistency;adaptive=true;n=8","quality":0.92,"ci_low":0.9,"ci_high":0.94,"tokens":120,"ms":20}]}]}`

func read(t *testing.T, text string) *Profile {
	t.Helper()
	p, err := Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// chooser chooses for written aims, on a machine whose steps take factor times as long.
func chooser(t *testing.T, factor float64, works func(scaling.Plan) bool) func(aims string, left time.Duration) (*Choice, error) {
	p := read(t, two)
	pace := func(rows int) time.Duration { return time.Duration(factor * float64(rows) * float64(time.Millisecond)) }
	list := []Candidate{
		{Name: "large", Curve: p.Of("large", "aa"), Pace: pace, Works: works},
		{Name: "small", Curve: p.Of("small", "bb"), Pace: pace, Works: works},
	}
	return func(aims string, left time.Duration) (*Choice, error) {
		plan, err := scaling.Parse(aims)
		if err != nil {
			t.Fatal(err)
		}
		if err := plan.Validate(scaling.DefaultLimits()); err != nil {
			t.Fatal(err)
		}
		return Choose(list, plan, left, time.Time{})
	}
}

func all(scaling.Plan) bool { return true }

func TestTheSoonestThatReachesAQualityIsChosen(t *testing.T) {
	for _, c := range []struct {
		aims   string
		factor float64 // by which the machine is slower
		left   int     // milliseconds
		want   string
	}{
		{"quality=0.9", 1, 0, "small self_consistency;adaptive=true;n=8"},
		{"quality=0.93", 1, 0, "large best_of_n;n=4"},
		{"quality=0.96", 1, 0, "large beam_search;n=16;width=4"},
		{"quality=0.9;method=best_of_n", 1, 0, "large single;temperature=0"},
		{"quality=0.9;method=best_of_n;n=16", 1, 0, "large best_of_n;n=16"},
		{"quality=0.9;temperature=0.8;n=1", 1, 0, "large single"},
		{"quality=0.9;verifier=prm;n=16;width=4", 1, 0, "large beam_search;n=16;width=4"},
		{"deadline_ms=100", 1, 100, "large best_of_n;n=4"},
		{"deadline_ms=1000", 1, 1000, "large best_of_n;n=16"},
		{"deadline_ms=100", 1.5, 100, "small self_consistency;adaptive=true;n=8"},
		{"quality=0.92;deadline_ms=100", 2, 100, "small self_consistency;adaptive=true;n=8"},
	} {
		got, err := chooser(t, c.factor, all)(c.aims, time.Duration(c.left)*time.Millisecond)
		if err != nil {
			t.Errorf("%s: %v", c.aims, err)
			continue
		}
		if found := got.Name + " " + got.PlanText; found != c.want || got.Plan.Unchosen() {
			t.Errorf("%s on a machine %v times as slow: %s, want %s", c.aims, c.factor, found, c.want)
		}
	}
}

func TestAChoiceCanBeCarriedOutAndKeepsTheRequestsSettings(t *testing.T) {
	got, err := chooser(t, 1, func(p scaling.Plan) bool { return p.Method != scaling.BeamSearch })("quality=0.955;deadline_ms=900;include=tree;budget.tokens=4000", 900*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	p := got.Plan
	if p.Method != scaling.BestOfN || p.N != 16 || p.Verifier != "prm" || *p.Temperature != 0.8 || p.Deadline != 900*time.Millisecond || !p.Include.Tree || p.Budget.Tokens != 4000 || got.ExpectedMS != 200 {
		t.Errorf("the choice is %+v", got)
	}
}

func TestARefusalNamesWhatIsPossible(t *testing.T) {
	for _, c := range []struct {
		aims, code string
		left       int
		want       []string
	}{
		{"quality=0.99", scaling.CodeQuality, 0, []string{"0.99", `large with "best_of_n;n=16"`, "0.970", "200 ms"}},
		{"quality=0.96;deadline_ms=100", scaling.CodeQuality, 100, []string{`best in that time is large with "best_of_n;n=4"`, `soonest that reaches it is large with "beam_search`}},
		{"quality=0.99;deadline_ms=100", scaling.CodeQuality, 100, []string{`best within 100 ms is large with "best_of_n;n=4"`}},
		{"deadline_ms=10", scaling.CodeDeadline, 10, []string{`the soonest is small with "self_consistency;adaptive=true;n=8"`, "20 ms"}},
		{"quality=0.9;n=3", scaling.CodeQuality, 0, []string{"no method that fits"}},
	} {
		_, err := chooser(t, 1, all)(c.aims, time.Duration(c.left)*time.Millisecond)
		if scaling.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", c.aims, err, c.code)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", c.aims, err, part)
			}
		}
	}
	if _, err := Choose([]Candidate{{Name: "other"}}, scaling.Plan{Quality: 0.5}, 0, time.Time{}); scaling.CodeOf(err) != scaling.CodeProfileRequired || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("without a profile: %v", err)
	}
	if read(t, two).Of("large", "another file") != nil {
		t.Error("the curve of another file of that name was taken")
	}
}

func TestAForecastLearnsWhatAnswersTakeAndForgets(t *testing.T) {
	f, now := &Forecast{}, time.Unix(1000, 0)
	mean, sure := f.Correct(time.Second, now)
	if mean != time.Second || sure <= mean || sure > 2*time.Second {
		t.Errorf("knowing nothing, it expects %v and at most %v", mean, sure)
	}
	for range 50 {
		f.Observe(time.Second, 3*time.Second, now)
	}
	if mean, sure := f.Correct(time.Second, now); math.Abs(mean.Seconds()-3) > 0.1 || sure < mean {
		t.Errorf("of answers three times as slow, it expects %v and at most %v", mean, sure)
	}
	if mean, _ := f.Correct(time.Second, now.Add(time.Minute)); mean > 1010*time.Millisecond {
		t.Errorf("a minute later it still expects %v", mean)
	}
	f.Observe(0, time.Second, now)
	f.Observe(1, time.Hour, now)
	if mean, _ := f.Correct(time.Second, now); mean > 20*time.Second {
		t.Errorf("one answer makes it expect %v", mean)
	}
	var none *Forecast
	none.Observe(1, 1, now)
	if mean, sure := none.Correct(5, now); mean != 5 || sure != 5 {
		t.Errorf("no forecast corrects 5 to %v, %v", mean, sure)
	}
}

func TestAProfileFromOutsideIsCheckedKeyByKey(t *testing.T) {
	for change, key := range map[string]string{
		`"version":1>"version":2`:                       "version",
		`"temperature":0.8>"temperature":3`:             "temperature",
		`"name":"small">"name":"large"`:                 "models[1].name",
		`"name":"small">"name":""`:                      "models[1].name",
		`[1,2,4,8,16]>[1,0]`:                            "models[0].step_ms[1]",
		`"quality":0.9,>"quality":1.5,`:                 "models[0].points[0].quality",
		`"ci_low":0.88,"ci_high":0.92>"ci_low":0.95`:    "models[0].points[0].ci_low",
		`"tokens":50,"ms":50>"tokens":50,"ms":0`:        "models[0].points[0].ms",
		`"plan":"single">"plan":"magic;n=2"`:            "models[0].points[0].plan",
		`"plan":"single">"plan":"quality=0.9"`:          "models[0].points[0].plan",
		`"plan":"single">"plan":"best_of_n"`:            "models[0].points[0].plan",
		`"plan":"single">"plan":"best_of_n;n=4;n=5"`:    "models[0].points[0].plan",
		`"plan":"single">"plan":"sc4;deadline_ms=5"`:    "models[0].points[0].plan",
		`{"name":"small">null,{"name":"small"`:          "models[1]",
		`"plan":"single">"plan":"best_of_n;n=99999999"`: "models[0].points[0].plan",
	} {
		from, to, _ := strings.Cut(change, ">")
		text := strings.Replace(two, from, to, 1)
		if text == two {
			t.Fatalf("%s changes nothing", change)
		}
		if _, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), key+":") {
			t.Errorf("%s: %v, want a fault of %s", change, err, key)
		}
	}
	if _, err := Read(make([]byte, MaxFile+1)); err == nil {
		t.Error("a file of any size is read")
	}
}

func TestTheEmbeddedModelsHaveAProfile(t *testing.T) {
	p := read(t, string(embedded.Profile()))
	for _, e := range embedded.Models() {
		if p.Has(e.Name) != (e.Role == embedded.Generator) {
			t.Errorf("%s, a %s, is in the profile: %v", e.Name, e.Role, p.Has(e.Name))
		}
	}
	if text, err := json.Marshal(p); err != nil || p.Problems < 200 || len(text) > 32<<10 {
		t.Errorf("%d problems, %d bytes, %v", p.Problems, len(text), err)
	}
}
