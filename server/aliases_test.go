package server

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/toy"
)

// families returns the metrics of an exposition with the labels of their series,
// le apart, and the lines of values by name.
func families(t *testing.T, exposition string) (labels map[string][]string, values map[string][]string) {
	t.Helper()
	labels, values = map[string][]string{}, map[string][]string{}
	name := ""
	series := regexp.MustCompile(`^([a-zA-Z0-9_:]+)(?:\{(.*)\})? (.+)$`)
	label := regexp.MustCompile(`([a-z_]+)="[^"]*"`)
	for line := range strings.Lines(exposition) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, _, _ = strings.Cut(rest, " ")
			labels[name] = nil
			continue
		}
		m := series.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		var names []string
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if l[1] != "le" {
				names = append(names, l[1])
			}
		}
		labels[name] = names
		values[name] = append(values[name], strings.TrimPrefix(m[1], name)+m[3])
	}
	return labels, values
}

func TestVLLMsNamesHaveItsLabelsAndOurValues(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	f.post("/v1/chat/completions", chatBody(`,"n":2,"max_tokens":9,"ignore_eos":true`))
	_, _, answer := f.do("GET", "/metrics", nil)
	labels, values := families(t, string(answer))
	aliases := map[string]string{}
	for _, help := range regexp.MustCompile(`(?m)^# HELP (vllm:\S+) Alias of (\S+)\.$`).FindAllStringSubmatch(string(answer), -1) {
		aliases[help[1]] = help[2]
	}
	// As vLLM's documentation of production metrics lists them.
	both := []string{"engine", "model_name"}
	for name, want := range map[string][]string{
		"vllm:num_requests_running": both, "vllm:num_requests_waiting": both, "vllm:kv_cache_usage_perc": both, "vllm:gpu_cache_usage_perc": both,
		"vllm:prefix_cache_queries_total": both, "vllm:prefix_cache_hits_total": both, "vllm:num_preemptions_total": both,
		"vllm:prompt_tokens_total": both, "vllm:generation_tokens_total": both, "vllm:iteration_tokens_total": both,
		"vllm:request_success_total": {"engine", "finished_reason", "model_name"},
		"vllm:request_prompt_tokens": both, "vllm:request_generation_tokens": both, "vllm:request_max_num_generation_tokens": both,
		"vllm:request_params_n": both, "vllm:request_params_max_tokens": both,
		"vllm:time_to_first_token_seconds": both, "vllm:inter_token_latency_seconds": both, "vllm:time_per_output_token_seconds": both,
		"vllm:request_time_per_output_token_seconds": both, "vllm:e2e_request_latency_seconds": both, "vllm:request_queue_time_seconds": both,
		"vllm:request_inference_time_seconds": both, "vllm:request_prefill_time_seconds": both, "vllm:request_decode_time_seconds": both,
		"vllm:spec_decode_num_draft_tokens_total": both, "vllm:spec_decode_num_accepted_tokens_total": both,
		"vllm:cache_config_info": {"block_size", "engine", "model_name", "num_gpu_blocks"},
	} {
		if got, ok := labels[name]; !ok || !slices.Equal(got, want) {
			t.Errorf("%s has the labels %v (there: %v), want %v", name, got, ok, want)
		}
		if aliases[name] == "" {
			t.Errorf("%s is no alias", name)
		}
	}
	for alias, name := range aliases {
		if len(values[alias]) == 0 || !slices.Equal(values[alias], values[name]) {
			t.Errorf("%s is %v, %s is %v", alias, values[alias], name, values[name])
		}
	}
	all := string(answer)
	for name, want := range map[string]float64{
		"vllm:request_params_n_sum": 2, "vllm:request_params_max_tokens_sum": 9, "vllm:request_max_num_generation_tokens_sum": 9,
		"vllm:request_generation_tokens_sum": 18, "vllm:inter_token_latency_seconds_count": 16, "vllm:request_success_total": 1,
	} {
		if got := metric(t, all, name, ""); got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
}

func TestTheDocumentationListsTheMetrics(t *testing.T) {
	raw, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, name := range regexp.MustCompile("`((?:lutra_|vllm:)[a-z_0-9]+)`").FindAllStringSubmatch(string(raw), -1) {
		named[name[1]] = true
	}
	f := real(t, func(o *Options) { o.APIKeys = []string{"secret"} }) // keys have metrics too
	for _, more := range []string{`,"test_time_scaling":"sc2"`, `,"model":"lutra-tiny-s"`} {
		if status, _, answer := f.do("POST", "/v1/chat/completions", strings.NewReader(question(t, 0, more)), "Authorization", "Bearer secret"); status != http.StatusOK {
			t.Errorf("%s: %d %s", more, status, answer)
		}
	}
	_, _, answer := f.do("GET", "/metrics", nil)
	labels, _ := families(t, string(answer))
	for name := range labels {
		if !named[name] && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("docs/metrics.md does not name %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if _, ok := labels[name]; !ok && !strings.HasPrefix(name, "lutra_kernel_") && !strings.HasPrefix(name, "lutra_device_") && !strings.HasPrefix(name, "lutra_expert") && !strings.HasPrefix(name, "lutra_format_cache_") && !strings.HasPrefix(name, "lutra_kv_event_") && !strings.HasPrefix(name, "lutra_kv_disk_") && !strings.HasPrefix(name, "lutra_search_worker_") && name != "lutra_tile_fill_ratio" && name != "lutra_batch_tokens" && name != "vllm:iteration_tokens_total" && name != "lutra_" {
			t.Errorf("docs/metrics.md names %s, which there is not", name)
		}
	}
}
