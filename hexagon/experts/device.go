package experts

import (
	"fmt"
	"strings"
)

// Device is what a plan knows of an NPU.
type Device struct {
	Name string `json:"name"`
	// Rows is what capacities are multiples of.
	Rows int `json:"rows"`
	// GroupBytes is the largest graph: a group with more weights falls back to the CPU.
	// 0: there is no bound but Bytes.
	GroupBytes int64 `json:"group_bytes"`
	// Bytes is what all weights on the device may have together; 0: there is no bound.
	Bytes int64 `json:"bytes"`
	// WeightBits is what a weight takes there; 0: what it takes in the model.
	WeightBits int    `json:"weight_bits"`
	Costs      Costs  `json:"costs"`
	Source     string `json:"source"` // of all of these
}

// Costs are times, in units of what one more row of a launched expert takes.
type Costs struct {
	Launch  float64 `json:"launch"`   // of a group
	Expert  float64 `json:"expert"`   // of each expert of a launch, however few its rows
	HostRow float64 `json:"host_row"` // of a row of an expert on the CPU
}

// measured are the costs on M2 Ultra for Phi-3.5-MoE. A row of a launch of G experts of
// C rows takes (launch/G + expert)/C + row; the serial figures of NPUMoE's Table 5 up to
// 128 rows are that within 7 %, with 2.5, 4.6 and 0.103 ms. On the CPU the 2048 rows of
// Table 4 take 970 ms.
var measured = Costs{Launch: 24, Expert: 45, HostRow: 4.6}

// The devices. A Hexagon has tiles of 32 rows, and addresses of 32 bits for all of a
// session; the Neural Engine computes in fp16, and runs graphs of up to 1.2 GB.
var devices = []Device{
	hexagonDevice("8gen2", 2<<30), hexagonDevice("8gen3", 4<<30), hexagonDevice("elite", 4<<30), hexagonDevice("elite5", 4<<30),
	appleDevice("m2-max", "assumed to be as on m2-ultra"), appleDevice("m2-ultra", "graphs: NPUMoE §4.2; costs: fitted to its Tables 4 and 5"),
}

func hexagonDevice(name string, bytes int64) Device {
	return Device{Name: name, Rows: 32, Bytes: bytes, Costs: measured, Source: "tiles and addresses: its architecture; costs: assumed to be as on m2-ultra"}
}

func appleDevice(name, source string) Device {
	const graph = 6 << 30 / 5 // 8 experts of 150 MB fit, as the paper runs them, with MB of 2^20
	return Device{Name: name, Rows: 16, GroupBytes: graph, WeightBits: 16, Costs: measured, Source: source}
}

// Devices lists the names of the devices.
func Devices() (names []string) {
	for _, d := range devices {
		names = append(names, d.Name)
	}
	return names
}

// NamedDevice is the device with that name.
func NamedDevice(name string) (Device, error) {
	for _, d := range devices {
		if d.Name == name {
			return d, nil
		}
	}
	return Device{}, fmt.Errorf("there is no device %.40q (have %s)", name, strings.Join(Devices(), ", "))
}

// Bounds of what a file may say.
const (
	mostRows  = 1 << 10
	mostBytes = 1 << 50
	mostBits  = 64
	mostCost  = 1 << 20
)

// Check reports what no device is.
func (d Device) Check() error {
	switch {
	case len(d.Name) > mostName || len(d.Source) > mostName:
		return fmt.Errorf("a device's name of %d and source of %d bytes", len(d.Name), len(d.Source))
	case d.Rows < 1 || d.Rows > mostRows:
		return fmt.Errorf("a device whose capacities are multiples of %d rows", d.Rows)
	case d.GroupBytes < 0 || d.GroupBytes > mostBytes || d.Bytes < 0 || d.Bytes > mostBytes || d.WeightBits < 0 || d.WeightBits > mostBits:
		return fmt.Errorf("a device of %d bytes a graph, %d in all and %d bits a weight", d.GroupBytes, d.Bytes, d.WeightBits)
	}
	for _, x := range []float64{d.Costs.Launch, d.Costs.Expert, d.Costs.HostRow} {
		if !(x >= 0 && x <= mostCost) {
			return fmt.Errorf("a device with a cost of %v rows", x)
		}
	}
	return nil
}
