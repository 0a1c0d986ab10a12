package hexagon

// Placement says what of a model with experts is computed where (NPUMoE, Table 2).
// Routing, norms and tokens that are generated are the host's in all of them.
type Placement string

// The placements, in the paper's order.
const (
	PlacementCPU       Placement = "cpu"       // nothing on the NPU
	PlacementNaive     Placement = "naive"     // experts, each a graph of its own with room for a whole chunk
	PlacementAttention Placement = "attention" // attention and all matrices but the experts'
	PlacementAll       Placement = "all"       // both, experts by a plan
)

// Placements lists all placements.
func Placements() []string {
	return []string{string(PlacementCPU), string(PlacementNaive), string(PlacementAttention), string(PlacementAll)}
}

// dense tells whether the NPU has attention and the matrices of all rows, and experts
// whether it has experts.
func (p Placement) dense() bool   { return p == PlacementAttention || p == PlacementAll || p == "" }
func (p Placement) experts() bool { return p == PlacementNaive || p == PlacementAll || p == "" }
