package cli

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/kvevents"
	"github.com/lutra-lm/lutra/server"
)

// publishEvents has the caches of models that are going to be loaded tell of their prefixes,
// if cfg says where. The caller closes that after the engines have stopped.
func publishEvents(cfg *config.Config, srv *server.Server, watch *engines.Watcher, log zerolog.Logger) (closing func(), err error) {
	opt, err := cfg.Publishing()
	if err != nil || opt == nil {
		return func() {}, err
	}
	opt.Log = log
	p, err := kvevents.New(*opt)
	if err != nil {
		return nil, err
	}
	watch.Cache = p.Feed
	srv.Register(eventCollector{p})
	return p.Close, nil
}

// eventCollector reads at each scrape how KV events are published.
type eventCollector struct{ publisher *kvevents.Publisher }

var (
	eventBatches     = prometheus.NewDesc("lutra_kv_event_batches_total", "Batches of KV events that were published.", nil, nil)
	eventsDropped    = prometheus.NewDesc("lutra_kv_event_dropped_total", "Batches that a subscriber was too slow for, counted for each subscriber.", nil, nil)
	eventReplays     = prometheus.NewDesc("lutra_kv_event_replays_total", "Requests for past batches of KV events.", nil, nil)
	eventSubscribers = prometheus.NewDesc("lutra_kv_event_subscribers", "Subscribers of KV events.", nil, nil)
)

// Describe implements prometheus.Collector.
func (eventCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{eventBatches, eventsDropped, eventReplays, eventSubscribers} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c eventCollector) Collect(ch chan<- prometheus.Metric) {
	st := c.publisher.Stats()
	ch <- prometheus.MustNewConstMetric(eventBatches, prometheus.CounterValue, float64(st.Batches))
	ch <- prometheus.MustNewConstMetric(eventsDropped, prometheus.CounterValue, float64(st.Dropped))
	ch <- prometheus.MustNewConstMetric(eventReplays, prometheus.CounterValue, float64(st.Replays))
	ch <- prometheus.MustNewConstMetric(eventSubscribers, prometheus.GaugeValue, float64(st.Subscribers))
}
