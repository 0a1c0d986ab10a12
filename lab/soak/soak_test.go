package soak

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestOnlyWholeAnswersAndErrorsWithWordsAreGood(t *testing.T) {
	for _, c := range []struct {
		kind, body string
		status     int
		want       end
	}{
		{"chat", `{"choices":[]}`, 200, answered},
		{"chat", `{"choices":[`, 200, faulty},
		{"chat", `{"error":{"message":"too many"}}`, 429, refused},
		{"chat", `{"error":{"message":"a bug"}}`, 500, faulty},
		{"chat", `no`, 404, faulty},
		{"stream", "data: {\"choices\":[]}\n\ndata: [DONE]\n\n", 200, answered},
		{"stream", "data: {\"choices\":[]}\n\n", 200, faulty},
		{"stream", "data: {\"error\":{\"message\":\"a bug\"}}\n\ndata: [DONE]\n\n", 200, faulty},
		{"anthropic stream", "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", 200, answered},
		{"anthropic stream", "event: ping\ndata: {\"type\":\"ping\"}\n\n", 200, faulty},
		{"ollama", "{\"done\":false}\n{\"done\":true}\n", 200, answered},
		{"ollama", "{\"done\":false}\n", 200, faulty},
	} {
		if got, err := judge(named(c.kind), c.status, []byte(c.body)); got != c.want || (err != nil) != (c.want == faulty) {
			t.Errorf("%s %d %q: %v, %v, want %v", c.kind, c.status, c.body, got, err, c.want)
		}
	}
}

func TestWhatNeverEndsAndWhatIsBadButAnsweredAreFaults(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // before, nobody notices that the client goes
		if r.Header.Get("Authorization") == "Bearer "+nobody {
			_, _ = w.Write([]byte(`{"choices":[]}`))
			return
		}
		<-r.Context().Done()
	}))
	defer s.Close()
	for _, k := range []struct {
		name, want string
		timeout    time.Duration
	}{{"unknown key", "what is bad was answered", time.Hour}, {"chat", "it has not ended within", 50 * time.Millisecond}} {
		c := newClients(s.URL, 1, k.timeout)
		e, err := c.do(context.Background(), named(k.name), rand.New(rand.NewPCG(1, 1)))
		if e != faulty || err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v, %v, want %q", k.name, e, err, k.want)
		}
		c.close()
	}
}

func TestMemoryThatGrowsIsAFault(t *testing.T) {
	var r Report
	for i := range 100 {
		r.Samples = append(r.Samples, Sample{Requests: 30 * i, Resident: 100 + float64(i)/2})
	}
	if grown := r.grown(); grown < growth {
		t.Errorf("grown = %.2f", grown)
	}
	few := Report{Samples: slices.Clone(r.Samples)}
	for i := range few.Samples {
		few.Samples[i].Requests = 3 * i
	}
	if grown := few.grown(); grown > growth {
		t.Errorf("of few requests grown = %.2f", grown)
	}
	for i := range r.Samples {
		r.Samples[i].Resident = 100 + float64(i%7)
	}
	if grown := r.grown(); grown > growth {
		t.Errorf("of flat memory grown = %.2f", grown)
	}
}

func TestAReportIsDrawnAndTabulated(t *testing.T) {
	r := Report{Kinds: []Count{{Kind: "chat"}}, Took: time.Second, Samples: []Sample{{Requests: 10, Resident: 1e8, Files: 9}, {Requests: 2000, Resident: 1e8, Files: 9}}}
	r.count(named("chat"), answered, 0, nil)
	var csv, svg, text strings.Builder
	if err := r.WriteCSV(&csv); err != nil || strings.Count(csv.String(), "\n") != 3 || !strings.Contains(csv.String(), "\n0,2000,1e+08,") {
		t.Errorf("%v\n%s", err, &csv)
	}
	if err := r.WriteSVG(&svg); err != nil || !strings.Contains(svg.String(), "file descriptors") {
		t.Errorf("%v\n%s", err, &svg)
	}
	if err := r.Print(&text); err != nil || !strings.Contains(text.String(), "1 requests/s") {
		t.Errorf("%v\n%s", err, &text)
	}
}
