package metrics

import (
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lutra-lm/lutra/batcher"
)

// Engines yields the engines by the names of their models. Their counters are read
// at each scrape.
type Engines func(yield func(model string, e *batcher.Engine) bool)

// engineMetric is a value of batcher.Stats.
type engineMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*batcher.Stats) float64
}

var engineMetrics = func() []engineMetric {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{modelLabel}, nil)
	}
	gauge := func(name, help string, of func(*batcher.Stats) float64) engineMetric {
		return engineMetric{desc(name, help), prometheus.GaugeValue, of}
	}
	counter := func(name, help string, of func(*batcher.Stats) int64) engineMetric {
		return engineMetric{desc(name, help), prometheus.CounterValue, func(st *batcher.Stats) float64 { return float64(of(st)) }}
	}
	var drafts []engineMetric
	for k := range batcher.DraftKinds {
		for fate, of := range map[string]func(*batcher.Stats) int64{
			"accepted": func(st *batcher.Stats) int64 { return st.DraftAccepted[k] },
			"rejected": func(st *batcher.Stats) int64 { return st.DraftTokens[k] - st.DraftAccepted[k] },
		} {
			m := counter("", "", of)
			m.desc = prometheus.NewDesc("lutra_draft_tokens_total", "Draft tokens, by drafter and whether sampling accepted them.",
				[]string{modelLabel}, prometheus.Labels{"drafter": k.String(), "fate": fate})
			drafts = append(drafts, m)
		}
	}
	sum := func(of func(*batcher.Stats) *[batcher.DraftKinds]int64) func(*batcher.Stats) int64 {
		return func(st *batcher.Stats) (n int64) {
			for _, v := range of(st) {
				n += v
			}
			return n
		}
	}
	usage := func(st *batcher.Stats) float64 {
		if st.Blocks == 0 {
			return 0
		}
		return float64(st.Used) / float64(st.Blocks)
	}
	held := func(st *batcher.Stats) float64 {
		if st.States == 0 {
			return 0
		}
		return float64(st.Held) / float64(st.States)
	}
	return append(drafts,
		gauge("lutra_kv_cache_usage_ratio", "Share of the KV blocks that sequences hold.", usage),
		gauge("lutra_recurrent_state_usage_ratio", "Share of the recurrent states that sequences hold; 0 for models without.", held),
		gauge("lutra_recurrent_checkpoints", "Recurrent states kept at the ends of prefixes.", func(st *batcher.Stats) float64 { return float64(st.Kept) }),
		counter("lutra_prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.", func(st *batcher.Stats) int64 { return st.PrefixQueries }),
		counter("lutra_prefix_cache_hits_total", "Prompt tokens found in the prefix cache.", func(st *batcher.Stats) int64 { return st.PrefixHits }),
		counter("lutra_num_preemptions_total", "Running sequences that lost their KV blocks.", func(st *batcher.Stats) int64 { return st.Preemptions }),
		counter("lutra_prompt_tokens_total", "Prompt tokens computed.", func(st *batcher.Stats) int64 { return st.PromptTokens }),
		counter("lutra_generation_tokens_total", "Tokens generated.", func(st *batcher.Stats) int64 { return st.GeneratedTokens }),
		counter("lutra_forced_tokens_total", "Generated tokens that were forced, not sampled.", func(st *batcher.Stats) int64 { return st.ForcedTokens }),
		counter("lutra_engine_steps_total", "Engine steps.", func(st *batcher.Stats) int64 { return st.Steps }),
		counter("lutra_engine_tokens_total", "Tokens of all engine steps.", func(st *batcher.Stats) int64 { return st.BatchTokens }),
		counter("lutra_engine_lanes_total", "Tile lanes of all engine steps, whether they carried a token or not.", func(st *batcher.Stats) int64 { return st.BatchLanes }),
		engineMetric{desc("lutra_draft_seconds_total", "Time of engine steps spent on drafting."), prometheus.CounterValue,
			func(st *batcher.Stats) float64 { return st.DraftTime.Seconds() }},
		counter("lutra_spec_decode_num_draft_tokens_total", "Draft tokens.", sum(func(st *batcher.Stats) *[batcher.DraftKinds]int64 { return &st.DraftTokens })),
		counter("lutra_spec_decode_num_accepted_tokens_total", "Draft tokens that sampling accepted.", sum(func(st *batcher.Stats) *[batcher.DraftKinds]int64 { return &st.DraftAccepted })),
		counter("lutra_engine_spared_tokens_total", "Tokens not computed because another sequence's were the same.", func(st *batcher.Stats) int64 { return st.SavedTokens }),
	)
}()

var (
	gapsDesc = prometheus.NewDesc("lutra_inter_token_latency_seconds", "Time between the tokens of streams, one step after another.", []string{modelLabel}, nil)
	poolDesc = prometheus.NewDesc("lutra_cache_config_info", "Size of the KV cache: blocks, and tokens of one.", []string{modelLabel, "block_size", "num_gpu_blocks"}, nil)

	// adaptersDesc's value is the time, as vLLM has it: of several series the largest counts.
	adaptersDesc = prometheus.NewDesc("lutra_lora_requests_info", "Adapters of the requests being computed and waiting, and how many there may be; its value is the time.",
		[]string{modelLabel, "running_lora_adapters", "waiting_lora_adapters", "max_lora"}, nil)

	// modelFailedDesc is 0 or 1.
	modelFailedDesc = prometheus.NewDesc("lutra_model_failed", "Whether the model has failed and answers no more requests.", []string{modelLabel}, nil)
)

// gaps returns the times between tokens as a histogram.
func gaps(model string, g *batcher.Gaps) prometheus.Metric {
	count, buckets := uint64(0), map[float64]uint64{}
	for i, bound := range batcher.GapBounds() {
		count += uint64(g.Counts[i])
		buckets[bound.Seconds()] = count
	}
	count += uint64(g.Counts[len(g.Counts)-1])
	return prometheus.MustNewConstHistogram(gapsDesc, count, g.Sum.Seconds(), buckets, model)
}

// load are the gauges of what an engine has to do, which count sequences or requests.
var load = func() (of [2][]engineMetric) {
	gauge := func(name, help string, value func(*batcher.Stats) int) engineMetric {
		return engineMetric{prometheus.NewDesc(name, help, []string{modelLabel}, nil), prometheus.GaugeValue, func(st *batcher.Stats) float64 { return float64(value(st)) }}
	}
	const running, waiting = "lutra_num_requests_running", "lutra_num_requests_waiting"
	return [2][]engineMetric{{
		gauge(running, "Sequences being computed.", func(st *batcher.Stats) int { return st.Running }),
		gauge(waiting, "Sequences waiting to be computed.", func(st *batcher.Stats) int { return st.Waiting }),
	}, {
		gauge(running, "Requests being computed.", func(st *batcher.Stats) int { return st.RunningRequests }),
		gauge(waiting, "Requests waiting to be computed.", func(st *batcher.Stats) int { return st.WaitingRequests }),
	}}
}()

// engineCollector reads engines at each scrape.
type engineCollector struct {
	engines  Engines
	adapters func(model string) int
	metrics  []engineMetric
}

// newEngineCollector counts the requests of engines in gauges of load, or their sequences. Models
// have adapters.
func newEngineCollector(engines Engines, adapters func(model string) int, requests bool) engineCollector {
	which := load[0]
	if requests {
		which = load[1]
	}
	return engineCollector{engines, adapters, append(which[:len(which):len(which)], engineMetrics...)}
}

// Describe implements prometheus.Collector.
func (c engineCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- gapsDesc
	ch <- poolDesc
	ch <- modelFailedDesc
	ch <- adaptersDesc
	for i := range c.metrics {
		ch <- c.metrics[i].desc
	}
}

// Collect implements prometheus.Collector.
func (c engineCollector) Collect(ch chan<- prometheus.Metric) {
	for model, engine := range c.engines {
		failed := 0.0
		if engine.Failed() != nil {
			failed = 1
		}
		ch <- prometheus.MustNewConstMetric(modelFailedDesc, prometheus.GaugeValue, failed, model)
		st := engine.Stats()
		ch <- gaps(model, &st.Gaps)
		ch <- prometheus.MustNewConstMetric(poolDesc, prometheus.GaugeValue, 1, model, strconv.Itoa(st.BlockLen), strconv.Itoa(st.Blocks))
		ch <- prometheus.MustNewConstMetric(adaptersDesc, prometheus.GaugeValue, float64(time.Now().UnixMilli())/1e3, model, strings.Join(st.RunningAdapters, ","), strings.Join(st.WaitingAdapters, ","), strconv.Itoa(c.adapters(model)))
		for _, e := range c.metrics {
			ch <- prometheus.MustNewConstMetric(e.desc, e.kind, e.of(&st), model)
		}
	}
}

const modelLabel = "model_name"
