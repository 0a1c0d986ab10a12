package config

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/internal/output"
)

// Hexagon says how models use a Hexagon NPU, or what stands in for one.
type Hexagon struct {
	Path     string        `yaml:"path"`     // of products: one of hexagon.Paths
	Round    string        `yaml:"round"`    // weights that the device does not hold exactly: none, or one of hexagon.Roundings
	Timeout  time.Duration `yaml:"timeout"`  // the longest that the device may take for what it is given at once
	Keys     string        `yaml:"keys"`     // memory for the keys and values that the device keeps, with a unit ("32MiB")
	Fallback string        `yaml:"fallback"` // what computes once the device has failed: none or cpu

	// Of models with experts.
	Placement string `yaml:"placement"` // one of hexagon.Placements
	Decode    string `yaml:"decode"`    // where rows of no chunk of a prompt are computed: cpu or npu
	Plan      string `yaml:"plan"`      // a file of lutra-lab npu plan --moe --json; empty: a plan without calibration
}

// CPU is the backend that every machine has.
const CPU = "cpu"

// Backends returns the values of Config.Backend.
func Backends() []string { return append([]string{CPU}, hexagon.Kinds()...) }

// DefaultHexagon takes what is fastest, and no fallback.
func DefaultHexagon() Hexagon {
	return Hexagon{Path: string(hexagon.PathAuto), Round: string(hexagon.RoundNone), Timeout: hexagon.DefaultTimeout, Keys: "32MiB", Fallback: noFallback,
		Placement: string(hexagon.PlacementAll), Decode: CPU}
}

const noFallback = "none"

const npu = "npu" // of Hexagon.Decode, beside CPU

// Spare tells whether the CPU takes over from a device that has failed.
func (h Hexagon) Spare() bool { return h.Fallback == CPU }

// Options returns the backend's options. It reads the plan.
func (h Hexagon) Options() (hexagon.Options, error) {
	o := hexagon.Options{Path: hexagon.Path(h.Path), Round: hexagon.Rounding(h.Round), Timeout: h.Timeout,
		Placement: hexagon.Placement(h.Placement), Decode: h.Decode == npu}
	keys, err := size(h.Keys)
	if o.Keys = int(keys); err != nil || h.Plan == "" {
		return o, err
	}
	if o.Plan, err = experts.OpenPlan(h.Plan); err != nil {
		err = fmt.Errorf("hexagon.plan: %w", err)
	}
	return o, err
}

// BackendOf returns the name of the backend that computes m.
func (c *Config) BackendOf(m Model) string { return cmp.Or(m.Backend, c.Backend, CPU) }

// Bounds of Hexagon.Timeout, and of Hexagon.Keys, which lie in one mapping of a device.
const (
	longestTimeout = time.Hour
	mostKeys       = device.MappingBytes
)

// checkBackends adds the faults of the settings of backends.
func (c *Config) checkBackends(f *faults) {
	f.words("backend", c.Backend, Backends()...)
	for i, m := range c.Models {
		if m.Backend != "" {
			f.words(fmt.Sprintf("models[%d].backend", i), m.Backend, Backends()...)
		}
	}
	for i, v := range c.Verifiers {
		if v.Backend != "" {
			f.words(fmt.Sprintf("verifiers[%d].backend", i), v.Backend, Backends()...)
		}
	}
	f.words("hexagon.path", c.Hexagon.Path, hexagon.Paths()...)
	f.words("hexagon.round", c.Hexagon.Round, hexagon.Roundings()...)
	f.words("hexagon.fallback", c.Hexagon.Fallback, noFallback, CPU)
	f.words("hexagon.placement", c.Hexagon.Placement, hexagon.Placements()...)
	f.words("hexagon.decode", c.Hexagon.Decode, CPU, npu)
	if c.Hexagon.Plan != "" && !slices.ContainsFunc(c.Models, func(m Model) bool { return c.BackendOf(m) != CPU }) {
		f.add("hexagon.plan: no model has a Hexagon backend, which the plan is for")
	}
	if n, err := size(c.Hexagon.Keys); err != nil {
		f.add("hexagon.keys: %v", err)
	} else if n > mostKeys {
		f.add("hexagon.keys: %s is more than %s", output.Bytes(n), output.Bytes(mostKeys))
	}
	if t := c.Hexagon.Timeout; t < time.Millisecond || t > longestTimeout {
		f.add("hexagon.timeout: %v is outside 1ms..%v", t, longestTimeout)
	}
}
