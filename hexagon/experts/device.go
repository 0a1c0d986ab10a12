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
	// Bytes is what all graphs may have together; 0: there is no bound.
	Bytes int64 `json:"bytes"`
	// HotRows is the least rows, expected of a chunk, that are worth a launch.
	HotRows int `json:"hot_rows"`
	// WeightBits is what a weight takes there; 0: what it takes in the model.
	WeightBits int    `json:"weight_bits"`
	Source     string `json:"source"`
}

// hotRows: below 64 rows a product is hardly faster on the NPU (NPUMoE, Figure 7), and
// 4 experts of 16 rows are the smallest groups that the paper gives it (§4.2).
const hotRows = 64

// The devices. A Hexagon has tiles of 32 rows, and addresses of 32 bits for all of a
// session; the Neural Engine computes in fp16, and runs graphs of up to 1.2 GB.
var devices = []Device{
	hexagonDevice("8gen2", 2<<30), hexagonDevice("8gen3", 4<<30), hexagonDevice("elite", 4<<30), hexagonDevice("elite5", 4<<30),
	appleDevice("m2-max", "NPUMoE §4.2 has it for M2 Ultra; assumed to be the same"), appleDevice("m2-ultra", "NPUMoE §4.2"),
}

func hexagonDevice(name string, bytes int64) Device {
	return Device{Name: name, Rows: 32, Bytes: bytes, HotRows: hotRows, Source: "tiles of 32 rows; the addresses of a session"}
}

func appleDevice(name, source string) Device {
	return Device{Name: name, Rows: 16, GroupBytes: 1_200_000_000, HotRows: hotRows, WeightBits: 16, Source: "graphs of at most 1.2 GB: " + source}
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
)

// Check reports what no device is.
func (d Device) Check() error {
	switch {
	case len(d.Name) > mostName || len(d.Source) > mostName:
		return fmt.Errorf("a device's name of %d and source of %d bytes", len(d.Name), len(d.Source))
	case d.Rows < 1 || d.Rows > mostRows || d.HotRows < 0 || d.HotRows > MostChunk*mostExperts:
		return fmt.Errorf("a device whose capacities are multiples of %d rows, and launches worth %d", d.Rows, d.HotRows)
	case d.GroupBytes < 0 || d.GroupBytes > mostBytes || d.Bytes < 0 || d.Bytes > mostBytes || d.WeightBits < 0 || d.WeightBits > mostBits:
		return fmt.Errorf("a device of %d bytes a graph, %d in all and %d bits a weight", d.GroupBytes, d.Bytes, d.WeightBits)
	}
	return nil
}
