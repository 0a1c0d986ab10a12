package workers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/server"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/search"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// handler is the handler of a server of the model that thinks, with wrap's before it.
func handler(t *testing.T, wrap func(http.Handler) http.Handler) http.Handler {
	t.Helper()
	s := server.New(server.DefaultOptions())
	if err := s.Publish(registry.Served{Model: ttstest.Run(t, ttstest.Thinks(t))}); err != nil {
		t.Fatal(err)
	}
	if wrap == nil {
		return s.Handler()
	}
	return wrap(s.Handler())
}

// serves is such a server.
func serves(t *testing.T, wrap func(http.Handler) http.Handler) *httptest.Server {
	t.Helper()
	live := httptest.NewServer(handler(t, wrap))
	t.Cleanup(live.Close)
	return live
}

// journal is a log.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *journal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *journal) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// rig is a model whose searches others work for.
type rig struct {
	*tts.Model
	pool *Pool
	log  *journal
}

// asks makes the model ask servers, as opt says beyond their addresses.
func asks(t *testing.T, opt Options, servers ...*httptest.Server) rig {
	t.Helper()
	for _, s := range servers {
		opt.Workers = append(opt.Workers, s.URL)
	}
	if err := opt.Validate(); err != nil {
		t.Fatal(err)
	}
	r := rig{Model: ttstest.Run(t, ttstest.Thinks(t)), log: &journal{}}
	r.pool = New(opt, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, zerolog.New(r.log))
	t.Cleanup(r.pool.Close)
	fingerprint, err := registry.Fingerprint(r.Model)
	if err != nil {
		t.Fatal(err)
	}
	r.Source = r.pool.Source(r.Name, fingerprint, r.Vocab)
	return r
}

// alone is the model without the others.
func (r rig) alone() *tts.Model {
	m := *r.Model
	m.Source = nil
	return &m
}

// counts adds up the counts of all workers.
func (r rig) counts() (all Counts) {
	all.Requests = map[Outcome]int64{}
	for _, c := range r.pool.Stats() {
		for o, n := range c.Requests {
			all.Requests[o] += n
		}
		all.Jobs, all.Redone, all.Checked, all.Mismatches = all.Jobs+c.Jobs, all.Redone+c.Redone, all.Checked+c.Checked, all.Mismatches+c.Mismatches
		all.Resting = all.Resting || c.Resting
	}
	return all
}

// methods must give the same results with workers as without.
var methods = []string{"best_of_n;n=64;verifier=logprob", "self_consistency;n=64;early_stop=false", "beam_search;n=64;width=4;verifier=logprob", "dvts;n=64;width=4;verifier=self_certainty"}

// find is all that a search finds, in words: the answer, its tree, all candidates and
// their scores.
func find(t *testing.T, m *tts.Model, written string, seed uint64) string {
	t.Helper()
	plan, err := scaling.Parse(written)
	if err != nil {
		t.Fatal(err)
	}
	text, out := "", (*tts.Outcome)(nil)
	for e, err := range (search.Search{Model: m, Plan: plan}).Run(t.Context(), ttstest.Request(seed, 1)) {
		if err != nil {
			t.Fatal(err)
		}
		switch w := e.What.(type) {
		case tts.Text:
			text += w.Text
		case *tts.Outcome:
			out = w
		}
	}
	found := fmt.Sprintf("%q %s %v %d %v %+v\n", text, out.Reason, out.Agreement, out.Steps, out.Usage.Chosen+out.Usage.Discarded, out.Tree)
	for _, c := range out.Candidates {
		found += fmt.Sprintf("%d %v %q %v %v %v %v %v %q %d\n", c.Index, c.IDs, c.Text, c.Finish, c.StepScores, c.Score, c.Logprob, c.Certainty, c.Answer, c.Votes)
	}
	return found
}

func TestASearchOverFourServersIsThatOfOne(t *testing.T) {
	sweep.NoRace(t)
	var servers []*httptest.Server
	for range 4 {
		servers = append(servers, serves(t, nil))
	}
	r := asks(t, DefaultOptions(), servers...)
	for _, written := range methods {
		for seed := range uint64(2) {
			if got, want := find(t, r.Model, written, seed), find(t, r.alone(), written, seed); got != want {
				t.Fatalf("%s: over four servers\n%s\nover one\n%s", written, got, want)
			}
		}
	}
	if c := r.counts(); c.Jobs < 4*2*40 || c.Redone > 0 || c.Checked < 4*proving || c.Mismatches > 0 || c.Requests[Done] < 8*4 || c.Resting || r.log.String() != "" {
		t.Errorf("%+v, log %s", c, r.log)
	}
}

// Workers keep apart what they compute of prompts as this server does.
func TestWorkersAreToldTheSaltOfASearch(t *testing.T) {
	var mu sync.Mutex
	salts := map[string]int{}
	r := asks(t, DefaultOptions(), serves(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			if r.Method == http.MethodPost {
				var sent struct {
					Salt string `json:"cache_salt"`
				}
				if err := json.Unmarshal(body, &sent); err != nil {
					t.Error(err)
				}
				mu.Lock()
				salts[sent.Salt]++
				mu.Unlock()
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			h.ServeHTTP(w, r)
		})
	}))
	plan, err := scaling.Parse(methods[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, salt := range []string{"", "mine"} {
		for _, err := range (search.Search{Model: r.Model, Plan: plan}).Run(batcher.WithSalt(t.Context(), salt), ttstest.Request(1, 1)) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(salts) != 2 || salts[""] == 0 || salts["mine"] == 0 || r.counts().Requests[Done] == 0 {
		t.Errorf("requests by their salts: %v, %+v", salts, r.counts())
	}
}

// cutting is a server whose connections break behind so many events of an answer, from
// its n-th request on.
func cutting(n, events int64) func(http.Handler) http.Handler {
	var requests atomic.Int64
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1) < n {
				h.ServeHTTP(w, r)
				return
			}
			h.ServeHTTP(&broken{ResponseWriter: w, left: events}, r)
		})
	}
}

// broken is a connection that breaks behind so many events.
type broken struct {
	http.ResponseWriter
	mu   sync.Mutex
	left int64
}

func (b *broken) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func (b *broken) Write(p []byte) (int, error) {
	b.mu.Lock() // a timer of the server writes too
	defer b.mu.Unlock()
	for _, line := range bytes.SplitAfter(p, []byte("\n\n")) {
		if b.left--; b.left < 0 {
			if c, _, err := http.NewResponseController(b.ResponseWriter).Hijack(); err == nil {
				c.Close()
			}
			return 0, net.ErrClosed
		}
		if _, err := b.ResponseWriter.Write(line); err != nil {
			return 0, err
		}
		_ = http.NewResponseController(b.ResponseWriter).Flush()
	}
	return len(p), nil
}

func TestAWorkerThatDiesInTheMiddleHasItsCandidatesDoneAgain(t *testing.T) {
	for _, written := range methods {
		for _, events := range []int64{0, 1, 7, 24} {
			r := asks(t, DefaultOptions(), serves(t, nil), serves(t, cutting(1, events)), serves(t, nil), serves(t, nil))
			if got, want := find(t, r.Model, written, 3), find(t, r.alone(), written, 3); got != want {
				t.Fatalf("%s, cut behind %d events:\n%s\nwant\n%s", written, events, got, want)
			}
			if c := r.counts(); c.Redone == 0 || c.Requests[Failed] == 0 || c.Mismatches > 0 || !strings.Contains(r.log.String(), `"outcome":"failed"`) {
				t.Errorf("%s, cut behind %d events: %+v, log %s", written, events, c, r.log)
			}
		}
	}
}

func TestWithoutAnyWorkerLeftTheServerDoesItAll(t *testing.T) {
	r := asks(t, DefaultOptions(), serves(t, cutting(1, 9)), serves(t, cutting(1, 3)))
	gone := serves(t, nil)
	gone.Close()
	r2 := asks(t, DefaultOptions(), gone)
	for _, written := range methods {
		want := find(t, r.alone(), written, 5)
		for _, r := range []rig{r, r2} {
			if got := find(t, r.Model, written, 5); got != want {
				t.Errorf("%s:\n%s\nwant\n%s", written, got, want)
			}
		}
	}
}

// changed is a server whose chunks with tokens are what change makes of them.
func changed(change func(choice map[string]any)) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
			w.WriteHeader(rec.Code)
			for lines := bufio.NewScanner(rec.Body); lines.Scan(); {
				line := lines.Text()
				var e map[string]any
				if data, ok := strings.CutPrefix(line, "data: "); ok && json.Unmarshal([]byte(data), &e) == nil {
					for _, c := range e["choices"].([]any) {
						change(c.(map[string]any))
					}
					data, _ := json.Marshal(e)
					line = "data: " + string(data)
				}
				fmt.Fprintln(w, line)
			}
		})
	}
}

// eachID changes the ids of a choice's tokens.
func eachID(change func(id float64) float64) func(map[string]any) {
	return func(choice map[string]any) {
		if ids, ok := choice["tokens"].([]any); ok {
			for i := range ids {
				ids[i] = change(ids[i].(float64))
			}
		}
	}
}

// answering is a server that answers each request in its own way.
func answering(f func(w http.ResponseWriter, r *http.Request)) func(http.Handler) http.Handler {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // else it does not hear that the client has gone
			f(w, r)
		})
	}
}

// forever writes one thing again and again, until the client has gone.
func forever(kind, text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(text)); err != nil {
				return
			}
		}
	}
}

func TestWhatHostileWorkersDoChangesNoAnswerAndIsNamed(t *testing.T) {
	sweep.Full(t)
	var elsewhere atomic.Int64 // requests to where a worker sends
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	status := func(code int, body string, headers ...string) func(http.Handler) http.Handler {
		return answering(func(w http.ResponseWriter, r *http.Request) {
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		})
	}
	words := ttstest.Words(t)
	end, _ := words.EOS()
	digits := []float64{float64(words.Encode(nil, "1", tokenizer.Options{})[0]), float64(words.Encode(nil, "2", tokenizer.Options{})[0])}
	const events = "text/event-stream"
	for name, c := range map[string]struct {
		outcome Outcome // "": found by the search
		says    string
		wrap    func(http.Handler) http.Handler
	}{
		"other tokens": {"", "has generated what this server does not", changed(func(c map[string]any) {
			eachID(func(id float64) float64 {
				if id == digits[0] || id == digits[1] {
					return digits[0] + digits[1] - id
				}
				return id
			})(c)
			if l, ok := c["logprobs"].(map[string]any); ok { // the model's logprobs are of the tokens that it reads
				column, _ := l["certainty"].([]any) // an end has none
				for i, v := range column {
					column[i] = v.(float64) + 1
				}
			}
		})},
		"ids out of vocabulary": {Wrong, "outside the vocabulary", changed(eachID(func(float64) float64 { return 1 << 20 }))},
		"negative ids":          {Wrong, "outside the vocabulary", changed(eachID(func(float64) float64 { return -1 }))},
		"ids that are no ids":   {Wrong, "no chunk of an answer", changed(eachID(func(float64) float64 { return 1.5 }))},
		"too few numbers": {Wrong, "as many log-probabilities", changed(func(c map[string]any) {
			if l, ok := c["logprobs"].(map[string]any); ok {
				l["token_logprobs"] = []any{}
			}
		})},
		"too many tokens": {Wrong, "behind its end", changed(func(c map[string]any) {
			if ids, ok := c["tokens"].([]any); ok && len(ids) > 0 && ids[0] == float64(end) {
				c["tokens"] = []any{ids[0], ids[0], ids[0], ids[0], ids[0], ids[0], ids[0], ids[0]}
				l := c["logprobs"].(map[string]any)
				for _, column := range []string{"token_logprobs", "certainty"} {
					v := l[column].([]any)[0]
					l[column] = []any{v, v, v, v, v, v, v, v}
				}
			}
		})},
		"too few tokens":      {Wrong, "a choice ends with", changed(func(c map[string]any) { c["finish_reason"] = "stop" })},
		"a choice too many":   {Wrong, "there is a choice", changed(func(c map[string]any) { c["index"] = 1000 })},
		"a choice below zero": {Wrong, "there is a choice", changed(func(c map[string]any) { c["index"] = -1 })},
		"no tokens at all":    {Wrong, "ends without a token", changed(func(c map[string]any) { delete(c, "tokens") })},
		"nothing but an end": {Wrong, "do not end", answering(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", events)
			fmt.Fprint(w, "data: [DONE]\n\n")
		})},
		"no stream":            {Wrong, "not a stream of events", status(200, `{"choices":[]}`, "Content-Type", "application/json")},
		"no JSON":              {Wrong, "no chunk of an answer", status(200, "data: {\"choices\":[\n\n", "Content-Type", events)},
		"an endless line":      {Wrong, "an event has more than", answering(forever(events, "data: "+strings.Repeat("x", 1<<16)))},
		"endless short lines":  {Wrong, "an answer has more than", answering(forever(events, strings.Repeat(":"+strings.Repeat(" ", 2000)+"\n", 1<<6)))},
		"an error in a stream": {Failed, "the engine is tired", status(200, "data: {\"error\":{\"message\":\"the engine is tired\"}}\n\n", "Content-Type", events)},
		"half a stream":        {Failed, "breaks off", status(200, "data: {\"choices\":[]}\n\n", "Content-Type", events)},
		"a redirect":           {Refused, "where nobody is asked", status(307, "", "Location", other.URL+"/v1/completions")},
		"another status":       {Failed, "500", status(500, "it hurts")},
		"a full server":        {Busy, "429", status(429, `{"error":{"message":"later"}}`, "Retry-After", "100000")},
		"a key":                {Refused, "401", status(401, `{"error":{"message":"who are you?"}}`)},
		"no such model":        {Refused, "404", status(404, strings.Repeat("no ", 1<<20))},
		"another build":        {Refused, "another build", func(h http.Handler) http.Handler { return renamed(h) }},
		"silence":              {Slow, "no token for", answering(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })},
		"an empty stream": {Slow, "no token for", answering(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", events)
			for r.Context().Err() == nil {
				fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"logprobs\":null,\"finish_reason\":null}]}\n\n")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(20 * time.Millisecond): // keep-alive chunks
				}
			}
		})},
	} {
		meet := func(t *testing.T, serves func(*testing.T, func(http.Handler) http.Handler) *httptest.Server, asks func(*testing.T, Options, ...*httptest.Server) rig) {
			opt := DefaultOptions()
			opt.Check = 1
			honest, hostile := serves(t, nil), serves(t, c.wrap)
			r := asks(t, opt, honest, hostile)
			for _, written := range methods {
				if got, want := find(t, r.Model, written, 11), find(t, r.alone(), written, 11); got != want {
					t.Errorf("%s finds\n%s\nwant\n%s", written, got, want)
				}
			}
			st := r.pool.Stats()[hostile.URL]
			if log := r.log.String(); !strings.Contains(log, hostile.URL) || !strings.Contains(log, c.says) {
				t.Errorf("the log does not say %q of %s: %s", c.says, hostile.URL, log)
			}
			if c.outcome != "" && st.Requests[c.outcome] == 0 || c.outcome == "" && st.Mismatches == 0 || !st.Resting && c.outcome != Failed && c.outcome != Slow || st.Redone == 0 {
				t.Errorf("it is counted as %+v", st)
			}
			if h := r.pool.Stats()[honest.URL]; h.Mismatches > 0 || h.Requests[Wrong] > 0 || h.Jobs == 0 {
				t.Errorf("the honest worker is counted as %+v", h)
			}
		}
		t.Run(name, func(t *testing.T) {
			if c.outcome != Slow {
				meet(t, serves, asks)
				return
			}
			synctest.Test(t, func(t *testing.T) {
				n := network{}
				meet(t, n.serves, n.asks)
			})
		})
	}
	if n := elsewhere.Load(); n > 0 {
		t.Errorf("%d requests went where a worker sent them", n)
	}
}

// renamed answers with another fingerprint.
func renamed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
		at := bytes.Index(rec.Body.Bytes(), []byte(`"fp_`))
		print := rec.Body.Bytes()[at : at+15]
		_, _ = w.Write(bytes.ReplaceAll(rec.Body.Bytes(), bytes.Clone(print), []byte(`"fp_0000000000"`)))
	})
}

func TestAnEndedSearchEndsItsRequests(t *testing.T) {
	came, left := make(chan struct{}, 100), make(chan struct{}, 100)
	r := asks(t, DefaultOptions(), serves(t, answering(func(_ http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		<-r.Context().Done()
		left <- struct{}{}
	})))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-came
		cancel()
	}()
	plan, err := scaling.Parse(methods[0])
	if err != nil {
		t.Fatal(err)
	}
	for range (search.Search{Model: r.Model, Plan: plan}).Run(ctx, ttstest.Request(1, 1)) {
	}
	<-left
	if c := r.counts(); c.Requests[Left] != 1 || c.Redone > 0 || c.Resting || r.log.String() != "" {
		t.Errorf("%+v, log %s", c, r.log)
	}
}

func TestASlowWorkerIsHedged(t *testing.T) {
	slow := answering(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	opt := DefaultOptions()
	opt.Hedge = 50 * time.Millisecond
	for _, others := range []int{1, 0} {
		synctest.Test(t, func(t *testing.T) {
			n := network{}
			var servers []*httptest.Server
			for range others {
				servers = append(servers, n.serves(t, nil))
			}
			r := n.asks(t, opt, append(servers, n.serves(t, slow))...)
			for _, written := range methods {
				if got, want := find(t, r.Model, written, 2), find(t, r.alone(), written, 2); got != want {
					t.Errorf("hedged by %d others, %s finds\n%s\nwant\n%s", others, written, got, want)
				}
			}
			if c := r.counts(); c.Redone == 0 || c.Requests[Left] == 0 || c.Resting {
				t.Errorf("hedged by %d others: %+v", others, c)
			}
		})
	}
}

// paced is a source of work whose tokens take a known time here: on a fake clock they take none.
type paced struct {
	tts.Source
	pace time.Duration
}

func (p paced) Generate(ctx context.Context, w *tts.Work, done func(int, []tts.Run)) {
	w.Pace = p.pace
	p.Source.Generate(ctx, w, done)
}

// dripping is a server whose chunks come one at a time.
func dripping(every time.Duration) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
			for _, chunk := range bytes.SplitAfter(rec.Body.Bytes(), []byte("\n\n")) {
				select {
				case <-r.Context().Done():
					return
				case <-time.After(every):
				}
				if _, err := w.Write(chunk); err != nil {
					return
				}
				_ = http.NewResponseController(w).Flush()
			}
		})
	}
}

func TestAWorkerThatDripsIsLeftWhenItsTokensWouldLongHaveComeHere(t *testing.T) {
	const written = "self_consistency;n=8;early_stop=false"
	for _, c := range []struct {
		pace time.Duration // of a token here
		left bool
	}{{time.Millisecond, true}, {time.Second, false}} {
		synctest.Test(t, func(t *testing.T) {
			n := network{}
			opt := DefaultOptions()
			opt.Timeout = time.Second
			r := n.asks(t, opt, n.serves(t, dripping(opt.Timeout/4)))
			r.Source = paced{r.Source, c.pace}
			want := find(t, r.alone(), written, 2)
			began := time.Now()
			if got := find(t, r.Model, written, 2); got != want {
				t.Errorf("with a worker that drips it finds\n%s\nwant\n%s", got, want)
			}
			took := time.Since(began)
			if st := r.counts(); c.left && (took > 2*opt.Timeout || st.Requests[Slow] != 1 || st.Redone == 0 || !st.Resting) {
				t.Errorf("a search that takes nothing here waits %v for a worker that drips: %+v", took, st)
			} else if !c.left && (took < 2*opt.Timeout || st.Requests[Slow] > 0 || st.Jobs != 4 || st.Redone > 0) {
				t.Errorf("a worker as fast as this server is left after %v: %+v", took, st)
			}
		})
	}
}
