package jobs

import "github.com/prometheus/client_golang/prometheus"

var (
	descBatches = prometheus.NewDesc("lutra_jobs_batches", "Batches that are kept, by status.", []string{"status"}, nil)
	descLines   = prometheus.NewDesc("lutra_jobs_lines_total", "Lines of batches that were answered, by outcome.", []string{"outcome"}, nil)
	descWaiting = prometheus.NewDesc("lutra_jobs_lines_waiting", "Lines of batches without an answer.", nil, nil)
	descBytes   = prometheus.NewDesc("lutra_jobs_bytes", "Bytes of files and answers, and those set aside for them, out of jobs.size.", nil, nil)
)

// collector reads the metrics of a store.
type collector struct{ *Store }

// Metrics returns what /metrics shows of jobs.
func (s *Store) Metrics() prometheus.Collector { return collector{s} }

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descBatches, descLines, descWaiting, descBytes} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s collector) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	statuses, waiting := map[Status]int{}, 0
	for _, b := range s.batches {
		if statuses[b.Status]++; !b.ended() {
			waiting += b.Lines - b.done - b.failed
		}
	}
	for _, status := range Statuses() {
		ch <- prometheus.MustNewConstMetric(descBatches, prometheus.GaugeValue, float64(statuses[status]), string(status))
	}
	for i, outcome := range []string{"succeeded", "failed"} {
		ch <- prometheus.MustNewConstMetric(descLines, prometheus.CounterValue, float64(s.counted[i].Load()), outcome)
	}
	ch <- prometheus.MustNewConstMetric(descWaiting, prometheus.GaugeValue, float64(waiting))
	ch <- prometheus.MustNewConstMetric(descBytes, prometheus.GaugeValue, float64(s.used))
}
