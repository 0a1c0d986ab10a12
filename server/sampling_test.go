package server

import (
	"strings"
	"testing"
)

func TestSearchesSayHowTheirCandidatesAreSampled(t *testing.T) {
	f := real(t, func(*Options) {})
	for fields, want := range map[string]string{
		``:                              `"sampling":{"temperature":0.8}`,
		`"top_k":20,"temperature":0.6,`: `"sampling":{"temperature":0.6,"top_k":20}`,
	} {
		_, _, answer := f.post("/v1/chat/completions", `{"model":"lutra-tiny-s","seed":1,"max_tokens":4,`+fields+`"test_time_scaling":"sc2","messages":[{"role":"user","content":"What is 2 * 3?"}]}`)
		if !strings.Contains(string(answer), want) {
			t.Errorf("with %q: %s lacks %s", fields, answer, want)
		}
	}
}
