package llamacpp

import (
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
)

func TestAMiddleIsSampledAsLlamaServerAndTheModelSay(t *testing.T) {
	file, err := embedded.Open(embedded.Default)
	if err != nil {
		t.Fatal(err)
	}
	md := file.Metadata
	md["tokenizer.ggml.fim_pre_token_id"], md["tokenizer.ggml.fim_suf_token_id"], md["tokenizer.ggml.fim_mid_token_id"] = uint32(1000), uint32(1001), uint32(1002)
	words, err := tokenizer.New(md)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ author, request, want string }{
		{"", `{}`, "temperature=0.8,top_k=40,top_p=0.95,min_p=0.05"},
		{"temperature=0.6,top_k=20", `{}`, "temperature=0.6,top_k=20,top_p=0.95,min_p=0.05"},
		{"temperature=0.6,top_k=20", `{"top_k":0,"min_p":0,"repeat_penalty":1.2}`, "temperature=0.6,top_p=0.95,repetition_penalty=1.2,repeat_last_n=64"},
		{"repetition_penalty=1.1", `{"repeat_last_n":-1,"typical_p":0.5}`, "temperature=0.8,top_k=40,top_p=0.95,min_p=0.05,typical_p=0.5,repetition_penalty=1.1,repeat_last_n=-1"},
	} {
		m, req := &tts.Model{}, &tts.Request{}
		m.Tokenizer = words
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
		reader{body}.infill(req, m, 8)
		if got := sampling.ConfigOf(&req.Sampling).String(); body.Err != nil || got != c.want {
			t.Errorf("%s of a model with %q: %s, %v; want %s", c.request, c.author, got, body.Err, c.want)
		}
	}
}
