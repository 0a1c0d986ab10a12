package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts"
)

const vocab = 1024 // of the embedded tokenizer

// fixture is a live server over a toy model with the embedded tokenizer.
type fixture struct {
	*Server
	t      testing.TB
	url    string
	model  *tts.Model
	engine *batcher.Engine
	judge  *batcher.Engine // of a verifier; nil: there is none
	others []*batcher.Engine
}

// start serves m until the test ends, and then checks that the engine has been
// left clean.
func start(t testing.TB, m *toy.Model, tune func(*Options)) *fixture {
	t.Helper()
	opt := DefaultOptions()
	if tune != nil {
		tune(&opt)
	}
	if err := opt.Validate(); err != nil {
		t.Fatal(err)
	}
	s := New(opt)
	f := &fixture{Server: s, t: t}
	f.model = toyModel(t, m, "toy", s.StepObserver("toy"))
	f.engine = f.model.Engine
	if err := s.Publish(registry.Served{Model: f.model, Aliases: []string{"gpt-4o"}}); err != nil {
		t.Fatal(err)
	}
	live := httptest.NewServer(validated(t, s.Handler()))
	f.url = live.URL
	t.Cleanup(func() {
		live.Close()
		f.settle()
	})
	return f
}

// settle waits until no sequence is open and checks that no block is held. The
// engine takes no more requests afterwards.
func (f *fixture) settle() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for _, e := range append([]*batcher.Engine{f.engine, f.judge}, f.others...) {
		if e == nil {
			continue
		}
		if err := e.Drain(ctx); err != nil {
			f.t.Errorf("Drain() = %v, with %+v", err, e.Stats())
		}
		// The blocks are free at the step after the close.
		for st := e.Stats(); st.Used != 0 || st.Running != 0; st = e.Stats() {
			if ctx.Err() != nil {
				f.t.Fatalf("after the last request the engine has %+v, want nothing running or held", st)
			}
			runtime.Gosched()
		}
	}
}

// toyModel runs m with the embedded models' words.
func toyModel(t testing.TB, m *toy.Model, name string, onStep func(batcher.StepStats)) *tts.Model {
	t.Helper()
	m.Vocab = vocab
	tok, tmpl := embeddedWords()
	opt := batcher.DefaultOptions()
	opt.OnStep, opt.Name = onStep, name
	engine := batcher.New(m, m.NewCache(max(512, m.Context/8), 16), opt)
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		engine.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-stopped
	})
	return tts.NewModel(&models.Bundle{Name: name, Model: m, Tokenizer: tok, Template: tmpl}, engine)
}

// embeddedWords returns the embedded models' tokenizer and chat template, which do not change.
var embeddedWords = sync.OnceValues(func() (*tokenizer.Tokenizer, *template.Template) {
	file := must(embedded.Open(embedded.Default))
	source, _ := file.Metadata.String("tokenizer.chat_template")
	return must(tokenizer.New(file.Metadata)), must(template.Parse(source))
})

// words returns the embedded models' tokenizer.
func words() *tokenizer.Tokenizer {
	tok, _ := embeddedWords()
	return tok
}

// says makes a toy model that answers every chat with one text and ends its turn.
func says(t *testing.T, text string) *toy.Model {
	t.Helper()
	tok := words()
	header := tok.Encode(nil, "<|im_start|>assistant\n", tokenizer.Options{ParseSpecial: true})
	end, _ := tok.EOS()
	reply := append(tok.Encode(nil, text, tokenizer.Options{}), end)
	return &toy.Model{Logits: func(tokens []int32, row []float32) {
		clear(row)
		said := 0
		for i := len(tokens) - 1; i >= 0 && tokens[i] != header[0]; i-- {
			said++
		}
		said -= len(header) - 1
		if said >= 0 && said < len(reply) {
			row[reply[said]] = 50
		}
	}}
}

// client returns go-openai's.
func (f *fixture) client() *goopenai.Client {
	c := goopenai.DefaultConfig("no key")
	c.BaseURL = f.url + "/v1"
	return goopenai.NewClientWithConfig(c)
}

// chatBody returns a chat request with one message and these further fields.
func chatBody(fields string) string {
	return `{"model":"toy","messages":[{"role":"user","content":"Hi"}]` + fields + `}`
}

// post sends a JSON body and returns the status, the headers and the answer.
func (f *fixture) post(path, body string) (int, http.Header, []byte) {
	f.t.Helper()
	return f.do(http.MethodPost, path, strings.NewReader(body), "Content-Type", "application/json")
}

func (f *fixture) do(method, path string, body io.Reader, headers ...string) (int, http.Header, []byte) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, body)
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, answer := f.exchange(req)
	return resp.StatusCode, resp.Header, answer
}

// send sends a request and returns the status and the answer.
func (f *fixture) send(req *http.Request) (int, []byte) {
	f.t.Helper()
	resp, answer := f.exchange(req)
	return resp.StatusCode, answer
}

func (f *fixture) exchange(req *http.Request) (*http.Response, []byte) {
	f.t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return resp, answer
}

// strict decodes an answer that may hold nothing but T's fields.
func strict[T any](t *testing.T, answer []byte) T {
	t.Helper()
	var v T
	d := json.NewDecoder(bytes.NewReader(answer))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("answer %s: %v", answer, err)
	}
	if d.More() {
		t.Fatalf("answer %s has more after its object", answer)
	}
	return v
}

// chunks returns the events of a stream, which must end with [DONE].
func chunks[T any](t *testing.T, stream []byte) []T {
	t.Helper()
	events := strings.Split(strings.TrimSuffix(string(stream), "\n\n"), "\n\n")
	if last := events[len(events)-1]; last != "data: [DONE]" {
		t.Fatalf("the stream ends with %q, want [DONE]", last)
	}
	var out []T
	for _, e := range events[:len(events)-1] {
		data, ok := strings.CutPrefix(e, "data: ")
		if !ok || strings.Contains(data, "\n") {
			t.Fatalf("event %q is not one line of data", e)
		}
		out = append(out, strict[T](t, []byte(data)))
	}
	return out
}

// parts returns the objects of an answer: the chunks of a stream, or the whole.
func parts[T any](t *testing.T, answer []byte) (list []T) {
	t.Helper()
	for e := range strings.SplitSeq(strings.TrimSpace(string(answer)), "\n\n") {
		if e == "data: [DONE]" {
			continue
		}
		var v T
		if err := json.Unmarshal([]byte(strings.TrimPrefix(e, "data: ")), &v); err != nil {
			t.Fatalf("%s: %v", e, err)
		}
		list = append(list, v)
	}
	return list
}
