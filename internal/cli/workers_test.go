package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
)

// found is the result of a search over HTTP: the text, and the reports of the choice, its rivals and their tree.
type found struct{ text, choice, search, usage string }

// searchFor asks a server for a search, and calls begun with its first report.
func searchFor(t *testing.T, addr, plan string, begun func()) (out found) {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"messages": []map[string]string{say("user", question(5))}, "seed": 11, "max_tokens": 120, "stream": true,
		"stream_options": map[string]bool{"include_usage": true}, "test_time_scaling": plan + ";include=candidates,steps,tree",
	})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s: %s", resp.Status, said)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if data == "[DONE]" {
			return out
		}
		var e struct {
			Choices []struct {
				Delta  struct{ Content string }
				Finish *string         `json:"finish_reason"`
				Search json.RawMessage `json:"test_time_scaling"`
			}
			Search json.RawMessage `json:"test_time_scaling"`
			Usage  *struct {
				Completion int                                       `json:"completion_tokens"`
				Search     struct{ Chosen, Discarded, Verifier int } `json:"test_time_scaling"`
			}
		}
		if ok && json.Unmarshal([]byte(data), &e) != nil {
			t.Fatalf("event %s", data)
		}
		if e.Usage != nil {
			u, _ := json.Marshal(e.Usage)
			out.usage = string(u)
		}
		for _, c := range e.Choices {
			out.text += c.Delta.Content
			if c.Finish != nil {
				out.choice, out.search = string(c.Search), string(e.Search)
			} else if e.Search != nil && begun != nil {
				begun()
				begun = nil
			}
		}
	}
	t.Fatalf("the stream breaks off: %v", lines.Err())
	return out
}

// workerMetric is the sum of a worker's series whose names and labels have these parts.
func workerMetric(t *testing.T, addr string, parts ...string) (sum float64) {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); err == nil && !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(name, p) }) {
			sum += v
		}
	}
	return sum
}

func TestASearchOverServersIsThatOfOneThoughAWorkerIsKilled(t *testing.T) {
	sweep.Full(t)
	if testing.Short() {
		t.Skip("starts servers")
	}
	const servers = 4
	addrs := make([]string, servers)
	for i := range addrs {
		addrs[i] = "127.0.0.1:" + freePort(t)
	}
	urls := "http://" + strings.Join(addrs, ",http://") // all have one configuration, and leave themselves out
	start := func(i int) replica {
		return startReplica(t, addrs[i], "LUTRA_SEARCH_WORKERS="+urls, "LUTRA_SEARCH_WORKER_CHECK=0.2", "LUTRA_SERVER_API_KEYS=", "LUTRA_THREADS=1")
	}
	list := make([]replica, servers)
	for i := range list {
		list[i] = start(i)
	}
	alone := startReplica(t, "127.0.0.1:0", "LUTRA_THREADS=1")
	n := strconv.Itoa(sweep.Of(t, 16, 64))
	redone := func() float64 { return workerMetric(t, addrs[0], "lutra_search_worker_redone_total") }
	plans := []string{"best_of_n;early_stop=false;n=" + n, "self_consistency;early_stop=false;n=" + n, "beam_search;width=4;n=" + n, "dvts;width=4;n=" + n}
	for i := 0; i < len(plans) || i < 4*len(plans) && redone() == 0; i++ { // a kill may come after what the worker had to do
		plan := plans[i%len(plans)]
		want := searchFor(t, alone.addr, plan, nil)
		if got := searchFor(t, addrs[0], plan, nil); got != want {
			t.Errorf("%s over %d servers is\n%+v\nover one\n%+v", plan, servers, got, want)
		}
		victim := 1 + i%(servers-1)
		got := searchFor(t, addrs[0], plan, func() { list[victim].signal(t, os.Kill) })
		if got != want {
			t.Errorf("%s, with a worker killed, is\n%+v\nwithout\n%+v", plan, got, want)
		}
		list[victim].ended()
		list[victim] = start(victim)
	}
	if redone() == 0 {
		t.Error("no candidate was done again: nobody was killed in the middle")
	}
	if v := workerMetric(t, addrs[0], "lutra_search_worker_mismatches_total"); v > 0 {
		t.Errorf("%v candidates were wrong", v)
	}
	for _, a := range addrs[1:] {
		if workerMetric(t, addrs[0], "lutra_search_worker_tokens_total", a) == 0 {
			t.Errorf("%s has generated nothing", a)
		}
	}
	if workerMetric(t, addrs[0], "lutra_search_worker_requests_total", addrs[0]) > 0 {
		t.Error("a server asks itself")
	}
	t.Logf("n = %s, searches over %d servers, killed in turn: %v candidates generated by workers, %v of them done again, %v checked", n, servers,
		workerMetric(t, addrs[0], "lutra_search_worker_candidates_total"), redone(), workerMetric(t, addrs[0], "lutra_search_worker_checks_total"))
}

func TestEveryMetricOfWorkersIsDocumented(t *testing.T) {
	gone := "127.0.0.1:" + freePort(t)
	t.Setenv("LUTRA_SEARCH_WORKERS", "http://"+gone)
	s := serving(t, "--model", "lutra-tiny-s", "--addr", "127.0.0.1:0")
	names := func(text []byte) []string {
		list := regexp.MustCompile(`lutra_search_worker_\w+`).FindAllString(string(text), -1)
		slices.Sort(list)
		return slices.Compact(list)
	}
	resp, err := http.Get(s.base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	shown, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../docs/metrics.md")
	if got, want := names(shown), names(docs); err != nil || !slices.Equal(got, want) || len(got) != 7 {
		t.Errorf("the metrics are %q, documented are %q, %v", got, want, err)
	}
}
