package hexagon

import (
	"slices"
	"strconv"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// plan says what of a model the device computes, and where in the shared memory its operands lie. It
// is made while the model is loaded, and is data after Start: steps, products and launches read it.
type plan struct {
	arena
	matrices []*linear
	mostK    int
	refused  map[matrix.Packing]bool // of matrices that the device does not hold
	refusals []Refusal
	layers   *layerPlan   // nil: layers are the host's, but for products and attention
	mixture  *mixturePlan // nil: the model has no experts

	x, y         region // rows and results of products, and what attention stages
	lookupTables region // of the activations that are resident, for lookups
	tables       fixedTables
	launch       struct{ x, y region } // of launches
}

// Refusal is a part of a model that the device does not compute, and the reason.
type Refusal struct {
	Part  string `json:"part"`  // "layers" for all, "layer", "head" or "experts"
	Layer int    `json:"layer"` // from 0 on; -1: of none
	Why   string `json:"why"`
}

// refuse keeps a refusal; of the experts of a layer one for each reason.
func (p *plan) refuse(part string, layer int, why string) {
	if r := (Refusal{part, layer, why}); !slices.Contains(p.refusals, r) {
		p.refusals = append(p.refusals, r)
	}
}

// Reasons returns refusals as lines for people, layers with one reason together.
func Reasons(list []Refusal) (lines []string) {
	type key struct{ part, why string }
	var order []key
	layers := map[key][]int{}
	for _, r := range list {
		k := key{r.Part, r.Why}
		if layers[k] == nil {
			order = append(order, k)
		}
		layers[k] = append(layers[k], r.Layer)
	}
	for _, k := range order {
		line := k.part
		for i, of := 0, layers[k]; of[0] >= 0 && i < len(of); {
			first := of[i]
			for i++; i < len(of) && of[i] == of[i-1]+1; i++ {
			}
			sep := ", "
			if first == of[0] {
				sep = " "
			}
			if line += sep + strconv.Itoa(first); of[i-1] > first {
				line += " to " + strconv.Itoa(of[i-1])
			}
		}
		lines = append(lines, line+": "+k.why)
	}
	return lines
}

// regions lays out what products exchange with the device, and the tables of attention.
func (p *plan) regions() {
	p.x, p.y = p.region(max(tileRows*2*p.mostK, stagingBytes-resultBytes)), p.region(resultBytes)
	p.tables = fixedTables{powers: p.region(device.ExpTableBytes), caps: p.region(device.ExpTableBytes), unit: p.region(layout.TileBytes)}
	tables := 0
	for _, l := range p.matrices {
		if l.lookups > 0 {
			tables = max(tables, l.tableRows()*l.tableBytes())
		}
	}
	p.lookupTables = p.region(tables)
}

// place puts into the memory what does not change.
func (p *plan) place(mem []byte) {
	for _, l := range p.matrices {
		l.place(mem)
	}
	p.placeUnit(mem)
	if p.layers != nil {
		p.layers.place(mem)
	}
	if p.mixture != nil {
		p.mixture.gated.start(mem)
	}
}
