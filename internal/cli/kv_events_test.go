package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/vmihailenco/msgpack/v5"
)

// posted is the answer to a POST of body.
func posted(t *testing.T, url, body string, answer any) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || json.Unmarshal(data, answer) != nil {
		t.Fatalf("POST %s: %d %s, %v", url, resp.StatusCode, data, err)
	}
}

// storedEvent is vLLM's BlockStored.
type storedEvent struct {
	_      struct{} `msgpack:",as_array"`
	Type   string
	Hashes []uint64
	Parent *uint64
	Tokens []int32
	Block  int
	LoRA   *int
	Medium string
	Name   *string
}

// storedIn returns the events of a batch, all of which tell of stored blocks of 8 tokens.
func storedIn(t *testing.T, payload []byte) (list []storedEvent) {
	t.Helper()
	var batch struct {
		_      struct{} `msgpack:",as_array"`
		At     float64
		Events []msgpack.RawMessage
		Rank   int
	}
	if err := msgpack.Unmarshal(payload, &batch); err != nil {
		t.Fatal(err)
	}
	for _, raw := range batch.Events {
		var e storedEvent
		if err := msgpack.Unmarshal(raw, &e); err != nil || e.Type != "BlockStored" || e.Block != 8 {
			t.Fatalf("event %+v, %v", e, err)
		}
		list = append(list, e)
	}
	return list
}

// subscriber subscribes to the topics that begin with topic, and returns once the server knows.
func subscriber(t *testing.T, base, port, topic string) zmq4.Socket {
	t.Helper()
	sub := zmq4.NewSub(t.Context())
	t.Cleanup(func() { sub.Close() })
	if err := errors.Join(sub.Dial("tcp://127.0.0.1:"+port), sub.SetOption(zmq4.OptionSubscribe, topic)); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(5 * time.Minute); !bytes.Contains(scraped(t, base), []byte("\nlutra_kv_event_subscribers 1\n")); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the server counts no subscriber")
		}
	}
	return sub
}

// scraped returns what a server's metrics are.
func scraped(t *testing.T, base string) []byte {
	t.Helper()
	resp, err := http.Get(base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body)
	return data
}

// A router that reads events knows an adapter's prefix by the adapter's name. It takes the prefix of another scale for
// neither.
func TestARouterIsToldWhichAdapterABlockIsOf(t *testing.T) {
	events, config := freePort(t), filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf("models: [{name: base, path: ../../models/testdata/huggingface/llama, adapters: [{name: one, path: ../../models/testdata/lora/llama-all.gguf, scale: 0.5}]}]\nverifiers: []\nkv: {events: 'tcp://*:%s', pod: pod, block: 8}\nlog: {format: json}\n", events)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serving(t, "--config", config, "--addr", "127.0.0.1:0")
	sub := subscriber(t, s.base, events, "kv@pod@base")
	first := func(model string) storedEvent { // of the events of a request
		var answer any
		posted(t, s.base+"/v1/completions", `{`+model+`,"prompt":[5,6,7,8,9,10,11,12,13,14],"max_tokens":1}`, &answer)
		msg, err := sub.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return storedIn(t, msg.Frames[2])[0]
	}
	plain, named, scaled := first(`"model":"base"`), first(`"model":"one"`), first(`"model":"base","lora":[{"id":0,"scale":1}]`)
	if plain.LoRA != nil || plain.Name != nil {
		t.Errorf("the model's block is %+v", plain)
	}
	if named.LoRA == nil || *named.LoRA != 1 || *named.Name != "one" {
		t.Errorf("the adapter's block is %+v", named)
	}
	if scaled.LoRA == nil || *scaled.LoRA < 1<<30 || len(*scaled.Name) != 16 {
		t.Errorf("the block of another scale is %+v", scaled)
	}
	for _, e := range []storedEvent{plain, named, scaled} {
		if e.Parent != nil || !slices.Equal(e.Tokens, plain.Tokens) {
			t.Errorf("event %+v is not of the first block", e)
		}
	}
	if plain.Hashes[0] == named.Hashes[0] || named.Hashes[0] == scaled.Hashes[0] || scaled.Hashes[0] == plain.Hashes[0] {
		t.Errorf("hashes %x, %x and %x", plain.Hashes, named.Hashes, scaled.Hashes)
	}
}

// What a router does: it has a request rendered, and knows by events how much of it a
// server has.
func TestARouterKnowsWhatAServerHas(t *testing.T) {
	events, config := freePort(t), filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf("models: [{embedded: lutra-tiny-s}]\nverifiers: []\nkv: {events: 'tcp://*:%s', replay: 'tcp://*:%s', pod: 10.0.0.7, block: 8}\nlog: {format: json}\n", events, freePort(t))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serving(t, "--config", config, "--addr", "127.0.0.1:0")
	sub := subscriber(t, s.base, events, "kv@10.0.0.7@lutra-tiny-s")
	names := func(text []byte) []string {
		list := regexp.MustCompile(`lutra_kv_event_\w+`).FindAllString(string(text), -1)
		slices.Sort(list)
		return slices.Compact(list)
	}
	docs, err := os.ReadFile("../../docs/metrics.md")
	if got, want := names(scraped(t, s.base)), names(docs); err != nil || !slices.Equal(got, want) || len(got) != 4 {
		t.Errorf("the metrics are %q, documented are %q, %v", got, want, err)
	}
	const body = `{"messages":[{"role":"user","content":"Tom has 12 apples. He buys 7 more and gives 5 of them to Ann. How many apples does Tom have?"}],"temperature":0,"max_tokens":8}`
	var rendered struct {
		Tokens []int32 `json:"token_ids"`
	}
	posted(t, s.base+"/v1/chat/completions/render", body, &rendered)
	whole := (len(rendered.Tokens) - 1) / 8 * 8 // in blocks, and the last token is computed anyway
	var answer struct {
		Usage struct {
			Prompt  int `json:"prompt_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	posted(t, s.base+"/v1/chat/completions", body, &answer)
	if answer.Usage.Prompt != len(rendered.Tokens) || answer.Usage.Details.Cached != 0 {
		t.Errorf("%d tokens are rendered, of the answer's prompt %+v", len(rendered.Tokens), answer.Usage)
	}
	var stored []int32
	for len(stored) < whole {
		msg, err := sub.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range storedIn(t, msg.Frames[2]) {
			if e.LoRA != nil || e.Name != nil {
				t.Errorf("without adapters, a block is of %v, %v", e.LoRA, e.Name)
			}
			stored = append(stored, e.Tokens...)
		}
	}
	if whole < 16 || !slices.Equal(stored[:whole], rendered.Tokens[:whole]) {
		t.Errorf("stored are %v, the prompt is %v", stored, rendered.Tokens)
	}
	posted(t, s.base+"/v1/chat/completions", body, &answer)
	if answer.Usage.Details.Cached != whole {
		t.Errorf("the server had %d tokens of the prompt, a router would think %d", answer.Usage.Details.Cached, whole)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.stop() }()
	for {
		msg, err := sub.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(msg.Frames[2], []byte("AllBlocksCleared")) {
			break
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
