package schema

import (
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// held makes a validator in a default budget.
func held(t *testing.T, text string) *Validator {
	t.Helper()
	v, err := NewValidator([]byte(text), budget.Default())
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestAValidatorTakesWhatAnotherOneTakes(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	d := &drawing{Rand: r}
	taken, refused := 0, 0
	for range sweep.Of(t, 600, 6000) {
		text := d.whole()
		if d.keywords["format"] { // an annotation here
			continue
		}
		theirs, ours := validator(t, text), held(t, text)
		for range 40 {
			out := d.value(2).write(style{})
			err := ours.Validate([]byte(out), budget.Default())
			if want := theirs(out); (err == nil) != (want == nil) {
				t.Fatalf("%s\n%s: %v, want %v", text, out, err, want)
			}
			if err == nil {
				taken++
			} else {
				refused++
			}
		}
	}
	t.Logf("%d taken, %d refused", taken, refused)
	if taken < 1000 || refused < 1000 {
		t.Errorf("%d texts are taken and %d refused: the drawing tells nothing", taken, refused)
	}
}
