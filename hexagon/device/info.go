package device

// Info describes a device in its own words. Zero and empty fields are unknown.
type Info struct {
	Arch                 string  `json:"arch"`
	Contexts             int     `json:"contexts"`               // threads with vector registers
	TCM                  int     `json:"tcm_bytes"`              // that packets may use
	Source               string  `json:"source"`                 // hash of the program that computes
	CyclesPerMicrosecond float64 `json:"cycles_per_microsecond"` // of a thread
	Without              string  `json:"without,omitempty"`      // a call that failed, which it does without
}

// Describer is a device that says of itself what it is.
type Describer interface{ Describe() Info }

// Describe returns what d says of itself.
func Describe(d Device) Info {
	info := Info{TCM: TCMBytes}
	if d, ok := d.(Describer); ok {
		info = d.Describe()
	}
	return info
}

// Describe says that there is no chip.
func (g *Go) Describe() Info {
	n := 1
	if g.pool != nil {
		n = g.pool.Threads()
	}
	return Info{Arch: "none, in Go", Contexts: n, TCM: TCMBytes}
}
