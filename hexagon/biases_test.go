package hexagon

import (
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

func TestBiasesOfExpertsAreAddedToWhatTheDeviceMakes(t *testing.T) {
	p := newPool(t)
	load := func() (*gguf.File, error) { return gguf.Open("../models/testdata/transformers/gpt-oss.gguf") }
	tokens := make([]int32, 60)
	for i := range tokens {
		tokens[i] = int32(7*i%50 + 1)
	}
	want := newFeeder(t, onDevice(t, "", Options{}, p, load).Model).feed(len(tokens), tokens...)
	bundle, b := mixtureOn(t, p, Options{Round: RoundQ4_0, Placement: PlacementNaive}, load)
	got := newFeeder(t, bundle.Model).feed(len(tokens), tokens...)
	if e := nmse(got, want); !(e < 0.05) || b.Counts().Computed == 0 { // without them 0.2; four bits cost the rest
		t.Errorf("NMSE %.3g against the CPU, %+v", e, b.Counts())
	}
}
