package cli

import (
	"maps"
	"net"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/workers"
	"github.com/lutra-lm/lutra/server"
	"github.com/lutra-lm/lutra/server/registry"
)

// shareSearches returns what has other servers work for searches of a model, if cfg names any.
// The caller closes that once no search runs.
func shareSearches(cfg *config.Config, srv *server.Server, listening net.Addr, log zerolog.Logger) (share func(*engines.Host) error, closing func()) {
	if len(cfg.Search.Workers) == 0 {
		return func(*engines.Host) error { return nil }, func() {}
	}
	pool := workers.New(cfg.Search.Options, listening, log)
	srv.Register(workerCollector{pool})
	return func(h *engines.Host) error {
		if h.Reward != nil || !h.Model.Config.Generates() {
			return nil
		}
		fingerprint, err := registry.Fingerprint(h.Model)
		if err == nil {
			h.Model.Source = pool.Source(h.Model.Name, fingerprint, h.Model.Vocab)
		}
		return err
	}, pool.Close
}

// workerCollector reads at each scrape what workers have done.
type workerCollector struct{ pool *workers.Pool }

var (
	workerRequests = prometheus.NewDesc("lutra_search_worker_requests_total", "Requests to a worker, by their outcome.", []string{"worker", "outcome"}, nil)
	workerResting  = prometheus.NewDesc("lutra_search_worker_resting", "Whether a worker is asked for nothing for a while.", []string{"worker"}, nil)

	// workerCounters are counters by worker.
	workerCounters = []struct {
		desc *prometheus.Desc
		of   func(*workers.Counts) int64
	}{
		{workerDesc("lutra_search_worker_candidates_total", "Candidates that a worker has gone on with, each solution step counted."), func(c *workers.Counts) int64 { return c.Jobs }},
		{workerDesc("lutra_search_worker_redone_total", "Those that it was given and that others have done."), func(c *workers.Counts) int64 { return c.Redone }},
		{workerDesc("lutra_search_worker_tokens_total", "Tokens of candidates that it has gone on with."), func(c *workers.Counts) int64 { return c.Tokens }},
		{workerDesc("lutra_search_worker_checks_total", "Candidates of which some tokens were generated again here."), func(c *workers.Counts) int64 { return c.Checked }},
		{workerDesc("lutra_search_worker_mismatches_total", "Those that were wrong."), func(c *workers.Counts) int64 { return c.Mismatches }},
	}
)

func workerDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"worker"}, nil)
}

// Describe implements prometheus.Collector.
func (workerCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- workerRequests
	ch <- workerResting
	for _, c := range workerCounters {
		ch <- c.desc
	}
}

// Collect implements prometheus.Collector.
func (c workerCollector) Collect(ch chan<- prometheus.Metric) {
	all := c.pool.Stats()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		st := all[name]
		for _, o := range workers.Outcomes() {
			ch <- prometheus.MustNewConstMetric(workerRequests, prometheus.CounterValue, float64(st.Requests[o]), name, string(o))
		}
		resting := 0.0
		if st.Resting {
			resting = 1
		}
		ch <- prometheus.MustNewConstMetric(workerResting, prometheus.GaugeValue, resting, name)
		for _, m := range workerCounters {
			ch <- prometheus.MustNewConstMetric(m.desc, prometheus.CounterValue, float64(m.of(&st)), name)
		}
	}
}
