package server

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts/constrain"
)

// breaking makes a toy model that writes DC4s, and fails when some of them have been seen.
func breaking(seen <-chan struct{}) *toy.Model {
	var broken atomic.Bool
	var written atomic.Int32
	m := &toy.Model{Logits: func(_ []int32, row []float32) {
		clear(row)
		if row[20] = 50; written.Add(1) == 30 {
			<-seen
			broken.Store(true)
		}
	}}
	return fragile(m, &broken)
}

// lines sends a request and returns the lines of its answer, without empty ones
// at the end. It calls read for each as it comes.
func (f *fixture) lines(path, body string, read func(line string)) (lines []string) {
	f.t.Helper()
	resp, err := http.Post(f.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		f.t.Fatalf("%s: %d", path, resp.StatusCode)
	}
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		lines = append(lines, in.Text())
		read(in.Text())
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func TestAStreamThatFailsEndsInTheFormOfItsAPI(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	const envelope = `data: {"error":{"message":`
	for _, c := range []struct {
		path, body string
		error      string   // what the line of the error begins with
		after      []string // the lines behind it
	}{
		{"/v1/chat/completions", `"messages":[{"role":"user","content":"Hi"}]`, envelope, []string{"", "data: [DONE]"}},
		{"/v1/completions", `"prompt":"Hi","max_tokens":50`, envelope, []string{"", "data: [DONE]"}},
		{"/infill", `"input_prefix":"Hi","input_suffix":"","n_predict":50`, envelope, nil},
		{"/v1/messages", `"messages":[{"role":"user","content":"Hi"}],"max_tokens":50`, "event: error", []string{`data: {"type":"error","error":{"type":"overloaded_error","message":`}},
		{"/api/chat", `"messages":[{"role":"user","content":"Hi"}]`, `{"error":"The model 'bad' has failed`, nil},
		{"/api/generate", `"prompt":"Hi"`, `{"error":"The model 'bad' has failed`, nil},
		{"/v1/responses", `"input":"Hi"`, "event: response.failed", []string{`data: {"type":"response.failed","sequence_number":`}},
	} {
		t.Run(c.path, func(t *testing.T) {
			seen := make(chan struct{})
			bad := toyModel(t, breaking(seen), "bad", nil)
			if c.path == "/infill" {
				bad.Tokenizer = infillWords(t)
				bad.Formats = constrain.NewFormats(bad.Tokenizer)
			}
			if err := f.Publish(registry.Served{Model: bad}); err != nil {
				t.Fatal(err)
			}
			goOn := sync.OnceFunc(func() { close(seen) })
			t.Cleanup(goOn)
			lines := f.lines(c.path, `{"model":"bad","stream":true,`+c.body+`}`, func(line string) {
				if strings.Contains(line, `\u0014`) {
					goOn()
				}
			})
			at := len(lines) - 1 - len(c.after)
			if at < 1 || !strings.HasPrefix(lines[at], c.error) {
				t.Fatalf("it ends with %q", lines[max(0, len(lines)-4):])
			}
			for i, want := range c.after {
				if !strings.HasPrefix(lines[at+1+i], want) {
					t.Errorf("behind the error stands %q, want %q", lines[at+1+i], want)
				}
			}
			if strings.Contains(strings.Join(lines, ""), "fire") {
				t.Errorf("the stream tells the cause: %q", lines)
			}
			if c.path == "/v1/responses" {
				f.wantFailedResponse(lines[len(lines)-1])
			}
		})
	}
}

// wantFailedResponse checks the event that ends a stream, and that the response is kept.
func (f *fixture) wantFailedResponse(line string) {
	f.t.Helper()
	type response struct {
		ID, Status string
		Error      *struct{ Code, Message string }
		Output     []struct {
			Status  string
			Content []struct{ Text string }
		}
	}
	var last struct {
		Number   int `json:"sequence_number"`
		Response response
	}
	_, data, _ := strings.Cut(line, "data: ")
	if err := json.Unmarshal([]byte(data), &last); err != nil {
		f.t.Fatal(err)
	}
	var kept response
	status, _, answer := f.do("GET", "/v1/responses/"+last.Response.ID, nil)
	if err := json.Unmarshal(answer, &kept); err != nil || status != 200 {
		f.t.Fatalf("%d %s", status, answer)
	}
	for _, r := range []response{last.Response, kept} {
		if r.Status != "failed" || r.Error == nil || r.Error.Code != "server_error" || !strings.Contains(r.Error.Message, "'bad'") ||
			len(r.Output) != 1 || r.Output[0].Status != "incomplete" || r.Output[0].Content[0].Text == "" {
			f.t.Errorf("the response is %+v", r)
		}
	}
}
