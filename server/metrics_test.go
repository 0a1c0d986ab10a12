package server

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/toy"
)

// metric reads one value of an exposition; labels may be a part of them.
func metric(t *testing.T, exposition, name, labels string) float64 {
	t.Helper()
	for line := range strings.Lines(exposition) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest[0] != '{' && rest[0] != ' ' || !strings.Contains(rest, labels) {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	t.Errorf("no metric %s{%s}", name, labels)
	return 0
}

func TestMetricsAddUpToWhatWasServed(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	prompt, completion := 0, 0
	for i := range 3 {
		_, _, answer := f.post("/v1/chat/completions", chatBody(fmt.Sprintf(`,"n":2,"max_tokens":%d,"ignore_eos":true`, 5+i)))
		u := wholeChat(t, answer, 2).Usage
		prompt += u.Prompt
		completion += u.Completion
	}
	f.post("/v1/chat/completions", `{}`)
	f.do("GET", "/made/up/path", nil)
	_, _, answer := f.do("GET", "/metrics", nil)
	all := string(answer)
	for _, c := range []struct {
		name, labels string
		want         float64
	}{
		{"lutra_request_success_total", `finished_reason="length",model_name="toy"`, 3},
		{"lutra_http_requests_total", `code="200",path="/v1/chat/completions"`, 3},
		{"lutra_http_requests_total", `code="400",path="/v1/chat/completions"`, 1},
		{"lutra_http_requests_total", `code="404",path="other"`, 1},
		{"lutra_request_prompt_tokens_sum", "", float64(prompt)},
		{"lutra_request_generation_tokens_sum", "", float64(completion)},
		{"lutra_generation_tokens_total", "", float64(completion)},
		{"lutra_time_to_first_token_seconds_count", "", 3},
		{"lutra_time_per_output_token_seconds_count", "", 3},
		{"lutra_e2e_request_latency_seconds_count", "", 3},
		{"lutra_request_queue_time_seconds_count", "", 3},
		{"lutra_request_prefill_time_seconds_count", "", 3},
		{"lutra_request_decode_time_seconds_count", "", 3},
		{"lutra_num_preemptions_total", "", 0},
		{"lutra_num_requests_waiting", "", 0},
		{"vllm:num_requests_waiting", `model_name="toy"`, 0},
	} {
		if got := metric(t, all, c.name, c.labels); got != c.want {
			t.Errorf("%s{%s} = %v, want %v", c.name, c.labels, got, c.want)
		}
	}
	if steps := metric(t, all, "lutra_engine_steps_total", ""); metric(t, all, "lutra_batch_tokens_count", "") > steps || steps == 0 {
		t.Errorf("%v steps, %v of them observed", steps, metric(t, all, "lutra_batch_tokens_count", ""))
	}
	for _, name := range []string{"vllm:num_requests_running", "vllm:kv_cache_usage_perc", "lutra_kv_cache_usage_ratio", "lutra_num_requests_running",
		"lutra_prefix_cache_queries_total", "lutra_prefix_cache_hits_total", "lutra_prompt_tokens_total", "lutra_tile_fill_ratio"} {
		if v := metric(t, all, name, ""); v < 0 {
			t.Errorf("%s = %v", name, v)
		}
	}
	line := regexp.MustCompile(`^(# (HELP|TYPE) .+|[a-zA-Z_:][a-zA-Z0-9_:]*(\{.*\})? [-+.eE0-9a-zA-Z]+)\n$`)
	for l := range strings.Lines(all) {
		if !line.MatchString(l) {
			t.Errorf("line %q is no exposition", l)
		}
	}
}

func TestDebugStateShowsTheEngines(t *testing.T) {
	f := start(t, &toy.Model{}, func(o *Options) { o.Debug = true })
	status, _, answer := f.do("GET", "/debug/state", nil)
	if status != 200 || !strings.Contains(string(answer), `"model":"toy"`) || !strings.Contains(string(answer), `"Blocks":512`) {
		t.Errorf("/debug/state: %d %s", status, answer)
	}
}

// The engine is held in the midst of a request of three choices.
func TestGaugesOfLoadCountSequencesOrRequests(t *testing.T) {
	for requests, want := range map[bool]float64{false: 3, true: 1} {
		held, scraped := make(chan struct{}), make(chan struct{})
		steps := 0
		f := start(t, &toy.Model{Before: func(*models.Batch) error {
			if steps++; steps == 6 {
				close(held)
				<-scraped
			}
			return nil
		}}, func(o *Options) { o.CountRequests = requests })
		answered := make(chan int)
		go func() {
			status, _, _ := f.post("/v1/chat/completions", chatBody(`,"n":3,"max_tokens":30,"ignore_eos":true`))
			answered <- status
		}()
		<-held
		_, _, answer := f.do("GET", "/metrics", nil)
		close(scraped)
		got := metric(t, string(answer), "vllm:num_requests_running", `model_name="toy"`) + metric(t, string(answer), "vllm:num_requests_waiting", `model_name="toy"`)
		if status := <-answered; got != want || status != 200 {
			t.Errorf("with count_requests %v a request of three choices counts %v, want %v (status %d)", requests, got, want, status)
		}
	}
}
