package huggingface

import (
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
)

func TestSamplingOfAGenerationConfigIsRead(t *testing.T) {
	for _, c := range []struct {
		text, want string
		warnings   int
	}{
		{`{"temperature": 0.7, "top_k": 20, "top_p": 0.8, "min_p": 0, "repetition_penalty": 1.05, "do_sample": true}`,
			"temperature=0.7,top_k=20,top_p=0.8,min_p=0,repetition_penalty=1.05,repeat_last_n=-1", 0},
		{`{"temperature": 0.7, "do_sample": false}`, "temperature=0", 0},
		{`{"eos_token_id": 3, "num_beams": 1, "typical_p": 1.0, "top_p": null}`, "", 0},
		{`{"temperature": "hot", "top_k": 1e30, "top_p": 7, "no_repeat_ngram_size": 3, "bad_words_ids": [[1]]}`, "", 5},
	} {
		b := newBuilder("")
		v := values{folder: b.folder, file: fileGeneration}
		v.parse([]byte(c.text))
		b.sampling(&v)
		got, warnings := sampling.FromFile(b.md)
		if b.err != nil || got.String() != c.want || len(warnings) != c.warnings {
			t.Errorf("%s: %s, %q, %v; want %s and %d warnings", c.text, got, warnings, b.err, c.want, c.warnings)
		}
	}
}
