package hexagon

import (
	"fmt"
	"strings"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/device/fastrpc"
	"github.com/lutra-lm/lutra/hexagon/device/qemu"
)

// Chip is the name of the device that is no emulation.
const Chip = "hexagon"

// kinds are the devices that can be asked for by name.
var kinds = []struct {
	name string
	open func(bytes int, opt *Options, step func(name string)) (device.Device, error)
}{
	{"hexagon-go", func(bytes int, opt *Options, step func(string)) (device.Device, error) {
		step("making a device in Go")
		return device.NewGo(opt.Pool, bytes)
	}},
	{"hexagon-qemu", func(bytes int, opt *Options, step func(string)) (device.Device, error) {
		step(stepEmulator)
		return qemu.Open(qemu.Options{Memory: bytes, Limit: opt.Timeout, Pool: opt.Pool})
	}},
	{Chip, func(bytes int, opt *Options, step func(string)) (device.Device, error) {
		return fastrpc.Open(fastrpc.Options{Memory: bytes, Limit: opt.Timeout, Step: step})
	}},
}

// Kinds returns the names that Open takes.
func Kinds() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// Open makes the backend of that name. It makes a small device for a moment, so that
// what this machine lacks is known before a model is read.
func Open(name string, opt Options) (*Backend, error) {
	for _, k := range kinds {
		if k.name != name {
			continue
		}
		b := New(name, func(bytes int) (device.Device, error) { return k.open(bytes, &opt, func(string) {}) }, opt)
		opt.Timeout = b.opt.Timeout
		trial, err := OpenDevice(name, device.TCMBytes+pageBytes, opt, func(string) {})
		if err == nil {
			err = trial.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("the backend %s cannot run here: %w", name, err)
		}
		return b, nil
	}
	return nil, fmt.Errorf("there is no backend %q; have %s", name, strings.Join(Kinds(), ", "))
}

// OpenDevice opens the device of that name alone, with so much memory, and calls step before each
// call that does a part of it.
func OpenDevice(name string, bytes int, opt Options, step func(name string)) (device.Device, error) {
	for _, k := range kinds {
		if k.name == name {
			return k.open(bytes, &opt, step)
		}
	}
	return nil, fmt.Errorf("there is no backend %q; have %s", name, strings.Join(Kinds(), ", "))
}

// Try returns what may repair a step of OpenDevice that failed; "" where nothing is known.
func Try(step string) string {
	if step == stepEmulator {
		return "install qemu-user of version 7.2 or later, as Debian's package of that name, or name another emulator in " + qemu.EmulatorEnv
	}
	return fastrpc.Try(step)
}

const stepEmulator = "starting the library's program under qemu-hexagon"
