package search

import (
	"testing"

	"github.com/lutra-lm/lutra/tts/scaling"
)

func TestEveryMethodThatPlansNameIsCarriedOut(t *testing.T) {
	for _, m := range scaling.Methods() {
		if (methods[m].start != nil) != (m != scaling.None) {
			t.Errorf("there is a method for plans of %s: %t", m, methods[m].start != nil)
		}
	}
	if n := len(scaling.Methods()) - 1; len(methods) != n {
		t.Errorf("%d methods are carried out, and plans can name %d", len(methods), n)
	}
}
