package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/server/residency"
)

// onDemand is a live server whose second model is loaded when a request names it.
type onDemand struct {
	*fixture
	gate   chan struct{} // each load takes an element
	broken atomic.Bool
}

// startOnDemand starts such a server.
func startOnDemand(t *testing.T, tune func(*Options, *residency.Options)) *onDemand {
	t.Helper()
	more := residency.Options{KeepAlive: -1, Queue: 8}
	f := &onDemand{gate: make(chan struct{}, 8), fixture: start(t, says(t, "Fine."), func(o *Options) {
		if tune != nil {
			tune(o, &more)
		}
	})}
	set := residency.New(more, must(f.Settings()))
	late := residency.Source{Name: "late", Aliases: []string{"later"}, Key: "late", About: registry.About{Arch: "toy", Context: 512, Task: registry.TaskGenerate, Size: 7}, Load: func(ctx context.Context, progress func(done, total int64)) (*residency.Resident, error) {
		progress(1, 4)
		select {
		case <-f.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if f.broken.Load() {
			return nil, errors.New("disk on fire")
		}
		return &residency.Resident{Served: registry.Served{Model: toyModel(t, says(t, "Late."), "late", nil), Aliases: []string{"later"}}, Bytes: 5, Unload: func() {}}, nil
	}}
	first := registry.Served{Model: f.model}
	err := set.Update(t.Context(), []residency.Source{{Name: "toy", Pinned: true}, late}, map[string]*residency.Resident{"toy": {Served: first, Bytes: 3}})
	if err != nil {
		t.Fatal(err)
	}
	f.PublishSet(set)
	t.Cleanup(set.Close)
	return f
}

// listen posts a request and returns the lines of the answer as they come.
func (f *onDemand) listen(path, body string) (lines *bufio.Scanner, end func()) {
	resp, err := http.Post(f.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	return bufio.NewScanner(resp.Body), func() { resp.Body.Close() }
}

const lateChat = `{"model":"late","messages":[{"role":"user","content":"Hi"}],"stream":true}`

func TestAStreamIsToldHowFarItsModelHasLoaded(t *testing.T) {
	for _, c := range []struct{ path, sign, said, failed string }{
		{"/v1/chat/completions", `: loading "late", 25 %`, "Late.", `"code":"model_load_failed"`},
		{"/v1/messages", `: loading "late", 25 %`, "Late.", "event: error"},
		{"/api/chat", `"content":""},"done":false}`, "Late.", `{"error":"The model 'late' could not be loaded`},
	} {
		body := lateChat
		if c.path == "/v1/messages" {
			body = strings.Replace(body, `"stream"`, `"max_tokens":20,"stream"`, 1)
		}
		for _, broken := range []bool{true, false} {
			f := startOnDemand(t, func(o *Options, _ *residency.Options) { o.KeepAlive = time.Millisecond })
			f.broken.Store(broken)
			lines, end := f.listen(c.path, body)
			if !lines.Scan() || !strings.HasSuffix(lines.Text(), c.sign) {
				t.Errorf("%s: while it loads a stream says %q", c.path, lines.Text())
			}
			f.gate <- struct{}{}
			var rest strings.Builder
			for lines.Scan() {
				rest.WriteString(lines.Text() + "\n")
			}
			end()
			if broken && !strings.Contains(rest.String(), c.failed) || !broken && said(rest.String()) != c.said {
				t.Errorf("%s, broken %v: %s", c.path, broken, rest.String())
			}
		}
	}
}

// said puts the pieces of a stream's text together.
func said(stream string) string {
	var text strings.Builder
	for line := range strings.SplitSeq(stream, "\n") {
		var e struct {
			Choices []struct{ Delta struct{ Content string } }
			Delta   struct{ Text string }
			Message struct{ Content any }
		}
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &e) != nil {
			continue
		}
		for _, c := range e.Choices {
			text.WriteString(c.Delta.Content)
		}
		if s, ok := e.Message.Content.(string); ok {
			text.WriteString(s)
		}
		text.WriteString(e.Delta.Text)
	}
	return text.String()
}

func TestModelsAreListedLoadedAndUnloadedAsLlamaServersRouterDoes(t *testing.T) {
	f := startOnDemand(t, nil)
	status := func(name string) string {
		_, _, answer := f.do("GET", "/models", nil)
		list := strict[struct {
			Object string
			Data   []wireCard
		}](t, answer)
		for _, c := range list.Data {
			if c.ID == name {
				return c.Status.Value
			}
		}
		return "none"
	}
	change := func(what, name, want string, code int) {
		t.Helper()
		if got, _, answer := f.post("/models/"+what, `{"model":"`+name+`"}`); got != code || !strings.Contains(string(answer), want) {
			t.Errorf("%s %s: %d %s, want %d %s", what, name, got, answer, code, want)
		}
	}
	if got := status("late") + " " + status("later") + " " + status("toy"); got != "unloaded unloaded loaded" {
		t.Errorf("in the beginning: %s", got)
	}
	change("load", "late", `{"success":true}`, 200)
	if got := status("late"); got != "loading" {
		t.Errorf("while it loads: %s", got)
	}
	change("load", "late", "model is already running", 400)
	f.gate <- struct{}{}
	if code, _, answer := f.post("/v1/chat/completions", strings.Replace(lateChat, `,"stream":true`, "", 1)); code != 200 || !strings.Contains(string(answer), "Late.") {
		t.Errorf("a request that waits for the load: %d %s", code, answer)
	}
	if got := status("late"); got != "loaded" {
		t.Errorf("once it has loaded: %s", got)
	}
	change("unload", "later", `{"success":true}`, 200)
	change("unload", "late", "model is not running", 400)
	change("unload", "toy", "pinned", 400)
	change("load", "nobody", "does not exist", 404)
	change("unload", "nobody", "does not exist", 404)
	if code, _, _ := f.post("/models/load", `{"model":7}`); code != 400 {
		t.Errorf("a name that is none: %d", code)
	}
	if got := status("late"); got != "unloaded" {
		t.Errorf("in the end: %s", got)
	}
}

func TestOllamasClientsLoadAndUnloadModels(t *testing.T) {
	f := startOnDemand(t, nil)
	names := func(path string) (list []string) {
		_, _, answer := f.do("GET", path, nil)
		var got struct {
			Models []struct {
				Name    string
				Size    int64
				Expires *time.Time `json:"expires_at"`
			}
		}
		if err := json.Unmarshal(answer, &got); err != nil {
			t.Fatal(err)
		}
		for _, m := range got.Models {
			if (path == "/api/ps") != (m.Expires != nil && m.Expires.After(time.Now())) || path == "/api/ps" && m.Size == 0 {
				t.Errorf("%s: %s", path, answer)
			}
			if !strings.Contains(m.Name, "+") {
				list = append(list, m.Name)
			}
		}
		return list
	}
	generate := func(fields, want string) {
		t.Helper()
		if code, _, answer := f.post("/api/generate", `{"model":"late"`+fields+"}"); code != 200 || !strings.Contains(string(answer), `"done_reason":"`+want+`"`) {
			t.Errorf("%s: %d %s, want %s", fields, code, answer, want)
		}
	}
	want := func(path, list string) {
		t.Helper()
		if got := strings.Join(names(path), " "); got != list {
			t.Errorf("%s lists %s, want %s", path, got, list)
		}
	}
	want("/api/ps", "toy:latest")
	want("/api/tags", "toy:latest late:latest later:latest")
	if code, _, answer := f.post("/api/show", `{"model":"later"}`); code != 200 || !strings.Contains(string(answer), `"toy.context_length":512`) {
		t.Errorf("show of a model that is not loaded: %d %s", code, answer)
	}
	generate(`,"keep_alive":0`, "unload") // it was not loaded
	for range 5 {
		f.gate <- struct{}{}
	}
	generate(`,"keep_alive":"10m"`, "load")
	want("/api/ps", "toy:latest late:latest")
	generate(`,"keep_alive":"0s","prompt":""`, "unload")
	want("/api/ps", "toy:latest")
	generate(`,"prompt":"Hi","keep_alive":0`, "stop")
	want("/api/ps", "toy:latest")
	generate(`,"prompt":"Hi","keep_alive":-1`, "stop")
	want("/api/ps", "toy:latest late:latest")
	if code, _, answer := f.post("/api/chat", `{"model":"late","messages":[],"keep_alive":0}`); code != 200 || !strings.Contains(string(answer), `"unload"`) {
		t.Errorf("chat: %d %s", code, answer)
	}
	want("/api/ps", "toy:latest")
	for _, bad := range []string{`"soon"`, `{}`, `"-"`, `true`} {
		if code, _, answer := f.post("/api/generate", `{"model":"toy","prompt":"Hi","keep_alive":`+bad+"}"); code != 400 || !strings.Contains(string(answer), "keep_alive") {
			t.Errorf("keep_alive %s: %d %s", bad, code, answer)
		}
	}
}

func TestRequestsForModelsThatDoNotComeAreRefused(t *testing.T) {
	f := startOnDemand(t, func(_ *Options, o *residency.Options) { o.Queue = 1; o.Room = func() int64 { return 10 } })
	var need atomic.Int64 // a load that nobody waits for any more may still ask
	need.Store(1)
	sources := must(f.models.known()).States()
	list := []residency.Source{*sources[0].Source, *sources[1].Source}
	list[1].Need = func() (int64, error) { return need.Load(), nil }
	if err := must(f.models.known()).Update(t.Context(), list, nil); err != nil {
		t.Fatal(err)
	}
	ask := func(want string) {
		t.Helper()
		code, h, answer := f.post("/v1/chat/completions", strings.Replace(lateChat, "true", "false", 1))
		if code != 503 || h.Get("Retry-After") == "" || !strings.Contains(string(answer), want) {
			t.Errorf("%d, Retry-After %q: %s, want 503 and %s", code, h.Get("Retry-After"), answer, want)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	waits, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		lease, err := must(f.models.known()).Hold(ctx, "late", func(string, func() float64) { close(waits) })
		if err == nil {
			lease.Release()
		}
	}()
	<-waits
	ask("Too many requests wait")
	leave()
	<-left
	need.Store(1 << 30)
	ask("The model 'late' needs 1.0 GiB of memory, and this server has room for 10 B.")
	need.Store(1)
	f.broken.Store(true)
	f.gate <- struct{}{}
	ask("could not be loaded")
	ask("could not be loaded") // at once
}

func TestAClientThatLeavesWhileItsModelLoadsEndsTheLoad(t *testing.T) {
	f := startOnDemand(t, func(o *Options, _ *residency.Options) { o.KeepAlive = time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	req := httptest.NewRequestWithContext(ctx, "POST", "/v1/chat/completions", strings.NewReader(lateChat))
	req.RequestURI, req.URL.Scheme, req.URL.Host = "", "http", strings.TrimPrefix(f.url, "http://")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Read(make([]byte, 1))
	cancel()
	resp.Body.Close()
	for st := must(must(f.models.known()).State("late")); st.Status != residency.Unloaded; st = must(must(f.models.known()).State("late")) {
		runtime.Gosched() // the server learns of it after a while
	}
}
