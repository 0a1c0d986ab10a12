package receipt_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/receipt"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// unwritten are the fields of sampling.Params that receipts leave to the request, or to their choices.
var unwritten = map[string]string{
	"DRYBreakers": "the request has their texts", "LogitBias": "the request has it",
	"Constraint":  "the request has the format",
	"Candidate":   "each choice has its own",
	"Stop":        "the request has it, with what the model adds",
	"IgnoreEOS":   "the request has it",
	"Logprobs":    "it changes no token",
	"TopLogprobs": "it changes no token",
	"FlushEvery":  "it changes how tokens come, not which",
}

func TestEveryFieldOfSamplingIsInReceiptsOrSaysWhyNot(t *testing.T) {
	unknown := maps.Clone(unwritten)
	ttstest.Fields(&sampling.Params{}, func(path string, i int, _ reflect.Value) {
		req := &tts.Request{}
		field, _ := ttstest.Field(&req.Sampling, path)
		ttstest.Fill(t, i, field)
		saved := through(t, receipt.Receipt{Sampling: receipt.NewSampling(req)})
		got, _ := ttstest.Field(&saved.Sampling.Params, path)
		_, known := unwritten[path]
		delete(unknown, path)
		if same := reflect.DeepEqual(got.Interface(), field.Interface()); same == known {
			t.Errorf("%s is %v in a receipt that is read, want %v, or a reason why not: %v", path, got, field, known)
		}
	})
	if len(unknown) > 0 {
		t.Errorf("there are no such fields: %v", unknown)
	}
}

// through writes a receipt and reads it again.
func through(t *testing.T, r receipt.Receipt) receipt.Receipt {
	t.Helper()
	hash := strings.Repeat("0", 64)
	r.Version, r.Endpoint, r.Hash, r.Kernels = receipt.Version, receipt.Endpoints[0], hash, "generic"
	r.Model, r.Prompts = receipt.Model{Name: "m", SHA256: hash}, []receipt.Prompt{{Tokens: 1, Hash: hash}}
	r.Choices = []receipt.Choice{receipt.NewChoice(0, []int32{1}, "stop")}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := receipt.Read(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return saved.Receipt
}

// unrepeated are the fields of scaling.Plan that are not asked for again.
var unrepeated = map[string]string{
	"Stream":             "it says how the search is reported",
	"Include.Candidates": "it says what is reported",
	"Include.Steps":      "it says what is reported",
	"Include.Tree":       "it says what is reported",
	"Include.Partial":    "it says what is reported",
	"Include.Critiques":  "it says what is reported",
	"Quality":            "the plan is the one that was chosen for it",
	"Deadline":           "the plan is the one that was chosen for it; how far it came in the time is no part of it",
}

func TestEveryFieldOfAPlanIsAskedForAgainOrSaysWhyNot(t *testing.T) {
	limits := scaling.DefaultLimits()
	var plans []scaling.Plan // each setting is one of some method's
	for _, written := range []string{"best_of_n;adaptive=true", "deepconf", "particle_filtering"} {
		p, err := scaling.Parse(written)
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, p.WithDefaults(&limits))
	}
	unknown := maps.Clone(unrepeated)
	ttstest.Fields(&scaling.Plan{}, func(path string, i int, _ reflect.Value) {
		repeated, how := false, ""
		for _, p := range plans {
			field, _ := ttstest.Field(&p, path)
			before := fmt.Sprint(field)
			ttstest.Fill(t, i, field)
			switch path {
			case "Method":
				field.SetString(string(scaling.BeamSearch)) // a known one
			case "DeepConf.Eta":
				field.SetFloat(50) // a percentage
			}
			p = p.WithDefaults(&limits)
			again := repeat(t, &p)
			got, _ := ttstest.Field(again, path)
			changed := fmt.Sprint(field) != before || path == "Adaptive.On"
			repeated = repeated || changed && reflect.DeepEqual(got.Interface(), field.Interface())
			how += fmt.Sprintf(" %v, want %v;", got, field)
		}
		_, known := unrepeated[path]
		if delete(unknown, path); repeated == known {
			t.Errorf("%s is asked for again: %v, with a reason why not: %v:%s", path, repeated, known, how)
		}
	})
	if len(unknown) > 0 {
		t.Errorf("there are no such fields: %v", unknown)
	}
}

// repeat returns the plan that the request for the same answer has.
func repeat(t *testing.T, p *scaling.Plan) *scaling.Plan {
	t.Helper()
	r := through(t, receipt.Receipt{Search: &receipt.Search{Plan: p.JSON()}, Sampling: receipt.NewSampling(&tts.Request{})})
	body, err := r.Repeat([]byte(`{"messages":[]}`), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := jsonread.Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	asked := fields.Reader{Fields: f}.Scaling("", nil, nil)
	if f.Err != nil || asked == nil {
		t.Fatalf("%s: %v", body, f.Err)
	}
	return asked.Plan
}
