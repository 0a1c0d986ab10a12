package engines

import "github.com/prometheus/client_golang/prometheus"

// Collectors returns what reads, at each scrape, what the runtime's kernels, devices,
// experts and formats have done.
func (r *Runtime) Collectors() []prometheus.Collector {
	return []prometheus.Collector{kernelCollector{r.Pool.Meter()}, deviceCollector{r.All()}, expertCollector{r.All()}, formatCollector{r.Formats}}
}
