// Package metrics is what /metrics shows: of requests, searches and engines, with
// meanings and buckets of vLLM's metrics, and a second time under its names.
package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/tts"
)

// Metrics serves /metrics. Finished requests and engine steps feed its histograms, and the engines' own counters
// are read when they are scraped. Meanings and buckets are vLLM's. It has a field for each.
type Metrics struct {
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

// Sources are read when metrics are scraped.
type Sources struct {
	Requests func() int64 // under way
	Memory   func() int64 // bytes that requests hold
	Stored   func() int64 // bytes of responses that are kept
	// OutOfFiles counts the times that no connection could be accepted for want of a file descriptor.
	OutOfFiles func() int64
	Engines    Engines
	Adapters   func(model string) int // how many a model has
	Keys       Keys
	// CountRequests has the gauges of an engine's load count requests, not their sequences.
	CountRequests bool
}

// New registers all metrics.
func New(src Sources) *Metrics {
	latency := []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	tokens := []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000}
	m := &Metrics{registry: prometheus.NewRegistry()}
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
	m.queue = histogram("request_queue_time_seconds", "From a request's arrival to the start of its prompt.", latency)
	m.prefill = histogram("request_prefill_time_seconds", "From the start of the prompt to the first token.", latency)
	m.decode = histogram("request_decode_time_seconds", "From the first token to the last.", latency)
	m.inference = histogram("request_inference_time_seconds", "From the start of the prompt to the last token.", latency)
	m.prompt = histogram("request_prompt_tokens", "Prompt tokens of a request.", tokens)
	m.generation = histogram("request_generation_tokens", "Tokens generated for a request.", tokens)
	m.longest = histogram("request_max_num_generation_tokens", "Tokens of a request's longest choice.", tokens)
	m.choices = histogram("request_params_n", "Choices that a request asks for.", []float64{1, 2, 5, 10, 20, 50, 100})
	m.maxTokens = histogram("request_params_max_tokens", "A request's token limit, if it has one.", tokens)
	m.batch = histogram("batch_tokens", "Tokens of an engine step.", []float64{1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048})
	m.searches = counter("search_requests_total", "Requests answered by a search, by method.", "method")
	m.candidates = counter("search_candidates_total", "Candidates of searches, by outcome.", "outcome")
	m.searched = counter("search_tokens_total", "Tokens of searches: those the policy generated, by their fate, and those a verifier computed, or wrote of them.", "role", "fate")
	m.fill = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "lutra_tile_fill_ratio",
		Help: "Share of the last step's tile lanes that carried a token."}, []string{modelLabel})
	gauge := func(name, help string, value func() int64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "lutra_" + name, Help: help}, func() float64 { return float64(value()) }))
	}
	gauge("requests_in_flight", "Requests under way, out of server.max_requests.", src.Requests)
	gauge("request_memory_bytes", "Bytes that requests hold, out of server.max_memory.", src.Memory)
	gauge("stored_responses_bytes", "Bytes of responses that are kept for requests that follow.", src.Stored)
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "lutra_out_of_files_total",
		Help: "Times that no connection could be accepted because no file descriptor was free."}, func() float64 { return float64(src.OutOfFiles()) }))
	m.registry.MustRegister(m.fill, newEngineCollector(src.Engines, src.Adapters, src.CountRequests), newKeyCollector(src.Keys), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler answers scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(withAliases{m.registry}, promhttp.HandlerOpts{})
}

// Register adds a collector of other metrics. It panics for names that are taken.
func (m *Metrics) Register(c prometheus.Collector) { m.registry.MustRegister(c) }

// Request has the measurements of one request for text.
type Request struct {
	Model     string
	Usage     tts.Usage
	Finish    tts.Finish
	Timing    tts.Timing
	Searches  []*tts.Outcome // that have ended
	N         int            // choices of a prompt
	MaxTokens int            // of a choice; 0: up to the context
	Longest   int            // tokens of the longest choice
	Start     time.Time
	First     time.Time // token
	Last      time.Time // token
}

// TPOT returns the time per output token after the first.
func (r *Request) TPOT() time.Duration {
	if r.Usage.Completion < 2 {
		return 0
	}
	return r.Last.Sub(r.First) / time.Duration(r.Usage.Completion-1)
}

// Answered counts an answer of any kind.
func (m *Metrics) Answered(route string, status int) {
	m.http.WithLabelValues(route, strconv.Itoa(status)).Inc()
}

// Completed counts a request for text that has been answered in full.
func (m *Metrics) Completed(r *Request) {
	for _, o := range r.Searches {
		m.search(o)
	}
	model := r.Model
	m.success.WithLabelValues(model, string(r.Finish)).Inc()
	m.e2e.WithLabelValues(model).Observe(time.Since(r.Start).Seconds())
	m.prompt.WithLabelValues(model).Observe(float64(r.Usage.Prompt))
	m.generation.WithLabelValues(model).Observe(float64(r.Usage.Completion))
	m.longest.WithLabelValues(model).Observe(float64(r.Longest))
	m.choices.WithLabelValues(model).Observe(float64(r.N))
	if r.MaxTokens > 0 {
		m.maxTokens.WithLabelValues(model).Observe(float64(r.MaxTokens))
	}
	if r.First.IsZero() {
		return
	}
	m.ttft.WithLabelValues(model).Observe(r.First.Sub(r.Start).Seconds())
	m.queue.WithLabelValues(model).Observe(r.Timing.Queue.Seconds())
	m.prefill.WithLabelValues(model).Observe(r.Timing.Prefill.Seconds())
	m.decode.WithLabelValues(model).Observe(r.Timing.Decode.Seconds())
	m.inference.WithLabelValues(model).Observe((r.Timing.Prefill + r.Timing.Decode).Seconds())
	if r.Usage.Completion > 1 && len(r.Searches) == 0 {
		m.tpot.WithLabelValues(model).Observe(r.TPOT().Seconds())
	}
}

// search counts a search that has ended. Beams that gave way to better ones count
// as pruned.
func (m *Metrics) search(o *tts.Outcome) {
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
	m.searched.WithLabelValues("verifier", "written").Add(float64(o.Usage.Critiques))
}

// StepObserver returns what the engine of the model of this name should call after
// each step (batcher.Options.OnStep), for the metrics of batches.
func (m *Metrics) StepObserver(model string) func(batcher.StepStats) {
	batch, fill := m.batch.WithLabelValues(model), m.fill.WithLabelValues(model)
	return func(st batcher.StepStats) {
		if st.Tokens == 0 {
			return
		}
		batch.Observe(float64(st.Tokens))
		fill.Set(float64(st.Tokens) / float64(st.Lanes))
	}
}
