package hexagon

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// Options say how a device is used.
type Options struct {
	Path Path // how matrices are multiplied; "": PathAuto
	// Lookups is up to how many rows PathAuto multiplies a matrix by lookups, less than none: none do; 0: as
	// LookupRows says.
	Lookups int
	Round   Rounding      // of weights that the device does not hold exactly; "": RoundNone
	Pool    *pool.Pool    // of a device in Go; nil: it has one thread
	Keys    int           // bytes of keys and values that the device keeps; 0: DefaultKeys
	Timeout time.Duration // the longest that the device may take for some packets; 0: DefaultTimeout

	// Of models with experts.
	Placement Placement     // "": PlacementAll
	Decode    bool          // rows of no chunk of a prompt are the device's, not the host's
	Plan      *experts.Plan // which experts it has and how many rows of each; nil: all, as many as if they were chosen evenly
}

// DefaultTimeout is far beyond what any device needs, emulated ones included.
const DefaultTimeout = time.Minute

// Opener makes a device with so much memory.
type Opener func(bytes int) (device.Device, error)

// Backend is a models.Accelerator. Load all matrices, then Start it. Products, attention
// and launches are computed one after the other. It is one thing with a lock: what is loaded,
// where it lies in the device's memory and what is queued change together, in a file for each
// kind of work.
type Backend struct {
	opt  Options
	open Opener
	name string

	matrices []*linear
	refused  map[matrix.Packing]bool // of matrices that the device does not hold
	end      uint64                  // of what is laid out so far
	mostK    int

	mu       sync.Mutex
	dev      device.Device
	host     *device.Go // beside dev, of models with experts
	hosted   bool       // the host computes what is queued
	mem      []byte
	packets  []device.Packet
	resident resident
	spilled  spilled
	laid     [tileRows]laid // of rows that are resident in tiles of bytes
	x, y     region
	powers   region // what OpExpTable makes: TCM loses it between runs
	caps     region // the table of soft caps
	unit     region // a tile of the unit matrix
	tables   region // of the activations that are resident, for lookups
	work     Work
	probes   uint64
	levels   float32   // of activations of lookups
	weights  []float32 // of the row that is probed
	att      attention
	keys     keys
	group    struct{ x, y region } // of launches
	mix      mixtures
	whole    *whole // nil: layers are the host's, but for products and attention
	fault    atomic.Pointer[error]
}

// Work counts what a device has done.
type Work struct {
	Runs, Packets   int64 // given to the device
	Lookups, Tiled  int64 // rows that were multiplied by lookups and by tiles, of all products
	Lanes           int64 // of the tiles that these began, 32 a column of tiles
	Queries, Places int64 // of attention: query heads, and rows of the tiles that these began
	Written, Read   int64 // bytes that the host wrote for steps where the device reads them, and read
	device.Counts         // as it counted
}

// region is a part of the shared memory.
type region struct{ at, size uint32 }

// resident says which activations the device has in the form that their path wants: rows
// in tiles at x, or lookup tables, or bytes in their place.
type resident struct {
	acts *kernels.Acts
	sets uint64
	path Path
	// The first row, and how many: matrices of one input differ in how many they have at once.
	first, rows int
}

// New makes a backend whose device open will make. name is what logs call it.
func New(name string, open Opener, opt Options) *Backend {
	if opt.Timeout == 0 {
		opt.Timeout = DefaultTimeout
	}
	if opt.Keys == 0 {
		opt.Keys = DefaultKeys
	}
	if opt.Path == "" {
		opt.Path = PathAuto
	}
	return &Backend{name: name, open: open, opt: opt, end: device.TCMBytes, levels: opt.Path.levels(), att: attention{longest: longestChunk}, refused: map[matrix.Packing]bool{}}
}

// Name returns how the backend was asked for, such as "hexagon-go".
func (b *Backend) Name() string { return b.name }

// Load lays w out for the device. It reports ErrUnsupported for packings that the
// device does not hold exactly, unless they are to be rounded.
func (b *Backend) Load(w *matrix.Matrix) (kernels.Linear, error) {
	if b.mix.plan != nil && !b.opt.Placement.dense() {
		return nil, fmt.Errorf("%w: the placement %s", matrix.ErrUnsupported, b.opt.Placement)
	}
	return b.load(w)
}

func (b *Backend) load(w *matrix.Matrix) (kernels.Linear, error) {
	if b.dev != nil {
		return nil, errors.New("hexagon: the device runs already")
	}
	l := &linear{b: b}
	var err error
	if w.Packing == matrix.F16 || w.Packing == matrix.BF16 || w.Packing == matrix.F32 {
		l.Weights, l.halves, err = halves(w, false)
	} else {
		l.Weights, err = convert(w)
	}
	if errors.Is(err, matrix.ErrUnsupported) && w.Packing != matrix.F16 && w.Packing != matrix.BF16 {
		switch to := b.opt.Round; {
		case to == RoundF16:
			l.Weights, l.halves, err = halves(w, true)
		case to == RoundQ8_0:
			l.Weights, err = roundBytes(w)
		case to.values() != nil:
			l.Weights, l.groups, err = round(w, to)
		}
	}
	if errors.Is(err, matrix.ErrUnsupported) {
		b.refused[w.Packing] = true
	}
	if err != nil {
		return nil, err
	}
	l.size()
	b.matrices, b.mostK = append(b.matrices, l), max(b.mostK, l.K)
	if b.end > math.MaxUint32 {
		return nil, fmt.Errorf("hexagon: the matrices take more than the %d GiB that a device can address; a smaller model, a plan with fewer experts on the device, or the backend cpu will do", (math.MaxUint32+1)>>30)
	}
	return l, nil
}

// Refused names the packings of matrices that were left to the CPU, since the device does not hold
// their weights exactly and Options.Round does not round them.
func (b *Backend) Refused() (names []string) {
	for _, p := range matrix.Packings() {
		if b.refused[p] {
			names = append(names, p.String())
		}
	}
	return names
}

// reserve lays out n bytes, 0 for none.
func (b *Backend) reserve(n int) uint32 {
	if n == 0 {
		return 0
	}
	at := b.end
	b.end += (uint64(n) + device.Align - 1) &^ (device.Align - 1)
	return uint32(min(at, math.MaxUint32))
}

// region lays out a region.
func (b *Backend) region(n int) region { return region{b.reserve(n), uint32(n)} }

// Sizes of what a run exchanges with the device.
const (
	resultBytes  = 8 << 20
	stagingBytes = 16 << 20 // of attention
	pageBytes    = 4096     // of which memory has whole ones
)

// Start makes the device, gives it the matrices and tries it.
func (b *Backend) Start() error {
	b.x, b.y = b.region(max(tileRows*2*b.mostK, stagingBytes-resultBytes)), b.region(resultBytes)
	b.powers, b.caps, b.unit = b.region(device.ExpTableBytes), b.region(device.ExpTableBytes), b.region(layout.TileBytes)
	tables := 0
	for _, l := range b.matrices {
		if l.lookups > 0 {
			tables = max(tables, l.tableRows()*l.tableBytes())
		}
	}
	b.tables = b.region(tables)
	b.keys.slotsAt, b.keys.listsAt = b.region(b.opt.Keys), b.region(listCount*listBytes)
	b.mix.regions(b)
	if b.end > math.MaxUint32 {
		return fmt.Errorf("hexagon: %d bytes are more than a device can address", b.end)
	}
	b.end = (b.end + pageBytes - 1) &^ (pageBytes - 1)
	dev, err := b.open(int(b.end))
	if err != nil {
		return err
	}
	b.dev, b.mem = dev, dev.Memory()
	if uint64(len(b.mem)) < b.end {
		return fmt.Errorf("hexagon: the device has %d bytes of memory, %d are needed", len(b.mem), b.end)
	}
	for _, l := range b.matrices {
		l.place()
	}
	b.placeUnit()
	if b.whole != nil {
		b.whole.place(b.mem)
	}
	if b.mix.plan != nil {
		b.host = device.NewBeside(dev, b.opt.Pool)
		b.mix.gated.start(b.mem)
	}
	b.add(device.OpPing)
	b.add(device.OpExpTable, expTable)
	b.add(device.OpCopy, b.powers.at, expTable, device.ExpTableBytes)
	if err := b.run(); err != nil {
		return err
	}
	for _, power := range []struct {
		at   int
		want uint16
	}{{0, 0x3c00}, {0x3800, 0x39a8}, {0x3c00, 0x3800}, {0x7bff, 0}} {
		if got := half(b.mem, b.powers.at, power.at); got != power.want {
			return fmt.Errorf("hexagon: the device's table of powers of two holds %#04x at %#04x, want %#04x", got, power.at, power.want)
		}
	}
	b.mix.counts = experts.Counts{}
	return nil
}

// Memory returns the bytes that host and device share.
func (b *Backend) Memory() int64 { return int64(b.end) }

// Work returns what the device has done so far.
func (b *Backend) Work() Work {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.work
}

// Err returns the first fault of the device.
func (b *Backend) Err() error {
	if err := b.fault.Load(); err != nil {
		return *err
	}
	return nil
}

// Close ends the device.
func (b *Backend) Close() error {
	if b.dev == nil {
		return nil
	}
	return b.dev.Close()
}

// add queues a packet.
func (b *Backend) add(op device.Op, args ...uint32) {
	p := device.Packet{Op: op}
	copy(p.Args[:], args)
	b.packets = append(b.packets, p)
}

// run has the device compute the queued packets. A failure is the backend's fault.
func (b *Backend) run() error {
	if err := b.Err(); err != nil || len(b.packets) == 0 {
		b.packets = b.packets[:0]
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.opt.Timeout)
	defer cancel()
	if b.hosted {
		return b.runBeside(ctx)
	}
	counts, err := b.dev.Run(ctx, b.packets)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		err = b.fail("it took longer than %v for %d packets: %w", b.opt.Timeout, len(b.packets), err)
	default:
		err = b.fail("%w", err)
	}
	b.work.Runs++
	if b.mix.plan != nil {
		b.mix.counts.Synced++
	}
	b.work.Packets += int64(len(b.packets))
	b.work.Counts.Add(counts)
	b.packets = b.packets[:0]
	return err
}

// runBeside runs the packets on the host.
func (b *Backend) runBeside(ctx context.Context) error {
	_, err := b.host.Run(ctx, b.packets)
	if err != nil {
		err = b.fail("what the host computes beside it: %w", err)
	}
	b.packets = b.packets[:0]
	return err
}

// fail makes this the device's fault, if it is the first.
func (b *Backend) fail(format string, args ...any) error {
	err := fmt.Errorf("the device of "+b.name+" has failed: "+format, args...)
	b.fault.CompareAndSwap(nil, &err)
	return err
}

// TCM: the table of powers of two at its beginning, the tile unit's scales of columns, then
// what an operation needs. A run finds nothing there.
const (
	expTable = 0
	columns  = expTable + device.ExpTableBytes
	scratch  = columns + layout.TileBytes
	tcmEnd   = device.TCMBytes
)

// take takes n bytes of the range that begins at *at, which stays a multiple of a tile's
// size: the tile unit wants it in TCM.
func take(at *uint32, n int) uint32 {
	p := *at
	*at += uint32(roundUp(n, layout.TileBytes))
	return p
}
