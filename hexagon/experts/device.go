package experts

import (
	"fmt"
	"strings"

	"github.com/lutra-lm/lutra/hexagon/soc"
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

// Costs are what a device takes, and the CPU beside it.
type Costs struct {
	Launch float64 `json:"launch_ms"`    // of a group: dispatch and synchronisation
	Read   float64 `json:"read_gbs"`     // weights that a launch reads, in 1e9 bytes a second
	Device float64 `json:"device_gmacs"` // multiply-adds, in 1e9 a second
	Host   float64 `json:"host_gmacs"`   // the CPU's
}

// launch is the milliseconds of a launch for rows of so many multiply-adds, padding
// included.
func (c *Costs) launch(bytes int64, rows int, macs float64) float64 {
	return c.Launch + float64(bytes)/(1e6*c.Read) + float64(rows)*macs/(1e6*c.Device)
}

// host is the milliseconds of such rows on the CPU.
func (c *Costs) host(rows, macs float64) float64 { return rows * macs / (1e6 * c.Host) }

// apple are the costs on M2 Ultra for Phi-3.5-MoE, whose experts have 78.6 million
// weights. A row of a launch of G experts of C rows takes (launch/G + weights)/C + row;
// the serial figures of NPUMoE's Table 5 up to 128 rows are that within 7 %, with 2.5, 4.6
// and 0.103 ms. On the CPU the 2048 rows of Table 4 take 970 ms.
var apple = Costs{Launch: 2.5, Read: 34.2, Device: 763, Host: 166}

// hexagonLaunch is assumed: neither paper on Hexagon has it.
const hexagonLaunch = 0.2 // ms

// devices are the chips of package soc, and the Neural Engines that NPUMoE measures. A
// Hexagon has tiles of 32 rows, and addresses for all that a session has; a Neural Engine
// computes in fp16, and runs graphs of up to 1.2 GB.
func devices() []Device {
	var list []Device
	for _, c := range soc.Chips() {
		list = append(list, Device{Name: c.ID, Rows: tileRows, Bytes: int64(c.Addresses.Value),
			Costs:  Costs{Launch: hexagonLaunch, Read: c.DMA.Value, Device: c.TileUnit.Value / 2, Host: c.HostCompute.Value / 2},
			Source: "bounds of package soc; the launch is assumed"})
	}
	const graph = 6 << 30 / 5 // 8 experts of 150 MB fit, as the paper runs them, with MB of 2^20
	ultra := Device{Name: "m2-ultra", Rows: 16, GroupBytes: graph, WeightBits: 16, Costs: apple, Source: "graphs: NPUMoE §4.2; costs: fitted to its Tables 4 and 5"}
	most := ultra
	most.Name, most.Source = "m2-max", "assumed to be as m2-ultra"
	return append(list, most, ultra)
}

// tileRows is the rows of a Hexagon's tiles.
const tileRows = 32

// Devices lists the names of the devices.
func Devices() (names []string) {
	for _, d := range devices() {
		names = append(names, d.Name)
	}
	return names
}

// NamedDevice is the device with that name.
func NamedDevice(name string) (Device, error) {
	for _, d := range devices() {
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
	mostCost  = 1e12
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
	for _, x := range []float64{1 + d.Costs.Launch, d.Costs.Read, d.Costs.Device, d.Costs.Host} {
		if !(x >= 1/mostCost && x <= mostCost) {
			return fmt.Errorf("a device whose costs are %+v", d.Costs)
		}
	}
	if !(d.Costs.Launch >= 0) {
		return fmt.Errorf("a device whose launches take %v ms", d.Costs.Launch)
	}
	return nil
}
