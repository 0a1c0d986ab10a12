package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/internal/clienttest"
	"github.com/lutra-lm/lutra/internal/sweep"
)

var monitoring = filepath.Join("..", "..", "deploy", "monitoring")

// panel is one of the dashboard's.
type panel struct {
	Title, Type string
	Targets     []struct{ Expr string }
}

// panels returns the dashboard's panels that show something.
func panels(t *testing.T) (list []panel) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(monitoring, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		if p.Type != "row" {
			list = append(list, p)
		}
	}
	if len(list) < 20 {
		t.Fatalf("the dashboard has %d panels", len(list))
	}
	return list
}

// query is a panel's, of all servers and models.
func (p *panel) query(i int) string {
	return strings.NewReplacer("$__rate_interval", "2m", "$instance", ".*", "$model", ".*").Replace(p.Targets[i].Expr)
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	sweep.Full(t)
	clienttest.Programs(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "rules.yml"}, {"check", "config", "prometheus.yml"}, {"test", "rules", "rules_test.yml"}} {
		cmd := exec.CommandContext(t.Context(), "promtool", args...)
		cmd.Dir = monitoring
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
}

// watching is a running Prometheus.
type watching struct{ base string }

// watches starts Prometheus with the configuration of deploy/monitoring, which looks at a server
// ten times a second.
func watches(t *testing.T, target string) watching {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"prometheus.yml", "rules.yml"} {
		text, err := os.ReadFile(filepath.Join(monitoring, name))
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.NewReplacer("lutra:8080", target, "_interval: 15s", "_interval: 100ms").Replace(string(text))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := "127.0.0.1:" + freePort(t)
	cmd := exec.CommandContext(t.Context(), "prometheus", "--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"),
		"--web.listen-address", at)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ready, ended, said := make(chan struct{}), make(chan struct{}), ""
	go func() {
		defer close(ended)
		found := false
		for lines := bufio.NewScanner(log); lines.Scan(); {
			said += lines.Text() + "\n"
			if !found && strings.Contains(lines.Text(), "Server is ready") {
				found = true
				close(ready)
			}
		}
	}()
	t.Cleanup(func() { // the test's context has ended
		<-ended
		_ = cmd.Wait() // by the signal
	})
	select {
	case <-ready:
	case <-ended:
		t.Fatalf("prometheus ends:\n%s", said)
	}
	return watching{"http://" + at}
}

// get asks Prometheus' API.
func (p watching) get(t *testing.T, path string, data any) {
	t.Helper()
	resp, err := http.Get(p.base + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %v %s", path, err, answer.Error)
	}
}

// values returns the present values of a query; not-a-number is no value.
func (p watching) values(t *testing.T, query string) (list []float64) {
	t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	p.get(t, "/api/v1/query?query="+url.QueryEscape(query), &data)
	for _, r := range data.Result {
		v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err == nil && v == v {
			list = append(list, v)
		}
	}
	return list
}

// until waits until a query's only value is one that is wanted.
func (p watching) until(t *testing.T, query string, wanted func(v float64) bool) float64 {
	t.Helper()
	tick := time.Tick(50 * time.Millisecond)
	var got []float64
	for range 1200 {
		if got = p.values(t, query); len(got) == 1 && wanted(got[0]) {
			return got[0]
		}
		<-tick
	}
	t.Fatalf("%s stays at %v", query, got)
	return 0
}

func TestEveryPanelShowsWhatAServerDoes(t *testing.T) {
	sweep.Full(t)
	if testing.Short() {
		t.Skip("starts Prometheus")
	}
	clienttest.Programs(t, "prometheus")
	lutra := serving(t, "--addr", "127.0.0.1:0", "--model", "lutra-tiny-s")
	chat := func(more string) {
		t.Helper()
		body := `{"model":"lutra-tiny-s","messages":[{"role":"user","content":"What is 12 * 7?"}]` + more + `}`
		resp, err := http.Post(lutra.base+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", more, resp.Status)
		}
	}
	const search = `,"test_time_scaling":{"method":"self_consistency","n":4}`
	chat("")
	chat(search) // the first of each series is there before it is counted
	p := watches(t, strings.TrimPrefix(lutra.base, "http://"))
	p.until(t, `up{job="lutra"}`, func(v float64) bool { return v == 1 })
	const requests = `sum(lutra_http_requests_total{path="/v1/chat/completions",code="200"})`
	tokens := p.until(t, `sum(lutra_generation_tokens_total)`, func(v float64) bool { return v > 0 })
	p.until(t, requests, func(v float64) bool { return v == 2 })
	const n = 20
	for range n - 1 {
		chat("")
	}
	chat(search)
	p.until(t, requests, func(v float64) bool { return v == 2+n })

	// Figures change with the requests: a rate times its window is the number of requests, except what Prometheus adds
	// at the ends of its samples.
	near := func(query string, want float64) {
		t.Helper()
		p.until(t, query, func(v float64) bool { return v >= 0.9*want && v <= 1.6*want })
	}
	near(`120 * sum(rate(lutra_http_requests_total{path="/v1/chat/completions"}[2m]))`, n)
	near(`sum(increase(lutra_request_success_total[2m]))`, n)
	near(`sum(increase(lutra_search_requests_total{method="self_consistency"}[2m]))`, 1)
	if now := p.until(t, `sum(lutra_generation_tokens_total)`, func(v float64) bool { return v > tokens }); now < tokens+n {
		t.Errorf("%d answers of a token at least have raised the tokens from %v to %v", n, tokens, now)
	}
	for _, panel := range panels(t) {
		for i := range panel.Targets {
			if len(p.values(t, panel.query(i))) == 0 {
				t.Errorf("%s: there are no data of %s", panel.Title, panel.query(i))
			}
		}
	}

	var rules struct {
		Groups []struct {
			Rules []struct{ Name, Health, State, LastError string }
		}
	}
	state := func(name string) string {
		p.get(t, "/api/v1/rules", &rules)
		states := map[string]string{}
		for _, r := range rules.Groups[0].Rules {
			if states[r.Name] = r.State; r.Health != "ok" && r.Health != "unknown" {
				t.Errorf("alert %s: %s %s", r.Name, r.Health, r.LastError)
			}
		}
		if len(states) < 10 || !slices.Contains([]string{"inactive", "pending", "firing"}, states[name]) {
			t.Fatalf("%d alerts, %s is %q", len(states), name, states[name])
		}
		return states[name]
	}
	if s := state("LutraDown"); s != "inactive" {
		t.Errorf("LutraDown is %s while the server runs", s)
	}
	if err := lutra.stop(); err != nil {
		t.Fatal(err)
	}
	p.until(t, `up{job="lutra"}`, func(v float64) bool { return v == 0 })
	for tick := time.Tick(50 * time.Millisecond); state("LutraDown") != "pending"; {
		<-tick
	}
}
