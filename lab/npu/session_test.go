package npu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/device/fastrpc"
	"github.com/lutra-lm/lutra/hexagon/device/qemu"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
)

// The emulated device is opened with the bytes of the plan, and with a page less.
func TestASessionOpensWithWhatThePlanSaysAndNotWithAPageLess(t *testing.T) {
	sweep.Hexagon(t, "qemu-hexagon")
	const model = "lutra-tiny-s"
	p, err := NewPlan(named(t, stepModel), DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	o := DefaultRequestsOptions()
	o.Model = model
	if err := p.Load(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	const page = 4096
	for _, less := range []int{0, page} {
		opt, err := o.Hexagon.Options()
		if err != nil {
			t.Fatal(err)
		}
		opt.Pool = pool.New(1)
		defer opt.Pool.Close()
		b := hexagon.New("emulated", func(bytes int) (device.Device, error) {
			if int64(bytes) != p.Session {
				t.Errorf("a session of %d bytes, the plan says %d", bytes, p.Session)
			}
			return qemu.Open(qemu.Options{Memory: bytes - less, Pool: opt.Pool})
		}, opt)
		f, err := embedded.Open(model)
		if err != nil {
			t.Fatal(err)
		}
		bundle, err := models.LoadFile(f, models.LoadOptions{Backend: b, Pool: opt.Pool})
		if err != nil {
			t.Fatal(err)
		}
		defer bundle.Close()
		err = b.Start()
		want := fmt.Sprintf("the device has %d bytes of memory, %d are needed", p.Session-page, p.Session)
		if less == 0 && err != nil || less > 0 && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d bytes less: %v", less, err)
		}
	}
}

func TestAPlanFitsUpToWhatASessionOfItsChipMaps(t *testing.T) {
	p, err := NewPlan(named(t, stepModel), DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Chips {
		most := int64(fastrpc.MostMemory(c.Arch))
		for bytes, want := range map[int64]bool{most: true, most + 1: false} {
			p.opens(bytes)
			for _, now := range p.Chips {
				if now.ID == c.ID && now.Fits != want {
					t.Errorf("%s: a session of %d bytes fits: %t, want %t", c.Name, bytes, now.Fits, want)
				}
			}
		}
	}
}
