// Package selftest tests an NPU, or what stands in for one, from the first call that opens it to the times of
// its units:
//
//	open, call by call ──▶ coherence of memory ──▶ each operation against hexagon/ref ──▶ times ──▶ verdict
//
// It needs no model. Each part is written to the report before it runs. The test is bounded: a device that does
// not answer ends it, and so does the context. Nothing is judged by its time.
package selftest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/device/exercise"
	"github.com/lutra-lm/lutra/kernels/cpu"
)

// Options of Run.
type Options struct {
	Backend string // its name
	Chip    bool   // it is one, and no emulation
	Lutra   string // the version of this program
	// Open makes the device with so much memory, and calls step before each call that does a part of it.
	Open func(bytes int, step func(name string)) (device.Device, error)
	// Try returns what may repair a step of Open that failed; nil: nothing is known.
	Try     func(step string) string
	Rounds  int                 // of coherence; 0: DefaultRounds
	Cases   int                 // of an operation; 0: DefaultCases
	Quick   bool                // nothing is measured
	Timeout time.Duration       // the longest that the device may take for one request; 0: DefaultTimeout
	Save    func(*Report) error // before each part, and at the end; nil: the report is only returned
	Log     func(part string)   // before each part; nil: nothing
}

// Defaults of Options.
const (
	DefaultRounds  = 1000
	DefaultCases   = 8
	DefaultTimeout = time.Minute
)

// Memory that the test asks of a device, after TCM: operands, their TCM as it begins and ends, and a layer.
const (
	operandBytes = exercise.Memory - device.TCMBytes
	stagedAt     = device.TCMBytes + operandBytes
	stagedBytes  = 4 << 20
	madeAt       = stagedAt + stagedBytes
	layerAt      = madeAt + stagedBytes
	memoryBytes  = (layerAt + layerBytes + pageBytes - 1) &^ (pageBytes - 1)
	pageBytes    = 64 << 10 // the largest pages that systems have
)

// test is a test under way.
type test struct {
	o    Options
	r    *Report
	dev  device.Device
	mem  []byte
	lost error // of the device, which computes no more
}

// Run tests a device. It returns the report of a device that fails, and an error where the report could not be
// saved, or ctx has ended. The report names the last part of the test.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Rounds == 0 {
		o.Rounds = DefaultRounds
	}
	if o.Cases == 0 {
		o.Cases = DefaultCases
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	t := &test{o: o, r: &Report{Kind: Kind, Format: Format, Backend: o.Backend, Chip: o.Chip, Lutra: o.Lutra, System: runtime.GOOS + "/" + runtime.GOARCH, Started: time.Now().UTC().Truncate(time.Second)}}
	err := t.all(ctx)
	if err == nil {
		t.r.Running = ""
	}
	t.r.judge()
	if o.Save != nil {
		err = errors.Join(err, o.Save(t.r))
	}
	return t.r, err
}

// all runs the parts in turn. A device that is lost ends the test.
func (t *test) all(ctx context.Context) (err error) {
	if err := t.open(); err != nil || t.dev == nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	for _, part := range []func(context.Context) error{t.coherence, t.operations} {
		if err := part(ctx); err != nil || t.lost != nil {
			return err
		}
	}
	if t.o.Quick {
		return nil
	}
	return t.times(ctx)
}

// begin writes to the report that a part begins.
func (t *test) begin(format string, args ...any) error {
	t.r.Running = fmt.Sprintf(format, args...)
	if t.o.Log != nil {
		t.o.Log(t.r.Running)
	}
	if t.o.Save == nil {
		return nil
	}
	t.r.judge()
	return t.o.Save(t.r)
}

// open opens the device, call by call.
func (t *test) open() error {
	var saved error
	step := func(name string) {
		if n := len(t.r.Opening); n > 0 {
			t.r.Opening[n-1].OK = true
		}
		t.r.Opening = append(t.r.Opening, Step{Name: name})
		saved = errors.Join(saved, t.begin("opening, %s", name))
	}
	dev, err := t.o.Open(memoryBytes, step)
	if len(t.r.Opening) == 0 {
		step("making the device")
	}
	last := &t.r.Opening[len(t.r.Opening)-1]
	if err != nil {
		if last.Error = err.Error(); t.o.Try != nil {
			last.Try = t.o.Try(last.Name)
		}
		return saved
	}
	last.OK = true
	if t.dev, t.mem = dev, dev.Memory(); len(t.mem) < memoryBytes {
		last.OK, last.Error = false, fmt.Sprintf("the device has %d bytes of memory, not %d", len(t.mem), memoryBytes)
		t.dev = nil
		return errors.Join(saved, dev.Close())
	}
	t.r.Device = device.Describe(dev)
	return saved
}

// close closes the device. One that is lost may say anything.
func (t *test) close() error {
	if err := t.dev.Close(); err != nil && t.lost == nil {
		return fmt.Errorf("closing the device: %w", err)
	}
	return nil
}

// run has the device compute packets. fault is the device's, err the context's.
func (t *test) run(ctx context.Context, packets []device.Packet) (counts device.Counts, fault, err error) {
	limited, cancel := context.WithTimeout(ctx, t.o.Timeout)
	defer cancel()
	counts, fault = t.dev.Run(limited, packets)
	if fault == nil {
		return counts, nil, nil
	}
	if err := ctx.Err(); err != nil {
		return counts, nil, err
	}
	if limited.Err() != nil {
		fault = fmt.Errorf("the device took longer than %v: %w", t.o.Timeout, fault)
	}
	var refused *device.PacketError
	if !errors.As(fault, &refused) {
		t.lost = fault
	}
	return counts, fault, nil
}

// packet makes a packet of its arguments.
func packet(op device.Op, args ...uint32) device.Packet {
	p := device.Packet{Op: op}
	copy(p.Args[:], args)
	return p
}

// coherenceBytes are some lines of a cache, in each of the buffers of coherence.
const coherenceBytes = 4096

// coherence has host and device write a buffer in turn, and each read what the other wrote.
func (t *test) coherence(ctx context.Context) error {
	const (
		written = device.TCMBytes        // by the host in each round
		echoed  = written + 1<<16        // what the device read there
		sources = echoed + 1<<16         // patterns that the host wrote once
		made    = sources + 256<<10      // by the device in each round, of a source
		tcm     = exercise.Table + 1<<16 // a copy goes through TCM
		kinds   = 16                     // of sources
		size    = uint32(coherenceBytes) // of each
		apart   = uint32(coherenceBytes) // sources
	)
	pattern := func(to []byte, n int) {
		for i := range to {
			to[i] = byte(n*31 + i*7 + n>>3 + i>>8)
		}
	}
	both := []Coherence{{Direction: "the device sees what the host writes", Rounds: t.o.Rounds}, {Direction: "the host sees what the device writes", Rounds: t.o.Rounds}}
	defer func() { t.r.Coherence = both }()
	if err := t.begin("coherence of memory"); err != nil {
		return err
	}
	for i := range kinds {
		pattern(t.mem[sources+i*coherenceBytes:][:coherenceBytes], 1000+i)
	}
	want := make([]byte, coherenceBytes)
	stale := func(c *Coherence, round int) {
		if c.Stale++; c.Stale == 1 {
			c.First = round + 1
		}
	}
	for round := range t.o.Rounds {
		pattern(t.mem[written:][:coherenceBytes], round)
		source := uint32(sources) + apart*uint32(round%kinds)
		_, fault, err := t.run(ctx, []device.Packet{
			packet(device.OpCopy, tcm, written, size), packet(device.OpCopy, echoed, tcm, size),
			packet(device.OpCopy, tcm, source, size), packet(device.OpCopy, made, tcm, size)})
		if err != nil {
			return err
		}
		if fault != nil {
			both[0].Rounds, both[1].Rounds, both[0].Error = round, round, fault.Error()
			return nil
		}
		pattern(want, 1000+round%kinds)
		back := bytes.Equal(t.mem[made:][:coherenceBytes], want)
		if !back {
			stale(&both[1], round)
		}
		if pattern(want, round); back && !bytes.Equal(t.mem[echoed:][:coherenceBytes], want) {
			stale(&both[0], round)
		}
	}
	return nil
}

// operations runs each operation alone, on operands at random, and compares what it wrote with the definition.
func (t *test) operations(ctx context.Context) error {
	local := cpu.Aligned[uint8](exercise.Memory)
	for _, op := range device.Ops() {
		if err := t.begin("operation, %v", op); err != nil {
			return err
		}
		of := Operation{Name: op.String(), Cases: t.o.Cases}
		g := exercise.New(uint64(op), local)
		for n := range of.Cases {
			if err := t.try(ctx, &of, g, g.Of(op), local, n+1); err != nil {
				return err
			}
			if of.Error != "" {
				break
			}
		}
		of.Rounding = t.o.Chip && of.Error == "" && of.Wrong > 0 && of.ULP > 0 && of.ULP <= 1
		t.r.Operations = append(t.r.Operations, of)
		if t.lost != nil {
			return nil
		}
	}
	return nil
}

// try runs a packet, whose operands a generator has put into local, and adds what came of it.
func (t *test) try(ctx context.Context, of *Operation, g *exercise.Generator, p device.Packet, local []byte, n int) error {
	tcm, ddr := g.Ends()
	used := tcm - device.ExpTableBytes
	copy(t.mem[device.TCMBytes:ddr], local[device.TCMBytes:ddr])
	copy(t.mem[stagedAt:][:used], local[device.ExpTableBytes:tcm])
	packets := []device.Packet{packet(device.OpExpTable, exercise.Table)}
	if used > 0 {
		packets = append(packets, packet(device.OpCopy, device.ExpTableBytes, stagedAt, used))
	}
	packets = append(packets, p)
	tested := len(packets) - 1
	written := exercise.Written(p)
	scratch := exercise.Scratch(p)
	var back [][2]int // in TCM, whole lines
	for _, w := range written[len(scratch):] {
		if w[0] < device.TCMBytes {
			at, end := w[0]&^(device.Align-1), (w[0]+w[1]+device.Align-1)&^(device.Align-1)
			back = append(back, [2]int{at, end - at})
		}
	}
	at := uint32(madeAt)
	for _, b := range back {
		clear(t.mem[at:][:b[1]])
		packets = append(packets, packet(device.OpCopy, at, uint32(b[0]), uint32(b[1])))
		at += uint32(b[1])
	}
	_, fault, err := t.run(ctx, packets)
	if err != nil {
		return err
	}
	if fault != nil {
		of.Error = fault.Error()
		var refused *device.PacketError
		if errors.As(fault, &refused) && refused.Index != tested {
			of.Error = fmt.Sprintf("%v beside it was refused: %v", refused.Op, fault)
		}
		return nil
	}
	device.Define(local, p)
	wrong := difference{}
	wrong.add(t.mem[device.TCMBytes:ddr], local[device.TCMBytes:ddr], 0, p.Op)
	at = madeAt
	for _, b := range back {
		wrong.add(t.mem[at:][:b[1]], local[b[0]:][:b[1]], b[0], p.Op)
		at += uint32(b[1])
	}
	if wrong.numbers > 0 {
		if of.Wrong++; of.Wrong == 1 {
			of.Case, of.Offset, of.Numbers = n, wrong.offset, wrong.numbers
		}
		of.ULP = max(of.ULP, wrong.ulp)
	}
	return nil
}

// difference describes how some bytes differ from the expected ones.
type difference struct {
	numbers int
	offset  int // of the first
	ulp     float64
}

// add compares bytes that lie at an offset.
func (d *difference) add(got, want []byte, offset int, op device.Op) {
	if bytes.Equal(got, want) {
		return
	}
	size := 4
	if halves(op) {
		size = 2
	}
	for i := 0; i+size <= len(got); i += size {
		a, b := got[i:i+size], want[i:i+size]
		if bytes.Equal(a, b) {
			continue
		}
		if d.numbers++; d.numbers == 1 {
			d.offset = offset + i
		}
		switch {
		case integers(op):
		case size == 2:
			d.ulp = max(d.ulp, math.Abs(float64(ordered(uint32(device.View[uint16](got, uint32(i), 1)[0])<<16)-ordered(uint32(device.View[uint16](want, uint32(i), 1)[0])<<16)))/(1<<16))
		default:
			d.ulp = max(d.ulp, math.Abs(float64(ordered(device.View[uint32](got, uint32(i), 1)[0])-ordered(device.View[uint32](want, uint32(i), 1)[0]))))
		}
	}
}

// ordered returns a number that grows with the float of these bits, by 1 for the next.
func ordered(bits uint32) int64 {
	if bits>>31 == 1 {
		return -int64(bits &^ (1 << 31))
	}
	return int64(bits)
}

// halves tells whether an operation writes fp16 numbers, or integers of 16 bits.
func halves(op device.Op) bool {
	switch op {
	case device.OpDequant, device.OpVLUT16, device.OpTileMul, device.OpExpTable, device.OpSoftmax, device.OpSoftCap, device.OpToTiles, device.OpRowsToTiles, device.OpQuantize, device.OpPrecompute:
		return true
	}
	return false
}

// integers tells whether what it writes is no floats.
func integers(op device.Op) bool {
	switch op {
	case device.OpPing, device.OpCopy, device.OpCollect, device.OpPrecompute, device.OpGEMV, device.OpByteTiles, device.OpTileMulBytes, device.OpQuantize, device.OpFold, device.OpSoftmax:
		return true
	}
	return false
}
