package planning

import (
	"fmt"
	"strings"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/lab/npu/soc"
)

// launchTime returns the milliseconds of a launch for rows of macs multiply-adds, padding
// included.
func launchTime(c *experts.Costs, bytes int64, rows int, macs float64) float64 {
	return c.Launch + float64(bytes)/(1e6*c.Read) + float64(rows)*macs/(1e6*c.Device)
}

// hostTime returns the milliseconds of such rows on the CPU, which reads bytes of weights for
// them.
func hostTime(c *experts.Costs, bytes, rows, macs float64) float64 {
	t := rows * macs / (1e6 * c.Host)
	if c.HostRead > 0 {
		t += bytes / (1e6 * c.HostRead)
	}
	return t
}

// touched returns the bytes of a group's experts that its rows want: on average less than one
// row is none for many a chunk.
func touched(g *experts.Group) float64 {
	return float64(g.Bytes) * min(1, g.Expected.Rows/float64(max(1, len(g.Experts))))
}

// apple are the costs on M2 Ultra for Phi-3.5-MoE, whose experts have 78.6 million
// weights. A row of a launch of G experts of C rows takes (launch/G + weights)/C + row;
// the serial figures of NPUMoE's Table 5 up to 128 rows are that within 7 %, with 2.5, 4.6
// and 0.103 ms; of 192 and 256 rows they are 14 and 24 % more. The CPU's rates are fitted to
// Table 4 (four chunks of 16 experts with 2048 rows: 970 ms) and to what larger chunks gain
// (§5.3).
var apple = experts.Costs{Launch: 2.5, Read: 34.2, Device: 763, Host: 500, HostRead: 14.6}

// devices returns the chips of package soc, and the Neural Engines that NPUMoE measures. A
// Hexagon has tiles of 32 rows, and addresses for all that a session has; a Neural Engine
// computes in fp16, and runs graphs of up to 1.2 GB.
func devices() []experts.Device {
	var list []experts.Device
	for _, c := range soc.Chips() {
		list = append(list, experts.Device{Name: c.ID, Rows: tileRows, Bytes: int64(c.Addresses.Value),
			Costs:  experts.Costs{Launch: c.Request.Value, Read: c.DMA.Value, Device: c.TileUnit.Value * c.TileShare.Value / 2, Host: c.HostCompute.Value / 2, HostRead: c.HostBandwidth.Value},
			Source: "the chip of package soc; a launch is a request"})
	}
	const graph = 6 << 30 / 5 // 8 experts of 150 MB fit, as the paper runs them, with MB of 2^20
	ultra := experts.Device{Name: "m2-ultra", Rows: 16, GroupBytes: graph, WeightBits: 16, Costs: apple, Source: "graphs: NPUMoE §4.2; costs: fitted to its Tables 4 and 5, §5.3"}
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

// NamedDevice returns the device with that name.
func NamedDevice(name string) (experts.Device, error) {
	for _, d := range devices() {
		if d.Name == name {
			return d, nil
		}
	}
	return experts.Device{}, fmt.Errorf("there is no device %.40q (have %s)", name, strings.Join(Devices(), ", "))
}

// rowMACs returns the multiply-adds of one row of an expert.
func rowMACs(s experts.Shape) float64 { return 3 * float64(s.Hidden) * float64(s.Width) }
