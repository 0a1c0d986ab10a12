package hexagon

import "github.com/lutra-lm/lutra/hexagon/queue"

// Placement says what of a model with experts is computed where (NPUMoE, Table 2).
// Routing, norms and tokens that are generated are the host's in all of them.
type Placement string

// The placements, by the names under which package queue models their time.
const (
	PlacementCPU       = Placement(queue.AllCPU)    // nothing on the NPU
	PlacementNaive     = Placement(queue.Naive)     // experts, each a graph of its own with room for a whole chunk
	PlacementAttention = Placement(queue.Attention) // attention and all matrices but the experts'
	PlacementAll       = Placement(queue.All)       // both, experts by a plan
)

// Placements lists all placements.
func Placements() (names []string) {
	for _, p := range queue.Placements() {
		names = append(names, string(p))
	}
	return names
}

// dense tells whether the NPU has attention and the matrices of all rows, and experts
// whether it has experts.
func (p Placement) dense() bool   { return p == PlacementAttention || p == PlacementAll || p == "" }
func (p Placement) experts() bool { return p == PlacementNaive || p == PlacementAll || p == "" }
