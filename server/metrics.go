package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/tts"
)

// metrics is what /metrics shows: histograms that finished requests and engine
// steps feed, and the engines' own counters, read when they are scraped.
// Meanings and buckets are vLLM's.
type metrics struct {
	registry *prometheus.Registry

	http       *prometheus.CounterVec // path, code
	success    *prometheus.CounterVec // model_name, finished_reason
	ttft       *prometheus.HistogramVec
	tpot       *prometheus.HistogramVec
	e2e        *prometheus.HistogramVec
	queue      *prometheus.HistogramVec
	prefill    *prometheus.HistogramVec
	decode     *prometheus.HistogramVec
	inference  *prometheus.HistogramVec
	prompt     *prometheus.HistogramVec
	generation *prometheus.HistogramVec
	longest    *prometheus.HistogramVec
	choices    *prometheus.HistogramVec
	maxTokens  *prometheus.HistogramVec
	batch      *prometheus.HistogramVec
	fill       *prometheus.GaugeVec

	searches   *prometheus.CounterVec // method
	candidates *prometheus.CounterVec // outcome
	searched   *prometheus.CounterVec // role, fate: tokens
}

const modelLabel = "model_name"

func newMetrics(s *Server) *metrics {
	latency := []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	tokens := []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000}
	m := &metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "lutra_" + name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "lutra_" + name, Help: help, Buckets: buckets}, []string{modelLabel})
		m.registry.MustRegister(v)
		return v
	}
	m.http = counter("http_requests_total", "Requests answered, by route and status.", "path", "code")
	m.success = counter("request_success_total", "Requests answered in full, by finish reason.", modelLabel, "finished_reason")
	m.ttft = histogram("time_to_first_token_seconds", "From a request's arrival to its first token.",
		[]float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560})
	m.tpot = histogram("time_per_output_token_seconds", "Mean time of a request's tokens after the first.",
		[]float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80})
	m.e2e = histogram("e2e_request_latency_seconds", "From a request's arrival to its end.", latency)
	m.queue = histogram("request_queue_time_seconds", "Until a request's prompt was begun.", latency)
	m.prefill = histogram("request_prefill_time_seconds", "From the prompt's begin to the first token.", latency)
	m.decode = histogram("request_decode_time_seconds", "From the first token to the last.", latency)
	m.inference = histogram("request_inference_time_seconds", "From the prompt's begin to the last token.", latency)
	m.prompt = histogram("request_prompt_tokens", "Prompt tokens of a request.", tokens)
	m.generation = histogram("request_generation_tokens", "Tokens generated for a request.", tokens)
	m.longest = histogram("request_max_num_generation_tokens", "Tokens of a request's longest choice.", tokens)
	m.choices = histogram("request_params_n", "Choices that a request asks for.", []float64{1, 2, 5, 10, 20, 50, 100})
	m.maxTokens = histogram("request_params_max_tokens", "Tokens that a request allows a choice, where it says so.", tokens)
	m.batch = histogram("batch_tokens", "Tokens of an engine step.", []float64{1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048})
	m.searches = counter("search_requests_total", "Requests answered by a search, by what it did.", "method")
	m.candidates = counter("search_candidates_total", "Candidates of searches, by what became of them.", "outcome")
	m.searched = counter("search_tokens_total", "Tokens of searches: those the policy generated, by their fate, and those the verifier computed.", "role", "fate")
	m.fill = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "lutra_tile_fill_ratio",
		Help: "Share of the last step's tile lanes that carried a token."}, []string{modelLabel})
	gauge := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "lutra_" + name, Help: help}, value))
	}
	gauge("requests_in_flight", "Requests that have a place of server.max_requests.", func() float64 { return float64(s.places.Taken()) })
	gauge("request_memory_bytes", "What requests hold of server.max_memory.", func() float64 { return float64(s.memory.Bytes()) })
	m.registry.MustRegister(m.fill, engineCollector{s}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(withAliases{m.registry}, promhttp.HandlerOpts{})
}

// Register adds metrics that the server knows nothing of, such as kernels', to
// /metrics. It panics for names that are taken.
func (s *Server) Register(c prometheus.Collector) { s.metrics.registry.MustRegister(c) }

// observe counts an answered request.
func (m *metrics) observe(r *http.Request, rec *record, status int) {
	route := chi.RouteContext(r.Context()).RoutePattern()
	if route == "" {
		route = "other" // not the path: clients could make up any number of them
	}
	m.http.WithLabelValues(route, strconv.Itoa(status)).Inc()
	if rec.model == "" || rec.err != nil {
		return
	}
	for _, o := range rec.searches {
		m.search(o)
	}
	model := rec.model
	m.success.WithLabelValues(model, string(rec.finish)).Inc()
	m.e2e.WithLabelValues(model).Observe(time.Since(rec.start).Seconds())
	m.prompt.WithLabelValues(model).Observe(float64(rec.usage.Prompt))
	m.generation.WithLabelValues(model).Observe(float64(rec.usage.Completion))
	m.longest.WithLabelValues(model).Observe(float64(rec.longest))
	m.choices.WithLabelValues(model).Observe(float64(rec.n))
	if rec.maxTokens > 0 {
		m.maxTokens.WithLabelValues(model).Observe(float64(rec.maxTokens))
	}
	if rec.first.IsZero() {
		return
	}
	m.ttft.WithLabelValues(model).Observe(rec.first.Sub(rec.start).Seconds())
	m.queue.WithLabelValues(model).Observe(rec.timing.Queue.Seconds())
	m.prefill.WithLabelValues(model).Observe(rec.timing.Prefill.Seconds())
	m.decode.WithLabelValues(model).Observe(rec.timing.Decode.Seconds())
	m.inference.WithLabelValues(model).Observe((rec.timing.Prefill + rec.timing.Decode).Seconds())
	if rec.usage.Completion > 1 && len(rec.searches) == 0 {
		m.tpot.WithLabelValues(model).Observe(rec.tpot().Seconds())
	}
}

// search counts a search that has ended. Partial beams that were given up for
// better ones count as pruned.
func (m *metrics) search(o *tts.Outcome) {
	pruned := 0
	parents := make([]bool, len(o.Tree))
	for _, n := range o.Tree {
		if n.Parent >= 0 {
			parents[n.Parent] = true
		}
	}
	ended := make([]bool, len(o.Tree))
	for _, c := range o.Candidates {
		ended[c.Node] = true
	}
	for i := range o.Tree {
		if !parents[i] && !ended[i] {
			pruned++
		}
	}
	m.searches.WithLabelValues(string(o.Method)).Inc()
	m.candidates.WithLabelValues("chosen").Add(float64(len(o.Choices)))
	m.candidates.WithLabelValues("discarded").Add(float64(max(0, len(o.Candidates)-len(o.Choices))))
	m.candidates.WithLabelValues("pruned").Add(float64(pruned))
	m.searched.WithLabelValues("policy", "chosen").Add(float64(o.Usage.Chosen))
	m.searched.WithLabelValues("policy", "discarded").Add(float64(o.Usage.Discarded))
	m.searched.WithLabelValues("policy", "cancelled").Add(float64(o.Usage.Cancelled))
	m.searched.WithLabelValues("verifier", "computed").Add(float64(o.Usage.Verifier))
}

// StepObserver is what the engine of the model of this name should call after
// each step (batcher.Options.OnStep), for the metrics of batches.
func (s *Server) StepObserver(model string) func(batcher.StepStats) {
	batch, fill := s.metrics.batch.WithLabelValues(model), s.metrics.fill.WithLabelValues(model)
	return func(st batcher.StepStats) {
		if st.Tokens == 0 {
			return
		}
		batch.Observe(float64(st.Tokens))
		fill.Set(float64(st.Tokens) / float64(st.Lanes))
	}
}

// engineCollector reads the engines' counters at each scrape.
type engineCollector struct{ s *Server }

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
			m.desc = prometheus.NewDesc("lutra_draft_tokens_total", "Tokens computed before they were known, by who guessed them and what sampling said of them.",
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
	return append(drafts,
		gauge("lutra_num_requests_running", "Sequences being computed.", func(st *batcher.Stats) float64 { return float64(st.Running) }),
		gauge("lutra_num_requests_waiting", "Sequences waiting to be computed.", func(st *batcher.Stats) float64 { return float64(st.Waiting) }),
		gauge("lutra_kv_cache_usage_ratio", "Share of the KV blocks that sequences hold.", usage),
		counter("lutra_prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.", func(st *batcher.Stats) int64 { return st.PrefixQueries }),
		counter("lutra_prefix_cache_hits_total", "Prompt tokens found in the prefix cache.", func(st *batcher.Stats) int64 { return st.PrefixHits }),
		counter("lutra_num_preemptions_total", "Running sequences that lost their KV blocks.", func(st *batcher.Stats) int64 { return st.Preemptions }),
		counter("lutra_prompt_tokens_total", "Prompt tokens computed.", func(st *batcher.Stats) int64 { return st.PromptTokens }),
		counter("lutra_generation_tokens_total", "Tokens sampled.", func(st *batcher.Stats) int64 { return st.GeneratedTokens }),
		counter("lutra_engine_steps_total", "Engine steps.", func(st *batcher.Stats) int64 { return st.Steps }),
		counter("lutra_engine_tokens_total", "Tokens of all engine steps.", func(st *batcher.Stats) int64 { return st.BatchTokens }),
		counter("lutra_engine_lanes_total", "Tile lanes of all engine steps, whether they carried a token or not.", func(st *batcher.Stats) int64 { return st.BatchLanes }),
		engineMetric{desc("lutra_draft_seconds_total", "Time of engine steps spent on guessing tokens."), prometheus.CounterValue,
			func(st *batcher.Stats) float64 { return st.DraftTime.Seconds() }},
		counter("lutra_spec_decode_num_draft_tokens_total", "Tokens computed before they were known.", sum(func(st *batcher.Stats) *[batcher.DraftKinds]int64 { return &st.DraftTokens })),
		counter("lutra_spec_decode_num_accepted_tokens_total", "Tokens computed before they were known, and right.", sum(func(st *batcher.Stats) *[batcher.DraftKinds]int64 { return &st.DraftAccepted })),
		counter("lutra_engine_spared_tokens_total", "Tokens not computed because an equal sequence was.", func(st *batcher.Stats) int64 { return st.SavedTokens }),
	)
}()

var (
	gapsDesc = prometheus.NewDesc("lutra_inter_token_latency_seconds", "Time between the tokens of streams, one step after another.", []string{modelLabel}, nil)
	poolDesc = prometheus.NewDesc("lutra_cache_config_info", "Size of the KV cache: blocks, and tokens of one.", []string{modelLabel, "block_size", "num_gpu_blocks"}, nil)

	// modelFailedDesc is 0 or 1.
	modelFailedDesc = prometheus.NewDesc("lutra_model_failed", "Whether the model has failed and answers no more requests.", []string{modelLabel}, nil)
)

// gaps are the times between tokens as a histogram.
func gaps(model string, g *batcher.Gaps) prometheus.Metric {
	count, buckets := uint64(0), map[float64]uint64{}
	for i, bound := range batcher.GapBounds() {
		count += uint64(g.Counts[i])
		buckets[bound.Seconds()] = count
	}
	count += uint64(g.Counts[len(g.Counts)-1])
	return prometheus.MustNewConstHistogram(gapsDesc, count, g.Sum.Seconds(), buckets, model)
}

// Describe implements prometheus.Collector.
func (engineCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- gapsDesc
	ch <- poolDesc
	ch <- modelFailedDesc
	for i := range engineMetrics {
		ch <- engineMetrics[i].desc
	}
}

// Collect implements prometheus.Collector.
func (c engineCollector) Collect(ch chan<- prometheus.Metric) {
	r := c.s.models.Load()
	if r == nil {
		return
	}
	for _, m := range r.models {
		failed := 0.0
		if m.Engine.Failed() != nil {
			failed = 1
		}
		ch <- prometheus.MustNewConstMetric(modelFailedDesc, prometheus.GaugeValue, failed, m.Name)
		st := m.Engine.Stats()
		ch <- gaps(m.Name, &st.Gaps)
		ch <- prometheus.MustNewConstMetric(poolDesc, prometheus.GaugeValue, 1, m.Name, strconv.Itoa(st.BlockLen), strconv.Itoa(st.Blocks))
		for _, e := range engineMetrics {
			ch <- prometheus.MustNewConstMetric(e.desc, e.kind, e.of(&st), m.Name)
		}
	}
}
