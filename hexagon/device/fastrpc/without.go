//go:build !fastrpc || !linux

package fastrpc

import (
	"errors"

	"github.com/lutra-lm/lutra/hexagon/device"
)

// Device does not exist here.
type Device struct{ device.Device }

// Open says so.
func Open(o Options) (*Device, error) {
	if o.Step != nil {
		o.Step(StepLibrary)
	}
	return nil, errors.New("hexagon: this program cannot load FastRPC's library: build it for Linux or Android with -tags fastrpc")
}
