package experts

import (
	"fmt"
)

// Device describes an NPU to a plan.
type Device struct {
	Name string `json:"name"`
	// Rows divides every capacity.
	Rows int `json:"rows"`
	// GroupBytes is the largest graph: a group with more weights falls back to the CPU.
	// 0: there is no bound but Bytes.
	GroupBytes int64 `json:"group_bytes"`
	// Bytes bounds all weights on the device together; 0: there is no bound.
	Bytes int64 `json:"bytes"`
	// WeightBits is the size of a weight there; 0: its size in the model.
	WeightBits int    `json:"weight_bits"`
	Costs      Costs  `json:"costs"`
	Source     string `json:"source"` // of all of these
}

// Costs holds the costs of a device, and of the CPU beside it.
type Costs struct {
	Launch float64 `json:"launch_ms"`    // of a group: dispatch and synchronisation
	Read   float64 `json:"read_gbs"`     // weights that a launch reads, in 1e9 bytes a second
	Device float64 `json:"device_gmacs"` // multiply-adds, in 1e9 a second
	Host   float64 `json:"host_gmacs"`   // the CPU's
	// HostRead is the rate at which the CPU reads the weights of the experts that a chunk has rows
	// for, in 1e9 bytes a second; 0: that takes no time.
	HostRead float64 `json:"host_read_gbs,omitempty"`
}

// Bounds of what a file may say.
const (
	mostRows  = 1 << 10
	mostBytes = 1 << 50
	mostBits  = 64
	mostCost  = 1e12
)

// Check reports what no device is.
func (d Device) Check() error {
	switch {
	case len(d.Name) > MostName || len(d.Source) > MostName:
		return fmt.Errorf("a device's name of %d and source of %d bytes", len(d.Name), len(d.Source))
	case d.Rows < 1 || d.Rows > mostRows:
		return fmt.Errorf("a device whose capacities are multiples of %d rows", d.Rows)
	case d.GroupBytes < 0 || d.GroupBytes > mostBytes || d.Bytes < 0 || d.Bytes > mostBytes || d.WeightBits < 0 || d.WeightBits > mostBits:
		return fmt.Errorf("a device of %d bytes a graph, %d in all and %d bits a weight", d.GroupBytes, d.Bytes, d.WeightBits)
	}
	for _, x := range []float64{1 + d.Costs.Launch, d.Costs.Read, d.Costs.Device, d.Costs.Host, 1 + d.Costs.HostRead} {
		if !(x >= 1/mostCost && x <= mostCost) {
			return fmt.Errorf("a device whose costs are %+v", d.Costs)
		}
	}
	if !(d.Costs.Launch >= 0) || !(d.Costs.HostRead >= 0) {
		return fmt.Errorf("a device whose launches take %v ms, beside a CPU that reads %v GB/s", d.Costs.Launch, d.Costs.HostRead)
	}
	return nil
}
