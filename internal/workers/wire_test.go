package workers

import (
	"encoding/json"
	"maps"
	"reflect"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// What a worker is not told as a field of its own, and why.
var (
	untold = map[string]string{
		"MaxTokens":   "each job has its own",
		"Candidate":   "each job has its own",
		"Logprobs":    "it is always asked for",
		"FlushEvery":  "it changes how tokens come, not which",
		"DRYBreakers": "Work.Breakers has their texts",
	}
	unfit = map[string]string{ // for which no worker is asked
		"Constraint":  "the wire has no formats",
		"TopLogprobs": "the wire has no alternatives",
		"IgnoreEOS":   "Stop is to have the tokens that end an answer",
	}
)

// read returns the parameters that a worker reads of a request for work.
func read(t *testing.T, m *tts.Model, w *tts.Work) sampling.Params {
	t.Helper()
	body, err := json.Marshal(newRequest("m", w, []int{0}, [][]int32{{}}, 1))
	if err != nil {
		t.Fatal(err)
	}
	f, err := jsonread.Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	req := &tts.Request{}
	for i := range sampling.Fields { // none of the model's own is to come through
		row := &sampling.Fields[i]
		row.Put(&m.Sampling, row.Lo+0.3*(min(row.Hi, 10)-row.Lo))
	}
	fields.Reader{Fields: f}.Sampling(req, m, 1, sampling.Config{})
	if f.Err != nil {
		t.Fatalf("%s: %v", body, f.Err)
	}
	return req.Sampling
}

func TestEveryFieldOfSamplingReachesAWorkerOrSaysWhyNot(t *testing.T) {
	m := ttstest.Run(t, ttstest.Thinks(t))
	unknown := maps.Clone(untold)
	maps.Copy(unknown, unfit)
	ttstest.Fields(&sampling.Params{}, func(path string, i int, _ reflect.Value) {
		w := &tts.Work{}
		field, _ := ttstest.Field(&w.Params, path)
		ttstest.Fill(t, i, field)
		if _, ok := unfit[path]; ok || !fits(w) {
			if fits(w) || !ok {
				t.Errorf("%s: workers are asked: %v, want %v", path, fits(w), !ok)
			}
			delete(unknown, path)
			return
		}
		if path == "RepetitionWindow" { // it is one of a penalty
			w.Params.RepetitionPenalty = 0.5
		}
		got := read(t, m, w)
		if is, want := sampling.ConfigOf(&got), sampling.ConfigOf(&w.Params); !reflect.DeepEqual(is, want) {
			t.Errorf("%s: the worker samples as %v, want %v", path, maps.Collect(is.Fields()), maps.Collect(want.Fields()))
		}
		arrived, _ := ttstest.Field(&got, path)
		same := reflect.DeepEqual(arrived.Interface(), field.Interface())
		if _, ok := untold[path]; ok {
			if same {
				t.Errorf("%s is told: it needs no reason", path)
			}
		} else if !same {
			t.Errorf("%s is %v at the worker, want %v", path, arrived, field)
		}
		delete(unknown, path)
	})
	if len(unknown) > 0 {
		t.Errorf("there are no such fields: %v", unknown)
	}
}
