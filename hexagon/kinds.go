package hexagon

import (
	"fmt"
	"strings"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/device/fastrpc"
	"github.com/lutra-lm/lutra/hexagon/device/qemu"
)

// kinds are the devices that can be asked for by name.
var kinds = []struct {
	name string
	open func(bytes int, opt *Options) (device.Device, error)
}{
	{"hexagon-go", func(bytes int, opt *Options) (device.Device, error) { return device.NewGo(opt.Pool, bytes) }},
	{"hexagon-qemu", func(bytes int, opt *Options) (device.Device, error) {
		return qemu.Open(qemu.Options{Memory: bytes, Limit: opt.Timeout, Pool: opt.Pool})
	}},
	{"hexagon", func(bytes int, opt *Options) (device.Device, error) {
		return fastrpc.Open(fastrpc.Options{Memory: bytes, Limit: opt.Timeout})
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
		b := New(name, func(bytes int) (device.Device, error) { return k.open(bytes, &opt) }, opt)
		opt.Timeout = b.opt.Timeout
		trial, err := k.open(device.TCMBytes+pageBytes, &opt)
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
