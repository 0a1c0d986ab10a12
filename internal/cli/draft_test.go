package cli

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/lutra-lm/lutra/internal/usage"
)

func TestAnswersAreTheSameWithADraftModel(t *testing.T) {
	for _, sampling := range [][]string{{"--temperature", "0"}, {"--temperature", "0.8", "--seed", "7"}} {
		ask := func(args ...string) string {
			return mustLutra(t, append(append([]string{"ask"}, sampling...), append(args, "Ben has 12 pens. He buys 3 bags with 7 pens each. How many pens does he have?")...)...)
		}
		if got, want := ask("--draft-model", "lutra-tiny-s", "--speculation", "4"), ask("--speculation", "off"); got != want || want == "" {
			t.Errorf("%v: %q with a draft model, %q without", sampling, got, want)
		}
	}
}

func TestBenchEngineDictatesWhatADraftModelKnows(t *testing.T) {
	out := mustLutra(t, "bench", "engine", "--json", "--reps", "1", "--draft-model", "lutra-tiny-s", "--speculation", "3", "--tests", "dr16,sp16")
	var results []engineResult
	if err := json.Unmarshal([]byte(out), &results); err != nil || len(results) != 2 {
		t.Fatalf("bench engine = %s", out)
	}
	for _, args := range [][]string{{"--tests", "dr16"}, {"--tests", "sp16", "--speculation", "much"}} {
		var mistake usage.Error
		if _, err := lutra(t, append([]string{"bench", "engine"}, args...)...); !errors.As(err, &mistake) {
			t.Errorf("bench engine %v: %v, want an error of usage", args, err)
		}
	}
}
