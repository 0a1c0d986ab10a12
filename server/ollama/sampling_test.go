package ollama

import (
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
)

func TestARequestIsSampledAsItsAPIAndItsModelSay(t *testing.T) {
	for _, c := range []struct{ author, request, want string }{
		{"", `{}`, "temperature=0.8,top_k=40,top_p=0.9"},
		{"temperature=0.6,top_k=20", `{}`, "temperature=0.6,top_k=20,top_p=0.9"},
		{"temperature=0.6,top_k=20", `{"options":{"top_k":0,"repeat_penalty":1.2}}`, "temperature=0.6,top_p=0.9,repetition_penalty=1.2,repeat_last_n=64"},
		{"", `{"options":{"repeat_penalty":1.2,"repeat_last_n":0,"temperature":0}}`, "temperature=0,top_k=40,top_p=0.9"},
		{"repetition_penalty=1.1", `{"options":{"repeat_last_n":-1}}`, "temperature=0.8,top_k=40,top_p=0.9,repetition_penalty=1.1,repeat_last_n=-1"},
	} {
		m, req := &tts.Model{}, &tts.Request{}
		if c.author != "" {
			author, err := sampling.Parse(c.author)
			if err != nil {
				t.Fatal(err)
			}
			m.SampleAs(author, sampling.Config{}, false)
		}
		body, err := jsonread.Parse([]byte(c.request))
		if err != nil {
			t.Fatal(err)
		}
		reader{body}.options(req, m)
		if got := sampling.ConfigOf(&req.Sampling).String(); body.Err != nil || got != c.want {
			t.Errorf("%s of a model with %q: %s, %v; want %s", c.request, c.author, got, body.Err, c.want)
		}
	}
}
