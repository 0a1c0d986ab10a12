package metrics

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// vllmNames maps the names of vLLM's metrics, which dashboards and the endpoint
// picker of the Gateway API Inference Extension read, to ours of the same meaning,
// unit and labels. Where vLLM has renamed one, both names are listed.
var vllmNames = map[string]string{
	"vllm:cache_config_info":                     "lutra_cache_config_info",
	"vllm:e2e_request_latency_seconds":           "lutra_e2e_request_latency_seconds",
	"vllm:generation_tokens_total":               "lutra_generation_tokens_total",
	"vllm:gpu_cache_usage_perc":                  "lutra_kv_cache_usage_ratio",
	"vllm:inter_token_latency_seconds":           "lutra_inter_token_latency_seconds",
	"vllm:iteration_tokens_total":                "lutra_batch_tokens",
	"vllm:kv_cache_usage_perc":                   "lutra_kv_cache_usage_ratio",
	"vllm:lora_requests_info":                    "lutra_lora_requests_info",
	"vllm:num_preemptions_total":                 "lutra_num_preemptions_total",
	"vllm:num_requests_running":                  "lutra_num_requests_running",
	"vllm:num_requests_waiting":                  "lutra_num_requests_waiting",
	"vllm:prefix_cache_hits_total":               "lutra_prefix_cache_hits_total",
	"vllm:prefix_cache_queries_total":            "lutra_prefix_cache_queries_total",
	"vllm:prompt_tokens_total":                   "lutra_prompt_tokens_total",
	"vllm:request_decode_time_seconds":           "lutra_request_decode_time_seconds",
	"vllm:request_generation_tokens":             "lutra_request_generation_tokens",
	"vllm:request_inference_time_seconds":        "lutra_request_inference_time_seconds",
	"vllm:request_max_num_generation_tokens":     "lutra_request_max_num_generation_tokens",
	"vllm:request_params_max_tokens":             "lutra_request_params_max_tokens",
	"vllm:request_params_n":                      "lutra_request_params_n",
	"vllm:request_prefill_time_seconds":          "lutra_request_prefill_time_seconds",
	"vllm:request_prompt_tokens":                 "lutra_request_prompt_tokens",
	"vllm:request_queue_time_seconds":            "lutra_request_queue_time_seconds",
	"vllm:request_success_total":                 "lutra_request_success_total",
	"vllm:request_time_per_output_token_seconds": "lutra_time_per_output_token_seconds",
	"vllm:spec_decode_num_accepted_tokens_total": "lutra_spec_decode_num_accepted_tokens_total",
	"vllm:spec_decode_num_draft_tokens_total":    "lutra_spec_decode_num_draft_tokens_total",
	"vllm:time_per_output_token_seconds":         "lutra_inter_token_latency_seconds",
	"vllm:time_to_first_token_seconds":           "lutra_time_to_first_token_seconds",
}

// withAliases gathers metrics a second time under vLLM's names, with its label of
// the engine.
type withAliases struct{ prometheus.Gatherer }

// Gather implements prometheus.Gatherer.
func (a withAliases) Gather() ([]*dto.MetricFamily, error) {
	families, err := a.Gatherer.Gather()
	known := map[string]*dto.MetricFamily{}
	for _, f := range families {
		known[f.GetName()] = f
	}
	for alias, name := range vllmNames {
		if f := known[name]; f != nil {
			families = append(families, renamed(f, alias))
		}
	}
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return families, err
}

// renamed returns f under another name, of engine 0.
func renamed(f *dto.MetricFamily, name string) *dto.MetricFamily {
	out := &dto.MetricFamily{Name: &name, Help: new("Alias of " + f.GetName() + "."), Type: f.Type}
	for _, m := range f.Metric {
		labels := append(slices.Clone(m.Label), &dto.LabelPair{Name: new("engine"), Value: new("0")})
		slices.SortFunc(labels, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
		out.Metric = append(out.Metric, &dto.Metric{Label: labels, Gauge: m.Gauge, Counter: m.Counter, Histogram: m.Histogram})
	}
	return out
}
