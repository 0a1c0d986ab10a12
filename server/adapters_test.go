package server

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/server/receipt"
	"github.com/lutra-lm/lutra/server/registry"
)

// adapted serves a tiny model with two adapters.
func adapted(t *testing.T) *fixture {
	t.Helper()
	p := pool.New(1)
	t.Cleanup(p.Close)
	b, err := models.Load("../models/testdata/huggingface/llama", models.LoadOptions{Pool: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	b.Name = "base"
	set := &registry.Adapters{}
	for name, scale := range map[string]float32{"one.gguf": 1, "two": 0.5} {
		path := map[string]string{"one.gguf": "llama-all.gguf", "two": "llama-some"}[name]
		a, err := b.LoadAdapter(strings.TrimSuffix(name, ".gguf"), "../models/testdata/lora/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		set.List = append(set.List, models.Use{Adapter: a, Scale: scale})
	}
	slices.SortFunc(set.List, func(x, y models.Use) int { return strings.Compare(x.Adapter.Name, y.Adapter.Name) })
	s := New(DefaultOptions())
	f := &fixture{Server: s, t: t, model: runBundle(t, b)}
	f.engine = f.model.Engine
	if err := s.Publish(registry.Served{Model: f.model, Adapters: set, Aliases: []string{"alias"}}); err != nil {
		t.Fatal(err)
	}
	live := httptest.NewServer(s.Handler())
	f.url = live.URL
	t.Cleanup(func() {
		live.Close()
		f.settle()
	})
	return f
}

// adaptedText returns a model's text and the receipt.
type adaptedText struct {
	Fingerprint string `json:"system_fingerprint"`
	Choices     []struct {
		Text string `json:"text"`
	} `json:"choices"`
	Usage struct {
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Receipt receipt.Receipt `json:"-"`
}

func (f *fixture) writes(t *testing.T, fields string) (w adaptedText) {
	t.Helper()
	status, _, answer := f.post("/v1/completions", `{"prompt":"the rest of the test, nine ants eat tin, it is the one that sits on it, a stone in the net, nine ants eat tin","max_tokens":8,"temperature":0,"receipt":true,`+fields+`}`)
	if err := json.Unmarshal(answer, &w); err != nil || status != 200 || len(w.Choices) == 0 {
		t.Fatalf("%s: %v, %d %s", fields, err, status, answer)
	}
	w.Receipt, _ = received(t, status, answer)
	return w
}

func TestARequestChoosesAdaptersByNameOrByField(t *testing.T) {
	f := adapted(t)
	plain, one, two := f.writes(t, `"model":"base"`), f.writes(t, `"model":"base:one"`), f.writes(t, `"model":"two"`)
	texts := []string{plain.Choices[0].Text, one.Choices[0].Text, two.Choices[0].Text}
	slices.Sort(texts)
	if len(slices.Compact(texts)) != 3 || plain.Fingerprint == one.Fingerprint || one.Usage.Details.Cached+two.Usage.Details.Cached > 0 {
		t.Errorf("texts %q, fingerprints %s and %s, tokens of the cache %d and %d", texts, plain.Fingerprint, one.Fingerprint, one.Usage.Details.Cached, two.Usage.Details.Cached)
	}
	for fields, want := range map[string]adaptedText{
		`"model":"one"`: one, `"model":"alias:one"`: one, `"model":"base","lora":[{"id":0,"scale":1}]`: one, `"lora":[{"id":1,"scale":0.5},{"id":0,"scale":0}]`: two,
		`"model":"base","lora":[]`: plain, `"model":"base","lora":[{"id":1}]`: plain,
	} {
		got := f.writes(t, fields)
		if got.Choices[0].Text != want.Choices[0].Text || got.Fingerprint != want.Fingerprint || got.Usage.Details.Cached == 0 {
			t.Errorf("%s writes %+v, want %+v and a prompt of the cache", fields, got, want)
		}
	}
	if status, _, answer := f.post("/v1/completions", `{"model":"base:two+bon8","prompt":"a","max_tokens":2,"lora":null}`); status != 200 {
		t.Errorf("a search of an adapter: %d %s", status, answer)
	}
	if a := one.Receipt.Model.Adapters; len(a) != 1 || a[0].Name != "one" || a[0].Scale != 1 || len(a[0].SHA256) != 64 || plain.Receipt.Model.Adapters != nil {
		t.Errorf("receipts have the adapters %+v and %+v", a, plain.Receipt.Model.Adapters)
	}
	if v := receipt.Compare(&one.Receipt, &two.Receipt); len(v.Apart) == 0 || !strings.Contains(strings.Join(v.Apart, " "), "model.adapters") {
		t.Errorf("receipts of two adapters are apart by %q", v.Apart)
	}
	for fields, want := range map[string]string{
		`"model":"base","lora":[{"id":2,"scale":1}]`:                    "'lora[0].id': the model has 2 adapters",
		`"model":"base","lora":[{"scale":1}]`:                           "'lora[0].id': it is missing",
		`"model":"base","lora":[{"id":0,"scale":1},{"id":0,"scale":2}]`: "'lora[1].id': 0 is there twice",
		`"model":"base","lora":[{"id":0,"scale":1e5}]`:                  "lora[0].scale",
		`"model":"base","lora":[{"id":0},{"id":1},{"id":0}]`:            "lora",
		`"model":"base:one","lora":[{"id":0,"scale":1}]`:                "the model's name asks for an adapter already",
		`"model":"base:three"`:                                          "base:three",
	} {
		if status, _, answer := f.post("/v1/completions", `{"prompt":"a",`+fields+`}`); status != 400 && status != 404 || !strings.Contains(string(answer), want) {
			t.Errorf("%s: %d %s, want %q", fields, status, answer, want)
		}
	}
}

func TestAdaptersAreListedWithTheirModel(t *testing.T) {
	f := adapted(t)
	var list struct{ Data []registry.Card }
	_, _, answer := f.do("GET", "/v1/models", nil)
	if err := json.Unmarshal(answer, &list); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range list.Data {
		if c.Parent != "" {
			got[c.ID] = c.Root + " of " + c.Parent
		}
	}
	want := map[string]string{"base:one": "llama-all.gguf of base", "alias:one": "llama-all.gguf of base", "one": "llama-all.gguf of base", "base:two": "llama-some of base", "alias:two": "llama-some of base", "two": "llama-some of base"}
	if len(got) != len(want) {
		t.Errorf("adapters %v, want %v", got, want)
	}
	for id, what := range want {
		if got[id] != what {
			t.Errorf("%s is %q, want %q", id, got[id], what)
		}
	}
	if _, _, metrics := f.do("GET", "/metrics", nil); !strings.Contains(string(metrics), `vllm:lora_requests_info{engine="0",max_lora="2",model_name="base",running_lora_adapters="",waiting_lora_adapters=""}`) {
		t.Error("there is no vllm:lora_requests_info")
	}
}

func TestScalesOfTheServerAreThoseOfRequestsThatNameTheModelAlone(t *testing.T) {
	f := adapted(t)
	scales := func() string {
		_, _, answer := f.do("GET", "/lora-adapters?model=base", nil)
		return strings.TrimSpace(string(answer))
	}
	if got, want := scales(), `[{"id":0,"path":"llama-all.gguf","scale":0,"name":"one","rank":4},{"id":1,"path":"llama-some","scale":0,"name":"two","rank":9}]`; got != want {
		t.Errorf("adapters %s, want %s", got, want)
	}
	plain, one := f.writes(t, `"model":"base"`).Choices[0].Text, f.writes(t, `"model":"one"`).Choices[0].Text
	if status, _, answer := f.post("/lora-adapters", ` [{"id":0,"scale":1.0}]`); status != 200 || strings.TrimSpace(string(answer)) != `{"success":true}` {
		t.Errorf("POST: %d %s", status, answer)
	}
	if got := f.writes(t, `"model":"base"`).Choices[0].Text; got != one || !strings.Contains(scales(), `"scale":1`) {
		t.Errorf("after POST the model writes %q, want %q", got, one)
	}
	if got := f.writes(t, `"lora":[]`).Choices[0].Text; got != plain {
		t.Errorf("a request with a list of its own gets %q, want %q", got, plain)
	}
	if got := f.writes(t, `"model":"two"`).Choices[0].Text; got == one || got == plain {
		t.Errorf("an adapter by its name gets %q too", got)
	}
	if status, _, answer := f.post("/lora-adapters", `[{"id":9,"scale":1}]`); status != 400 || !strings.Contains(string(answer), "lora[0].id") {
		t.Errorf("POST of an unknown adapter: %d %s", status, answer)
	}
}
