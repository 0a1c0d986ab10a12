package kernels

// groupedActs holds rows quantised to int8 with one absmax scale each 32 columns.
type groupedActs struct{ ready bool }

func (g *groupedActs) reset() { g.ready = false }
