package moecost

import (
	"fmt"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/lab/npu/calibration"
)

// Work is a prompt, and what routers choose for its chunks.
type Work struct {
	Prompt int                // tokens
	Plan   *experts.Plan      // its chunk is used by all placements
	Split  *calibration.Split // rows that chunks of the plan's size give the experts
}

// Cost is the modelled cost of a prompt: seconds, and what they are spent on.
type Cost struct {
	Placement hexagon.Placement `json:"placement"`
	Seconds   float64           `json:"seconds"` // to the first token (TTFT)
	Attention float64           `json:"attention_seconds"`
	Experts   float64           `json:"expert_seconds"`
	Loading   float64           `json:"loading_seconds"` // graphs that are not resident
	Copies    float64           `json:"copy_seconds"`    // rows gathered for experts and scattered back
	Launches  float64           `json:"launches"`
	NPU       float64           `json:"npu_seconds"` // busy
	CPU       float64           `json:"cpu_seconds"` // busy
	Joules    float64           `json:"joules"`
	PerToken  float64           `json:"joules_per_token"`
	Cycles    float64           `json:"cpu_cycles"`
}

// Prefill returns the cost of a prompt.
func (m *Machine) Prefill(x *Model, p hexagon.Placement, w Work) (Cost, error) {
	c := Cost{Placement: p}
	if err := x.Check(); err != nil {
		return c, err
	}
	if w.Prompt < 1 || w.Prompt > mostPrompt {
		return c, fmt.Errorf("moecost: a prompt of %d tokens is outside 1 to %d", w.Prompt, mostPrompt)
	}
	if err := w.Plan.Shape.Fits(x.Shape); err != nil {
		return c, fmt.Errorf("moecost: the plan: %w", err)
	}
	if w.Split.Size != w.Plan.Chunk || len(w.Split.Layers) != x.Layers || w.Split.Count < 1 {
		return c, fmt.Errorf("moecost: rows of %d layers in chunks of %d tokens, want %d and %d", len(w.Split.Layers), w.Split.Size, x.Layers, w.Plan.Chunk)
	}
	chunks := (w.Prompt + w.Plan.Chunk - 1) / w.Plan.Chunk
	for i := range chunks {
		if err := m.attend(&c, x, p, w, min((i+1)*w.Plan.Chunk, w.Prompt)); err != nil {
			return c, err
		}
	}
	// The last layer computes the row alone that logits are of, on the CPU.
	last := float64(x.Chosen) * (m.hostRow(x) + m.hostRead(x))
	c.Experts, c.CPU = c.Experts+last, c.CPU+last
	for i := range x.Layers - 1 {
		if err := m.layer(&c, x, p, w, i, float64(chunks)); err != nil {
			return c, err
		}
	}
	c.Seconds = c.Attention + c.Experts + c.Loading + c.Copies
	// While a graph is loaded the CPU takes its power, but waits: of the paper's figures,
	// energy says the one and cycles the other.
	waiting := max(0, c.Seconds-c.CPU-c.Loading)
	c.Joules = (c.CPU+c.Loading)*m.HostPower.Value + waiting*m.WaitPower.Value + c.NPU*m.NPUPower.Value + c.Seconds*m.MemoryPower.Value
	c.PerToken = c.Joules / float64(w.Prompt)
	c.Cycles = m.HostClock.Value * 1e9 * (c.CPU + (waiting+c.Loading)*m.WaitCycles.Value)
	return c, nil
}

// mostPrompt bounds what is modelled.
const mostPrompt = 1 << 20

// attend adds the attention of a chunk in all layers, up to the token at end.
func (m *Machine) attend(c *Cost, x *Model, p hexagon.Placement, w Work, end int) error {
	rows, layers := w.Plan.Chunk, float64(x.Layers)
	if p == hexagon.PlacementCPU || p == hexagon.PlacementNaive {
		s := layers * (float64(rows)*operations(x.projections()) + x.scoring(rows, end)) / (m.HostRate.Value * 1e9)
		c.Attention, c.CPU = c.Attention+s, c.CPU+s
		return nil
	}
	s, err := m.product(x.projections(), rows, x.Bits)
	if err != nil {
		return err
	}
	s = layers * (m.launch() + s + m.scores(x, rows, w.Prompt)) // keys and values have a static shape, too
	c.Attention, c.NPU, c.Launches = c.Attention+s, c.NPU+s, c.Launches+layers
	return nil
}

func (m *Machine) launch() float64 { return m.Device.Costs.Launch / 1e3 }

// hostRow returns the seconds of a row of an expert on the CPU.
func (m *Machine) hostRow(x *Model) float64 {
	return operations(x.expert()) / 2 / (m.Device.Costs.Host * 1e9)
}

// hostRead returns the seconds in which the CPU reads an expert.
func (m *Machine) hostRead(x *Model) float64 {
	if m.Device.Costs.HostRead == 0 {
		return 0
	}
	return float64(x.ExpertBytes()) / (m.Device.Costs.HostRead * 1e9)
}

// layer adds the experts of a layer in all chunks.
func (m *Machine) layer(c *Cost, x *Model, p hexagon.Placement, w Work, i int, chunks float64) error {
	tallies, n := w.Split.Layers[i], float64(w.Split.Count)
	host, npu, loading := 0.0, 0.0, 0.0 // seconds a chunk
	launches, copied := 0.0, 0.0        // a chunk
	hostRow := m.hostRow(x)
	onHost := func(r float64) { // an expert's rows; it is read where it has some
		host, copied = host+min(1, r)*m.hostRead(x)+r*hostRow, copied+r
	}
	rows := func(e, capacity int) float64 {
		return float64(tallies[e].Beyond(0)-tallies[e].Beyond(capacity)) / n
	}
	switch p {
	case hexagon.PlacementCPU, hexagon.PlacementAttention:
		for e := range tallies {
			onHost(rows(e, w.Plan.Chunk))
		}
	case hexagon.PlacementNaive:
		// The one graph of an expert has room for what the busiest one is expected to get.
		capacity := pow2(max(w.Plan.Layers[i].Busiest, w.Plan.Device.Rows))
		one, err := m.product(x.expert(), capacity, x.Bits)
		if err != nil {
			return err
		}
		for e := range tallies {
			for _, t := range tallies[e] {
				launches += float64((t.Rows()+capacity-1)/capacity) * float64(t.Chunks()) / n
			}
			copied += rows(e, w.Plan.Chunk)
		}
		npu, loading = launches*(m.launch()+one), launches*float64(x.ExpertBytes())/(m.Load.Value*1e9)
	case hexagon.PlacementAll:
		for j := range w.Plan.Layers[i].Groups {
			g := &w.Plan.Layers[i].Groups[j]
			if g.Placement == experts.CPU {
				for _, e := range g.Experts {
					onHost(rows(e, w.Plan.Chunk))
				}
				continue
			}
			one, err := m.product(x.expert(), g.Capacity, x.Bits)
			if err != nil {
				return err
			}
			launches++
			npu += m.launch() + float64(len(g.Experts))*one
			for _, e := range g.Experts {
				copied += rows(e, g.Capacity)
			}
		}
	default:
		return fmt.Errorf("moecost: there is no placement %.40q", p)
	}
	// In and out, each read and written in fp16, and added to in fp32.
	copies := copied * float64(x.Hidden) * (2*2*2 + 2*4) / (m.HostBandwidth.Value * 1e9)
	c.Experts += chunks * max(host, npu) // cold experts run while hot ones do
	c.Loading += chunks * loading
	c.Copies += chunks * copies
	c.NPU += chunks * npu
	c.CPU += chunks * (host + copies)
	c.Launches += chunks * launches
	return nil
}

// pow2 returns the least power of two from n on.
func pow2(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}
