//go:build !linux

package qemu

import (
	"errors"

	"github.com/lutra-lm/lutra/hexagon/device"
)

// Device does not exist here.
type Device struct{ device.Device }

// Open says so.
func Open(Options) (*Device, error) {
	return nil, errors.New("hexagon: the emulated device needs Linux, for qemu-hexagon runs there alone")
}
