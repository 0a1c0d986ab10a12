package cli

import (
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
)

func TestAnswersAreTheSameWithADraftModel(t *testing.T) {
	sweep.Full(t)
	for _, sampling := range [][]string{{"--temperature", "0"}, {"--temperature", "0.8", "--seed", "7"}} {
		ask := func(args ...string) string {
			return mustLutra(t, append(append([]string{"ask"}, sampling...), append(args, "Ben has 12 pens. He buys 3 bags with 7 pens each. How many pens does he have?")...)...)
		}
		if got, want := ask("--draft-model", "lutra-tiny-s", "--speculation", "4"), ask("--speculation", "off"); got != want || want == "" {
			t.Errorf("%v: %q with a draft model, %q without", sampling, got, want)
		}
	}
}
