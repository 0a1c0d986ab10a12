package device

// TCM returns the device's TCM, for tests.
func (g *Go) TCM() []byte { return g.tcm }
