//go:build fastrpc

package fastrpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lutra-lm/lutra/hexagon/device"
)

const (
	domain         = 3  // the compute DSP
	heap           = 25 // the system's
	cached         = 1  // what Linux does whatever this says: queues are told whose lines are old
	unsignedModule = 2  // a control request: let a library run that nobody signed
	mapFD          = 2
	expired        = 12 // the error of a read that waited too long
	queueBytes     = 1 << 16
	batch          = 256 // packets of a message
	patience       = 50 * time.Millisecond
	methodStart    = 2
	methodStop     = 3
	uri            = "file:///liblutra_skel.so?lutra_skel_handle_invoke&_modver=1.0&_dom=cdsp"
)

// Device is a session with the DSP; see device.Device.
type Device struct {
	lib    *library
	limit  time.Duration
	memory []byte
	files  [mappings]int32          // of rpcmem, one for each mapping
	at     [mappings]unsafe.Pointer // where rpcmem has them
	handle uint64
	queue  unsafe.Pointer
	number uint32 // of the last request
	// touched are the buffers of a message, and of its answer.
	touched [maxBuffers]buffer
	undo    []func() // ends what Open began, last first
	step    func(name string)
	// without is a call that failed, which the session does without.
	without string
	lost    error
}

var _ device.Device = (*Device)(nil)

// Open loads the library, starts an unsigned process on the DSP, and its queue.
func Open(o Options) (*Device, error) {
	size := cmp.Or(o.Memory, 256<<20)
	if size <= device.TCMBytes || size > MaxMemory || size%4096 != 0 {
		return nil, fmt.Errorf("hexagon: %d bytes of memory are not between %d and %d, or not whole pages", size, device.TCMBytes, MaxMemory)
	}
	d := &Device{limit: cmp.Or(o.Limit, 10*time.Second), step: o.Step}
	d.begin(StepLibrary)
	lib, err := load(cmp.Or(o.Library, "libcdsprpc.so"))
	if err != nil {
		return nil, err
	}
	d.lib = lib
	if err := d.start(size); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Device) start(size int) error {
	l := d.lib
	unsigned := [2]int32{domain, 1}
	if err := check(d.begin(StepUnsigned), l.control(unsignedModule, unsafe.Pointer(&unsigned), 8)); err != nil {
		return err
	}
	if err := check(d.begin(StepSkel), l.handleOpen(uri, &d.handle)); err != nil {
		return err
	}
	d.undo = append(d.undo, func() { l.handleClose(d.handle) })
	if l.handle64Control != nil {
		d.begin(StepLatency)
		short := [2]uint32{1, 0} // wake the host's cores at once (RPC_PM_QOS)
		if err := check(StepLatency, l.handle64Control(d.handle, latency, unsafe.Pointer(&short), 8)); err != nil {
			d.without = err.Error()
		}
	}
	d.begin(StepMemory)
	if arch := d.Describe().Arch; size > MostMemory(arch) {
		return fmt.Errorf("hexagon: %d bytes of memory are beyond the %d that a session of %s maps", size, MostMemory(arch), arch)
	}
	if err := d.allocate(size); err != nil {
		return err
	}
	if err := check(d.begin(StepQueue), l.queueCreate(domain, 0, queueBytes, queueBytes, 0, 0, 0, &d.queue)); err != nil {
		return err
	}
	d.undo = append(d.undo, func() { l.queueClose(d.queue) })
	begin := struct {
		queue uint64
		files [mappings]int32
		size  uint64
	}{0, d.files, uint64(size)}
	if err := check(d.begin(StepExport), l.queueExport(d.queue, &begin.queue)); err != nil {
		return err
	}
	if err := check(d.begin(StepStart), d.invoke(methodStart, unsafe.Pointer(&begin), unsafe.Sizeof(begin))); err != nil {
		return err
	}
	d.undo = append(d.undo, func() {
		if d.lost == nil { // a DSP that hangs would not return
			d.invoke(methodStop, nil, 0)
		}
	})
	return nil
}

// mappings is the most that a session has (hexagon/dsp/dispatch), maxBuffers the most of a message (dspqueue.h).
const (
	mappings   = 4
	maxBuffers = 64
)

// allocate makes the memory of mappings, each of memory from rpcmem. The DSP maps them where it has room. Here each lies behind
// the one before, so offsets are the same on both sides.
func (d *Device) allocate(size int) error {
	l := d.lib
	room, err := unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("hexagon: FastRPC: addresses for %d bytes: %w", size, err)
	}
	d.undo = append(d.undo, func() { _ = unix.MunmapPtr(room, uintptr(size)) })
	for i := 0; i*device.MappingBytes < size; i++ {
		d.begin(StepMemory)
		n := min(device.MappingBytes, size-i*device.MappingBytes)
		p := l.rpcmemAlloc(heap, cached, int32(n))
		if p == nil {
			return fmt.Errorf("hexagon: FastRPC: no %d bytes of memory for the DSP, of %d (rpcmem_alloc gives no code)", n, size)
		}
		d.undo = append(d.undo, func() { l.rpcmemFree(p) })
		fd := l.rpcmemToFD(p)
		if err := check(d.begin(StepMap), l.mmap(domain, fd, p, 0, uintptr(n), mapFD)); err != nil {
			return err
		}
		d.undo = append(d.undo, func() { l.munmap(domain, fd, p, uintptr(n)) })
		if _, err := unix.MmapPtr(int(fd), 0, unsafe.Add(room, i*device.MappingBytes), uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED); err != nil {
			return fmt.Errorf("hexagon: FastRPC: mapping memory for the host: %w", err)
		}
		d.files[i], d.at[i] = fd, p
	}
	d.memory = unsafe.Slice((*byte)(room), size)
	return nil
}

// begin tells that a step of Open begins, and returns its name.
func (d *Device) begin(step string) string {
	if d.step != nil {
		d.step(step)
	}
	return step
}

// Of remote_handle_control's requests and of what they ask for, as remote.h numbers them.
const (
	dspInfo      = 2
	architecture = 6
	latency      = 1
)

// Describe returns what the FastRPC library knows of the DSP.
func (d *Device) Describe() device.Info {
	info := device.Info{TCM: device.TCMBytes, Without: d.without}
	if d.lib == nil || d.lib.handleControl == nil {
		return info
	}
	ask := [3]uint32{domain, architecture, 0}
	if d.lib.handleControl(dspInfo, unsafe.Pointer(&ask), 12) == 0 && ask[2] != 0 {
		info.Arch = fmt.Sprintf("V%x", ask[2]&0xff)
	}
	return info
}

// invoke calls a method of the skel, with one buffer or none.
func (d *Device) invoke(method uint32, p unsafe.Pointer, n uintptr) int32 {
	if p == nil {
		return d.lib.handleInvoke(d.handle, method<<24, nil)
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(p)
	arg := struct {
		p unsafe.Pointer
		n uintptr
	}{p, n}
	return d.lib.handleInvoke(d.handle, method<<24|1<<16, unsafe.Pointer(&arg))
}

// Name returns "fastrpc".
func (d *Device) Name() string { return "fastrpc" }

// Memory returns what the DSP shares. Its first device.TCMBytes are not the DSP's TCM.
func (d *Device) Memory() []byte { return d.memory }

// Run computes packets, up to 256 a message.
func (d *Device) Run(ctx context.Context, packets []device.Packet) (device.Counts, error) {
	var total device.Counts
	if d.lost != nil {
		return total, d.lost
	}
	for first := 0; first < len(packets); {
		part := packets[first:min(first+batch, len(packets))]
		begins := uint32(0)
		if first == 0 {
			begins = 1
		}
		answer, err := d.exchange(ctx, begins, part)
		if err != nil {
			d.lost = fmt.Errorf("hexagon: the DSP is lost: %w", err)
			return total, d.lost
		}
		total.Add(answer.Counts)
		first += answer.Done
		if answer.Status != device.StatusOK {
			return total, &device.PacketError{Index: first, Op: packets[first].Op, Status: answer.Status}
		}
	}
	return total, nil
}

// A buffer is a dspqueue_buffer, a part of a mapping; the flags say what becomes of its lines in caches.
type buffer struct {
	fd, size, offset, flags uint32
	at                      uint64
}

const (
	flushSender      = 16
	invalidateSender = 32
)

// buffers has the host's lines of what packets touch written to memory, where the chip's caches are not coherent. The host gives up
// those that the DSP's caches have, and reads them again when the answer comes with them.
func (d *Device) buffers(packets []device.Packet) []buffer {
	all := d.touched[:0]
	for _, l := range device.Touched(packets, len(d.memory)) {
		b := buffer{uint32(d.files[l.From/device.MappingBytes]), uint32(l.End - l.From), uint32(l.From % device.MappingBytes), flushSender, uint64(uintptr(d.at[l.From/device.MappingBytes])) + uint64(l.From%device.MappingBytes)}
		if !l.Streamed {
			b.flags |= invalidateSender
		}
		all = append(all, b)
	}
	return all
}

// exchange sends a message and waits for its answer, looking at ctx now and then.
func (d *Device) exchange(ctx context.Context, begins uint32, packets []device.Packet) (device.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	d.number++
	message := device.AppendRequest(nil, d.number, uint32(len(packets)), begins, packets)
	us := uint32(patience / time.Microsecond)
	touched := d.buffers(packets)
	if err := check("writing to the queue", d.lib.queueWrite(d.queue, 0, uint32(len(touched)), unsafe.Pointer(&d.touched), uint32(len(message)), &message[0], us)); err != nil {
		return device.Answer{}, err
	}
	for {
		var b [device.AnswerBytes]byte
		var flags, buffers, n uint32
		code := d.lib.queueRead(d.queue, &flags, uint32(len(d.touched)), &buffers, unsafe.Pointer(&d.touched), uint32(len(b)), &n, &b[0], us)
		if code == expired {
			if ctx.Err() != nil {
				return device.Answer{}, fmt.Errorf("no answer: %w", ctx.Err())
			}
			continue
		}
		if err := check("reading from the queue", code); err != nil {
			return device.Answer{}, err
		}
		if n > uint32(len(b)) {
			return device.Answer{}, errors.New("the answer is none")
		}
		return device.ParseAnswer(b[:n], d.number, len(packets))
	}
}

// Close ends the session. Memory must not be used any more.
func (d *Device) Close() error {
	for len(d.undo) > 0 {
		d.undo[len(d.undo)-1]()
		d.undo = d.undo[:len(d.undo)-1]
	}
	d.memory, d.lost = nil, errors.New("hexagon: the device is closed")
	return nil
}
