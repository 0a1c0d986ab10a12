package engines

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"
)

// Collectors returns what reads, at each scrape, what the runtime's kernels, devices,
// experts, formats and files of prefixes have done.
func (r *Runtime) Collectors() []prometheus.Collector {
	return []prometheus.Collector{kernelCollector{r.Pool.Meter()}, deviceCollector{r.hosts}, expertCollector{r.hosts}, formatCollector{r.Formats}, diskCollector{r.hosts, r.folder}}
}

// hostSeq yields models.
type hostSeq = iter.Seq[*Host]

// hosts yields the models of all names, each once. Meanwhile none is freed.
func (r *Runtime) hosts(yield func(*Host) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[string]bool{}
	for _, h := range r.all() {
		if name := h.Bundle.Name; !seen[name] {
			if seen[name] = true; !yield(h) {
				return
			}
		}
	}
}
