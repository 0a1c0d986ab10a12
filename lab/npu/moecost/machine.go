package moecost

import (
	"fmt"
	"strings"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/lab/npu/planning"
	"github.com/lutra-lm/lutra/lab/npu/soc"
)

// Planned is the source of constants in plans (package experts), beside the sources of package soc.
const Planned soc.Source = "P"

// Machine describes a computer with an NPU to the model.
type Machine struct {
	Name   string         `json:"name"`
	Device experts.Device `json:"device"` // what its plans may have, and what launches and rows of experts take

	Load soc.Number `json:"load"` // bandwidth at which a graph that is not resident is made ready, before each launch

	HostRate      soc.Number `json:"host_rate"`      // of products of a whole chunk on the CPU
	HostBandwidth soc.Number `json:"host_bandwidth"` // for gathering and scattering rows
	HostClock     soc.Number `json:"host_clock"`     // all cores together
	WaitCycles    soc.Number `json:"wait_cycles"`    // share of its cycles that a CPU runs while it waits for the NPU

	HostPower   soc.Number `json:"host_power"`   // of a busy CPU
	WaitPower   soc.Number `json:"wait_power"`   // of a CPU that waits for the NPU
	NPUPower    soc.Number `json:"npu_power"`    // of a busy NPU
	MemoryPower soc.Number `json:"memory_power"` // always: moving data

	units *soc.Machine // of a Snapdragon: they are in place of what Device says of products
}

// ultra is the machine that the paper measures most.
var ultra = Machine{
	Name:          "Apple M2 Ultra",
	Load:          soc.Number{Value: 4, Unit: "GB/s", Source: soc.Fitted, Note: "Table 4: the naive placement's experts take 3370 ms, 39 ms a launch more than their products"},
	HostRate:      soc.Number{Value: 825, Unit: "GFLOPS", Source: soc.Fitted, Note: "Figure 7: the NPU is 1.4 to 2.3 times faster; 1.85 here"},
	HostBandwidth: soc.Number{Value: 100, Unit: "GB/s", Source: soc.Assumed, Note: "of copies on the CPU"},
	HostClock:     soc.Number{Value: 24 * 3.5, Unit: "GHz", Source: soc.Assumed, Note: "24 cores"},
	WaitCycles:    soc.Number{Value: 0.55, Unit: "of all", Source: soc.Fitted, Note: "§5.5: the six figures of a prompt of 1024, of 1.78 to 3.78 times the cycles"},
	HostPower:     soc.Number{Value: 8.5, Unit: "W", Source: soc.Fitted, Note: "Table 7: 9.66 J in Table 6's 1.139 s"},
	WaitPower:     soc.Number{Value: 1.9, Unit: "W", Source: soc.Fitted, Note: "Table 7: what is left of 1.23 J"},
	NPUPower:      soc.Number{Value: 2.2, Unit: "W", Source: soc.Fitted, Note: "Table 7: 1.20 J in Table 6's 0.550 s"},
	MemoryPower:   soc.Number{Value: 2.6, Unit: "W", Source: soc.Fitted, Note: "Table 7: 3.01 J in 1.139 s"},
}

// max2 assumes an M2 Max to be as an Ultra, which is two of them: a queue keeps one busy.
func max2() Machine {
	m := ultra
	m.Name = "Apple M2 Max"
	for _, n := range []*soc.Number{&m.Load, &m.HostRate, &m.HostBandwidth, &m.HostClock, &m.WaitCycles, &m.HostPower, &m.WaitPower, &m.NPUPower, &m.MemoryPower} {
		n.Source, n.Note = soc.Assumed, "as on M2 Ultra"
	}
	return m
}

// snapdragon returns a chip whose units compute its products (package soc).
func snapdragon(c soc.Chip) Machine {
	m := Machine{
		Name:          c.Name,
		Load:          soc.Number{Value: 4, Unit: "GB/s", Source: soc.Assumed, Note: "as on M2 Ultra"},
		HostRate:      c.HostCompute,
		HostBandwidth: c.HostBandwidth,
		HostClock:     soc.Number{Value: 4 * 3, Unit: "GHz", Source: soc.Assumed, Note: "four cores"},
		WaitCycles:    soc.Number{Value: 0.55, Unit: "of all", Source: soc.Assumed, Note: "as on M2 Ultra"},
		HostPower:     soc.Number{Value: 8.22, Unit: "W", Source: soc.TMan, Note: "Table 3, bitnet.cpp, whole device"},
		NPUPower:      c.PrefillPower,
		units:         soc.NewMachine(c),
	}
	for _, n := range []*soc.Number{&m.WaitPower, &m.MemoryPower} {
		*n = soc.Number{Unit: "W", Source: soc.TMan, Note: "part of the whole device's"}
	}
	return m
}

// Named returns the machine whose plans are for that device (package experts).
func Named(id string) (*Machine, error) {
	device, err := planning.NamedDevice(id)
	if err != nil {
		return nil, err
	}
	var m Machine
	switch {
	case id == "m2-ultra":
		m = ultra
	case id == "m2-max":
		m = max2()
	default:
		chip, err := soc.Named(id)
		if err != nil {
			return nil, fmt.Errorf("%w; others are %s", err, strings.Join([]string{"m2-max", "m2-ultra"}, ", "))
		}
		m = snapdragon(chip)
	}
	m.Device = device
	return &m, nil
}

// Numbers returns the machine's constants with their names, in the order of documents.
func (m *Machine) Numbers() []soc.NamedNumber {
	d := m.Device.Costs
	of := func(name string, value float64, unit string) soc.NamedNumber {
		return soc.NamedNumber{Name: name, Number: soc.Number{Value: value, Unit: unit, Source: Planned, Note: m.Device.Source}}
	}
	return []soc.NamedNumber{
		of("launch", d.Launch, "ms"), of("NPU, weights", d.Read, "GB/s"), of("NPU, products", 2*d.Device, "GFLOPS"), of("CPU, experts", 2*d.Host, "GFLOPS"), of("CPU, experts' weights", d.HostRead, "GB/s"),
		{Name: "loading a graph", Number: m.Load}, {Name: "CPU, large products", Number: m.HostRate}, {Name: "CPU, copies", Number: m.HostBandwidth},
		{Name: "CPU, clock of all cores", Number: m.HostClock}, {Name: "CPU, cycles while it waits", Number: m.WaitCycles},
		{Name: "power, CPU", Number: m.HostPower}, {Name: "power, CPU that waits", Number: m.WaitPower},
		{Name: "power, NPU", Number: m.NPUPower}, {Name: "power, memory", Number: m.MemoryPower},
	}
}
