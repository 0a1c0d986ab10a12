package main

import "time"

// machine is what the model knows of a computer.
type machine struct {
	name    string
	cores   int
	cluster int           // neighbouring cores, between which a cache line takes near
	near    time.Duration // for a line from a core of the same cluster
	far     time.Duration // for a line from any other
	memory  float64       // GB/s that all cores read together
	core    float64       // GB/s that one core reads
	speed   []float64     // of each core beside the one that was measured; the last is that of all others
}

const ns = time.Nanosecond

// machines that people serve on. Times of lines are those that chipsandcheese.com has
// published ("Core to core latency data on large systems", 2023; for phones of the
// Snapdragon 8 Gen 2 and 3); memory is 0.8 of what its channels carry.
var machines = []machine{
	{"64 × Zen 3 (EPYC 7763, 8 × DDR4-3200)", 64, 8, 23 * ns, 105 * ns, 163, 25, []float64{1}},
	{"64 × Neoverse V1 (Graviton 3, 8 × DDR5-4800)", 64, 64, 50 * ns, 50 * ns, 245, 24, []float64{0.8}},
	{"2 × 56 Golden Cove (2 Xeon 8480, 16 × DDR5-4800)", 112, 56, 65 * ns, 140 * ns, 490, 14, []float64{1}},
	{"a phone, 1 + 5 + 2 cores (Snapdragon 8 Gen 3)", 8, 8, 45 * ns, 45 * ns, 60, 25, []float64{0.9, 0.6, 0.6, 0.6, 0.6, 0.6, 0.2, 0.2}},
}

// hop is the time that a line takes from core a to core b.
func (m *machine) hop(a, b int) time.Duration {
	switch {
	case a == b:
		return own
	case a/m.cluster == b/m.cluster:
		return m.near
	}
	return m.far
}

// own is the time of an atomic operation on a line that the core has already.
const own = 6 * ns

// of returns the speed of a core.
func (m *machine) of(core int) float64 { return m.speed[min(core, len(m.speed)-1)] }

// speeds adds up those of the first threads cores.
func (m *machine) speeds(threads int) (sum float64) {
	for core := range threads {
		sum += m.of(core)
	}
	return sum
}

// rate is what the first threads cores read together, GB/s, which is bytes a nanosecond.
func (m *machine) rate(threads int) float64 { return min(float64(threads)*m.core, m.memory) }
