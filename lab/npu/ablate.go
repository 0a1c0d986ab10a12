package npu

import (
	"fmt"
	"io"
	"slices"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/lab/npu/ablation"
	"github.com/lutra-lm/lutra/lab/npu/soc"
)

// Ablation is one comparison of the papers, made again with this project's kernels.
type Ablation struct {
	Name  string     `json:"name"`
	Title string     `json:"title"`
	Kind  string     `json:"kind"` // where its numbers are from
	Head  []string   `json:"head"`
	Rows  [][]string `json:"rows"`
	Notes []string   `json:"notes"`
}

// study makes a comparison from counts, on the chip that the papers measure.
type study struct {
	name, title, kind string
	run               func(c ablation.Counts, m *soc.Machine, a *Ablation) error
}

const (
	counted = "packets executed under qemu-hexagon, with integer stand-ins for float instructions; times modelled"

	emulatedPackets = "modelled from emulated packets: those of the machine code that qemu-hexagon executes for the model's matrices"
)

var studies = []study{
	{"layouts", "Four-bit groups: conventional, in the order of tiles, super-groups (TTS, Figure 15)", counted, layouts},
	{"exponentials", "Exponentials of softmax: float32, float16, table (TTS, Figure 14)", counted, exponentials},
	{"step", "A decoded token of BitNet-2B from what executes (T-MAN §6.3; batches: TTS, Figure 11)", emulatedPackets, steps},
	{"prompt", "A prompt of BitNet-2B from what executes, its stages beside each other or not (T-MAN §4.2)", emulatedPackets, prompts},
	{"lookups", "VLUT16 and VLUT32: weights of one bit for each packet (T-MAN, Table 1)", counted, lookups},
}

// Ablations returns the names that Ablate knows.
func Ablations() []string {
	var names []string
	for _, s := range studies {
		names = append(names, s.name)
	}
	return names
}

// AblationTitle returns what a comparison is about.
func AblationTitle(name string) string {
	for _, s := range studies {
		if s.name == name {
			return s.title
		}
	}
	return ""
}

// Ablate makes a comparison on Snapdragon 8 Gen 3.
func Ablate(name string, counts ablation.Counts) (*Ablation, error) {
	i := slices.IndexFunc(studies, func(s study) bool { return s.name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no ablation %.40q", name)
	}
	chip, err := soc.Named("8gen3")
	if err != nil {
		return nil, err
	}
	s := studies[i]
	a := &Ablation{Name: s.name, Title: s.title, Kind: s.kind}
	return a, s.run(counts, soc.NewMachine(chip), a)
}

// Print writes the comparison for people.
func (a *Ablation) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%s\n\n", a.Title, a.Kind)
	if err := output.Table(w, append([][]string{a.Head}, a.Rows...)); err != nil {
		return err
	}
	for _, n := range a.Notes {
		fmt.Fprintf(w, "\n%s", n)
	}
	_, err := fmt.Fprintln(w)
	return err
}

func (a *Ablation) row(cells ...any) {
	var row []string
	for _, c := range cells {
		switch v := c.(type) {
		case float64:
			row = append(row, digits(v))
		default:
			row = append(row, fmt.Sprint(v))
		}
	}
	a.Rows = append(a.Rows, row)
}

// digits returns three of a number, and all of a large one before the point.
func digits(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

func (a *Ablation) note(format string, args ...any) {
	a.Notes = append(a.Notes, fmt.Sprintf(format, args...))
}

// seconds converts packets on all vector threads.
func seconds(m *soc.Machine, packets float64) float64 {
	return packets * m.CyclesPerPacket.Value / (m.Clock.Value * 1e9) / m.Threads.Value
}

// ratio returns how many times as long as ours something takes.
func ratio(x float64) string { return fmt.Sprintf("%.2f×", x) }

func layouts(c ablation.Counts, m *soc.Machine, a *Ablation) error {
	a.Head = []string{"layout", "packets/256", "with vscatter", "1536×1536 µs", "8960×1536 µs", "to super-groups"}
	const packed = 144.0 / 256 // bytes a weight
	time := func(weights, packets float64) float64 {
		return max(weights*packed/m.Bandwidth(soc.ByDMA), seconds(m, weights/256*packets))
	}
	ours := c.Each("super-groups")
	const scatters = 4 // for 256 weights
	latency := m.GatherPackets.Value
	for _, l := range []struct{ name, kernel string }{
		{"conventional", "conventional-groups"}, {"in the order of tiles", "tile-groups"}, {"super-groups", "super-groups"}, {"no dequantisation", "no-dequantisation"},
	} {
		low, high := c.Each(l.kernel), c.Each(l.kernel)
		shown := ""
		if l.kernel == "conventional-groups" {
			low, high = low+scatters*latency, high+2*scatters*latency
			shown = fmt.Sprintf("%.0f – %.0f", low, high)
		}
		span := func(weights, by float64) string {
			s, e := time(weights, low)*by, time(weights, high)*by
			if s == e {
				return digits(s)
			}
			return digits(s) + " – " + digits(e)
		}
		a.row(l.name, c.Each(l.kernel), shown, span(1536*1536, 1e6), span(8960*1536, 1e6), span(8960*1536, 1/time(8960*1536, ours)))
	}
	a.note("The test-time scaling paper measures 9.65 to 19.04 times for the conventional layout, 1.82 to 3.45 times for the order of")
	a.note("tiles, and super-groups 27 %% slower than no dequantisation. A vscatter is taken to have the latency of a vgather, %.0f to %.0f", latency, 2*latency)
	a.note("packets (assumed). Where super-groups wait for DMA alone, no dequantisation gains nothing here.")
	return nil
}

func exponentials(c ablation.Counts, m *soc.Machine, a *Ablation) error {
	a.Head = []string{"exponential", "packets/64", "softmax/64", "to the table", "softmax/64, latency seen", "to the table"}
	table := c.Each("exp-lut")
	rest := c.Each("softmax") - table
	latency := m.GatherPackets.Value
	for _, e := range []struct {
		name    string
		kernel  string
		exposed float64
	}{{"float32, degree 6", "exp-f32", 0}, {"float16, degree 4", "exp-f16", 0}, {"table by vgather", "exp-lut", latency}} {
		n := rest + c.Each(e.kernel)
		a.row(e.name, c.Each(e.kernel), n, ratio(n/(rest+table)), n+e.exposed, ratio((n+e.exposed)/(rest+table+latency)))
	}
	a.note("The test-time scaling paper measures 1.26 to 2.19 times for float32 and up to 1.60 times for float16. The first ratio hides")
	a.note("vgather's latency, as our kernel does by gathering two rows ahead, the second shows %.0f packets of it for each 64 scores.", latency)
	return nil
}

func lookups(c ablation.Counts, _ *soc.Machine, a *Ablation) error {
	a.Head = []string{"instruction", "sums of", "multiply-adds/lookup", "packets/line", "multiply-adds/packet", "T-MAN, at CPI 0.5"}
	for _, l := range []struct {
		name     string
		bits     int
		kernel   string
		lookup   int
		line     float64 // multiply-adds
		measured int
	}{
		{"VLUT16", 8, "vlut16-b", 1024, 2048, 1024}, {"VLUT16", 16, "vlut16-h", 512, 1024, 512},
		{"VLUT32", 8, "vlut32-b", 640, 640, 640}, {"VLUT32", 16, "vlut32-h", 320, 640, 320},
	} {
		a.row(l.name, fmt.Sprintf("%d bits", l.bits), l.lookup, c.Each(l.kernel), l.line/c.Each(l.kernel), l.measured)
	}
	a.note("A multiply-add is one weight of one bit by one activation; a line is 128 bytes of indices, of which VLUT16 uses all eight")
	a.note("bits in two lookups, and VLUT32 five in one, or in two of half an entry each. Loads and sums are counted, too.")
	return nil
}
