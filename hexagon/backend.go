package hexagon

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
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
// and launches are computed one after the other: each of its parts makes a request, which the
// session runs, and takes in the results.
type Backend struct {
	opt       *Options
	open      Opener
	plan      *plan      // what of a model the device computes
	session   *session   // memory, lock, device
	products  *products  // of rows that the host has
	attention *attention // of rows that the host has
	experts   *expertRuns
	layers    *layerRuns
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
	p := &plan{arena: arena{end: device.TCMBytes}, refused: map[matrix.Packing]bool{}}
	s := &session{name: name, opt: &opt, request: request{tables: &p.tables}}
	q := &s.request
	k, tcm := &keys{q: q}, &attentionTCM{longest: longestChunk}
	b := &Backend{opt: &opt, open: open, plan: p, session: s}
	b.products = &products{s: s, q: q, plan: p, codes: activationCodes{opt.Path, opt.Path.levels()}}
	b.attention = &attention{s: s, q: q, plan: p, device: k, tcm: tcm}
	b.experts = &expertRuns{s: s, q: q, products: b.products}
	b.experts.gated = &gatedRuns{s: s, q: q, work: &b.experts.work}
	b.experts.beside = &gatedRuns{s: s, q: &request{hosted: true, tables: &p.tables}, work: new(chunkWork)}
	b.layers = &layerRuns{s: s, q: q, plan: p, gated: b.experts.gated, step: newStep(q, k, tcm)}
	return b
}

// Name returns how the backend was asked for, such as "hexagon-go".
func (b *Backend) Name() string { return b.session.name }

// Load lays w out for the device. It reports ErrUnsupported for packings that the
// device does not hold exactly, unless they are to be rounded.
func (b *Backend) Load(w *matrix.Matrix) (kernels.Linear, error) {
	if b.plan.mixture != nil && !b.opt.Placement.dense() {
		return nil, fmt.Errorf("%w: the placement %s", matrix.ErrUnsupported, b.opt.Placement)
	}
	return b.load(w)
}

func (b *Backend) load(w *matrix.Matrix) (kernels.Linear, error) {
	if b.session.dev != nil {
		return nil, errors.New("hexagon: the device runs already")
	}
	l := &linear{products: b.products}
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
	p := b.plan
	if errors.Is(err, matrix.ErrUnsupported) {
		p.refused[w.Packing] = true
	}
	if err != nil {
		return nil, err
	}
	if n := mapped(l); n > device.MappingBytes {
		return nil, fmt.Errorf("%w: %d bytes of a matrix, of which a device maps %d at once", matrix.ErrUnsupported, n, device.MappingBytes)
	}
	l.size(p, b.opt)
	p.matrices, p.mostK = append(p.matrices, l), max(p.mostK, l.K)
	if p.end > math.MaxUint32 {
		return nil, fmt.Errorf("hexagon: the matrices take more than the %d GiB that a device can address; a smaller model, a plan with fewer experts on the device, or the backend cpu will do", (math.MaxUint32+1)>>30)
	}
	return l, nil
}

// Refused names the packings of matrices that were left to the CPU, since the device does not hold
// their weights exactly and Options.Round does not round them.
func (b *Backend) Refused() (names []string) {
	for _, p := range matrix.Packings() {
		if b.plan.refused[p] {
			names = append(names, p.String())
		}
	}
	return names
}

// Refusals returns the parts of the model that the plan leaves to the host, with the reasons.
func (b *Backend) Refusals() []Refusal { return b.plan.refusals }

// Sizes of what a run exchanges with the device.
const (
	resultBytes  = 8 << 20
	stagingBytes = 16 << 20 // of attention
	pageBytes    = 4096     // of which memory has whole ones
)

// Start makes the device, gives it the matrices and tries it.
func (b *Backend) Start() error {
	p, s, q := b.plan, b.session, &b.session.request
	p.regions()
	b.attention.device.slotsAt, b.attention.device.listsAt = p.region(b.opt.Keys), p.region(listCount*listBytes)
	if p.mixture != nil {
		p.mixture.regions(p, b.opt)
	}
	if p.end > math.MaxUint32 || p.largest > device.MappingBytes {
		return fmt.Errorf("hexagon: %d bytes, of one operand %d, are more than a device can address, or map at once", p.end, p.largest)
	}
	p.end = (p.end + pageBytes - 1) &^ (pageBytes - 1)
	dev, err := b.open(int(p.end))
	if err != nil {
		return err
	}
	s.dev, q.mem = dev, dev.Memory()
	if uint64(len(q.mem)) < p.end {
		return fmt.Errorf("hexagon: the device has %d bytes of memory, %d are needed", len(q.mem), p.end)
	}
	p.place(q.mem)
	if p.mixture != nil {
		s.host, b.experts.beside.q.mem = device.NewBeside(dev, b.opt.Pool), q.mem
	}
	q.add(device.OpPing)
	q.add(device.OpExpTable, expTable)
	q.add(device.OpCopy, p.tables.powers.at, expTable, device.ExpTableBytes)
	if err := s.run(); err != nil {
		return err
	}
	for _, power := range []struct {
		at   int
		want uint16
	}{{0, 0x3c00}, {0x3800, 0x39a8}, {0x3c00, 0x3800}, {0x7bff, 0}} {
		if got := half(q.mem, p.tables.powers.at, power.at); got != power.want {
			return fmt.Errorf("hexagon: the device's table of powers of two holds %#04x at %#04x, want %#04x", got, power.at, power.want)
		}
	}
	if s.counts != nil {
		*s.counts = experts.Counts{}
	}
	return nil
}

// Memory returns the bytes that host and device share.
func (b *Backend) Memory() int64 { return int64(b.plan.end) }

// Work returns what the device has done so far.
func (b *Backend) Work() Work {
	b.session.mu.Lock()
	defer b.session.mu.Unlock()
	return b.session.request.work
}

// Err returns the first fault of the device.
func (b *Backend) Err() error { return b.session.err() }

// Close ends the device.
func (b *Backend) Close() error { return b.session.close() }

// Attend computes attention on the tile unit. It leaves to the CPU heads too wide for TCM,
// scores with slopes, and sums and sinks that are too large for fp16.
func (b *Backend) Attend(call *models.Attention) bool {
	b.session.mu.Lock()
	defer b.session.mu.Unlock()
	if b.session.dev == nil || call.Slopes != nil || !sinksFit(call.Sinks) || b.plan.mixture != nil && !b.opt.Placement.dense() {
		return false
	}
	if !b.attention.begin(call) {
		return false
	}
	b.products.resident = resident{}
	return b.attention.run()
}

// Counts returns what prefills have asked for so far.
func (b *Backend) Counts() experts.Counts {
	b.session.mu.Lock()
	defer b.session.mu.Unlock()
	if b.session.counts == nil {
		return experts.Counts{}
	}
	return *b.session.counts
}
