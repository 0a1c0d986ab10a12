package selftest_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/selftest"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/cpu"
)

// chip is a device in Go whose memory the host does not share. Bytes that either side writes are copied to the
// other side before a run and after it, unless a fault withholds them. The host's view of TCM is nonsense.
type chip struct {
	*device.Go
	host  []byte
	seen  int // the end of what both sides see
	runs  int
	fault *fault
}

// fault is what is wrong with a chip.
type fault struct {
	name string
	want string // the beginning of the fault in the verdict

	open   func(step string) error
	packet func(p *device.Packet) // changed before it runs
	after  func(p device.Packet, mem []byte)
	run    func(ctx context.Context, packets []device.Packet) error
	unseen func(run int) (at, n int) // of the host's writes, by the device
	unread func(run int) (at, n int) // of the device's writes, by the host
}

// sees returns how much of the memory of a chip with a fault is copied: without measurements little is used.
func (f *fault) sees() int {
	if f.name == "" {
		return 1 << 30
	}
	return device.TCMBytes + 9<<20
}

func open(f *fault) func(bytes int, step func(string)) (device.Device, error) {
	return func(bytes int, step func(string)) (device.Device, error) {
		for _, name := range []string{"making a queue", "mapping memory"} {
			if step(name); f.open != nil {
				if err := f.open(name); err != nil {
					return nil, err
				}
			}
		}
		d, err := device.NewGo(nil, bytes)
		if err != nil {
			return nil, err
		}
		host := cpu.Aligned[uint8](bytes)
		for i := range host[:device.TCMBytes] {
			host[i] = 0x5a
		}
		return &chip{Go: d, host: host, seen: min(bytes, f.sees()), fault: f}, nil
	}
}

func (c *chip) Memory() []byte { return c.host }

func (c *chip) Run(ctx context.Context, packets []device.Packet) (device.Counts, error) {
	c.runs++
	mem := c.Go.Memory()
	move := func(to, from []byte, withheld func(run int) (at, n int)) {
		at, n := device.TCMBytes, 0
		if withheld != nil {
			at, n = withheld(c.runs)
		}
		copy(to[device.TCMBytes:at], from[device.TCMBytes:at])
		copy(to[at+n:c.seen], from[at+n:])
	}
	move(mem, c.host, c.fault.unseen)
	if c.fault.run != nil {
		if err := c.fault.run(ctx, packets); err != nil {
			return device.Counts{}, err
		}
	}
	for i, p := range packets {
		if c.fault.packet != nil {
			c.fault.packet(&p)
		}
		if _, err := c.Go.Run(ctx, []device.Packet{p}); err != nil {
			var refused *device.PacketError
			if errors.As(err, &refused) {
				refused.Index = i
			}
			return device.Counts{}, err
		}
		if c.fault.after != nil {
			c.fault.after(packets[i], mem)
		}
	}
	move(c.host, mem, c.fault.unread)
	return device.Counts{}, nil
}

// flips returns a fault that changes a byte of what an operation writes.
func flips(op device.Op, arg int, at uint32, bits byte) func(device.Packet, []byte) {
	return func(p device.Packet, mem []byte) {
		if p.Op == op {
			mem[p.Args[arg]+at] ^= bits
		}
	}
}

var errGone = errors.New("the process on the DSP has died")

var faults = []fault{
	{name: "a mapping that fails", want: "opening, mapping memory: ", open: func(step string) error {
		if step == "mapping memory" {
			return errGone
		}
		return nil
	}},
	{name: "a missing invalidation before the device reads", want: "coherence, the device sees what the host writes: old bytes in ", unseen: func(run int) (at, n int) {
		if run%97 == 0 {
			return device.TCMBytes + 256, 128
		}
		return device.TCMBytes, 0
	}},
	{name: "a missing flush after what the device writes", want: "coherence, the host sees what the device writes: old bytes in ", unread: func(run int) (at, n int) {
		if run%89 == 0 {
			return device.TCMBytes, 1 << 20
		}
		return device.TCMBytes, 0
	}},
	{name: "a DMA that is short", want: "operation, copy: ", packet: func(p *device.Packet) {
		if p.Op == device.OpCopy && p.Args[2]%4096 != 0 && p.Args[2] > 128 {
			p.Args[2] -= 128
		}
	}},
	{name: "a wrong rounding", want: "operation, quantization: ", after: flips(device.OpQuantize, 0, 0, 1)},
	{name: "a wrong gather", want: "operation, softmax: ", after: func(p device.Packet, mem []byte) {
		if p.Op == device.OpSoftmax {
			s := device.View[uint16](mem, p.Args[0], 1024)
			slices.Reverse(s[:64])
		}
	}},
	{name: "a piece of keys from the place before", want: "operation, collection of keys: ", packet: func(p *device.Packet) {
		if p.Op == device.OpCollect && p.Args[4] > 0 {
			p.Args[4] -= 128
		}
	}},
	{name: "a tile unit that forgets its scale", want: "operation, the tile unit in fp16: ", packet: func(p *device.Packet) {
		if p.Op == device.OpTileMul {
			p.Args[9] = 0x3c00
		}
	}},
	{name: "a tile unit that loses a plane", want: "operation, the tile unit in int8: ", after: flips(device.OpTileMulBytes, 0, 2048, 0xff)},
	{name: "a sum that is not spilled", want: "operation, products by lookups: ", after: flips(device.OpGEMV, 0, 3, 0x40)},
	{name: "an operation that hangs", want: "operation, the delta rule: the device took longer than ", run: func(ctx context.Context, packets []device.Packet) error {
		if slices.ContainsFunc(packets, func(p device.Packet) bool { return p.Op == device.OpDelta }) {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}},
	{name: "an operation that the process dies of", want: "operation, tiles of codes: the process on the DSP has died", run: func(_ context.Context, packets []device.Packet) error {
		if slices.ContainsFunc(packets, func(p device.Packet) bool { return p.Op == device.OpDequant }) {
			return errGone
		}
		return nil
	}},
	{name: "an operation that the library lacks", want: "operation, gates of a delta net: ", run: func(_ context.Context, packets []device.Packet) error {
		for i, p := range packets {
			if p.Op == device.OpGates {
				return &device.PacketError{Index: i, Op: p.Op, Status: device.StatusOp}
			}
		}
		return nil
	}},
}

func run(t *testing.T, o selftest.Options) *selftest.Report {
	t.Helper()
	r, err := selftest.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAGoodDevicePassesWithAllThatIsMeasured(t *testing.T) {
	var saved []string
	o := selftest.Options{Backend: "test", Rounds: sweep.Cases(10, 50), Cases: sweep.Cases(2, 4), Open: open(&fault{}), Save: func(r *selftest.Report) error {
		saved = append(saved, r.Running)
		return nil
	}}
	r := run(t, o)
	if !r.Verdict.OK || r.Running != "" || len(r.Operations) != len(device.Ops()) || len(r.Coherence) != 2 {
		t.Fatalf("verdict %+v, running %q, %d operations", r.Verdict, r.Running, len(r.Operations))
	}
	for _, name := range []string{selftest.RoundTrip, selftest.Gathers, selftest.BitNetLayer} {
		if _, ok := r.Time(name, 0); !ok {
			t.Errorf("no time: %s", name)
		}
	}
	for k := 1; k <= 32; k *= 2 {
		if _, ok := r.Time(selftest.TileUnit, k); !ok {
			t.Errorf("no time of the tile unit with %d tiles", k)
		}
	}
	for _, op := range device.Ops() {
		if !slices.Contains(saved, "operation, "+op.String()) {
			t.Errorf("nothing was saved before %v ran", op)
		}
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back selftest.Report
	if err := json.Unmarshal(data, &back); err != nil || back.Verdict.Text != r.Verdict.Text || len(back.Times) != len(r.Times) {
		t.Errorf("the report reads back as %+v, %v", back, err)
	}
	var text strings.Builder
	if err := r.Print(&text); err != nil || !strings.HasPrefix(text.String(), r.Verdict.Text) {
		t.Errorf("it prints %q, %v", text.String(), err)
	}
}

func TestEachFaultIsReportedByItsName(t *testing.T) {
	sweep.Full(t)
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			o := selftest.Options{Backend: "test", Chip: true, Rounds: 200, Cases: 4, Quick: true, Open: open(&f), Try: func(string) string { return "restart" }, Timeout: time.Minute}
			if strings.Contains(f.want, "longer") {
				o.Timeout = time.Second
			}
			r := run(t, o)
			if r.Verdict.OK || len(r.Verdict.Faults) == 0 || !strings.HasPrefix(r.Verdict.Faults[0], f.want) || !strings.Contains(r.Verdict.Text, r.Verdict.Faults[0]) {
				t.Errorf("verdict %q of %q", r.Verdict.Text, r.Verdict.Faults)
			}
			if strings.HasPrefix(f.want, "opening") && r.Opening[len(r.Opening)-1].Try != "restart" {
				t.Errorf("opening %+v says nothing to try", r.Opening)
			}
		})
	}
}

func TestAChipMayRoundInItsWay(t *testing.T) {
	last := fault{name: "last bits", after: func(p device.Packet, mem []byte) {
		if p.Op == device.OpTileMul {
			device.View[uint16](mem, p.Args[0], 1)[0] ^= 1
		}
	}}
	for _, chip := range []bool{true, false} {
		r := run(t, selftest.Options{Backend: "test", Chip: chip, Rounds: 5, Cases: 2, Quick: true, Open: open(&last)})
		if r.Verdict.OK != chip || chip && !strings.HasSuffix(r.Verdict.Text, "in the last bit: "+device.OpTileMul.String()+".") {
			t.Errorf("on a chip %t: verdict %+v", chip, r.Verdict)
		}
	}
}

func TestAReportNamesWhatRanWhenTheTestEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last selftest.Report
	_, err := selftest.Run(ctx, selftest.Options{Backend: "test", Rounds: 5, Cases: 1, Open: open(&fault{}), Save: func(r *selftest.Report) error {
		if last = *r; r.Running == "operation, softmax" {
			cancel()
		}
		return nil
	}})
	if !errors.Is(err, context.Canceled) || last.Verdict.OK || !strings.Contains(last.Verdict.Text, "operation, softmax") {
		t.Errorf("%v, verdict %+v", err, last.Verdict)
	}
}
