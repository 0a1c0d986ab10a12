package qemu

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/dsp"
)

// Device is a child process; see device.Device.
type Device struct {
	memory  []byte
	limit   time.Duration
	tiles   device.TileUnit
	child   *exec.Cmd
	in, out *os.File // the ends of pipes that are ours
	errors  tail
	number  uint32 // of the last request
	used    int    // of TCM by the last run
	keep    bool
	blind   uint32 // of the strict program: an operation, times 16, and an operand that it does not wait for
	lost    error
	info    device.Info
	waited  chan struct{} // closed when the child has ended
	ended   error         // how; once waited is closed
}

var _ device.Device = (*Device)(nil)

// Describe returns what the child was started with.
func (d *Device) Describe() device.Info { return d.info }

// programHash returns the beginning of the SHA-256 of the program that runs.
func programHash(program []byte) string {
	if program == nil {
		program = dsp.Emulator
	}
	sum := sha256.Sum256(program)
	return hex.EncodeToString(sum[:8])
}

// Open starts a child.
func Open(o Options) (*Device, error) {
	size := cmp.Or(o.Memory, 256<<20)
	if size < device.TCMBytes || size > MaxMemory || size%os.Getpagesize() != 0 {
		return nil, fmt.Errorf("hexagon: %d bytes of memory are not between %d and %d, or not whole pages", size, device.TCMBytes, MaxMemory)
	}
	workers := cmp.Or(o.Workers, DefaultWorkers)
	if workers < 1 || workers > device.MaxWorkers || o.Seed >= 1<<24 {
		return nil, fmt.Errorf("hexagon: %d workers are not between 1 and %d, or seed %d is not below %d", workers, device.MaxWorkers, o.Seed, 1<<24)
	}
	command := strings.Fields(cmp.Or(o.Emulator, os.Getenv(EmulatorEnv), "qemu-hexagon -cpu v67"))
	if len(command) == 0 {
		return nil, fmt.Errorf("hexagon: %s names no command", EmulatorEnv)
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return nil, fmt.Errorf("hexagon: no emulator (Debian's package qemu-user has qemu-hexagon; %s names another): %w", EmulatorEnv, err)
	}
	shared, memory, err := share(size)
	if err != nil {
		return nil, err
	}
	defer shared.Close()
	program, err := file("lutra-emulator.elf", o.Program)
	if err != nil {
		unix.Munmap(memory)
		return nil, err
	}
	defer program.Close()

	d := &Device{memory: memory, limit: cmp.Or(o.Limit, 2*time.Minute), tiles: device.NewTileUnit(o.Pool), keep: o.KeepTCM, waited: make(chan struct{})}
	d.info = device.Info{Arch: strings.Join(command, " "), Contexts: workers, TCM: device.TCMBytes, Source: programHash(o.Program)}
	d.child = exec.Command(path, append(command[1:], "/proc/self/fd/4")...)
	d.child.ExtraFiles = []*os.File{shared, program} // 3 and 4
	d.child.Stderr = &d.errors
	d.child.WaitDelay = busy // for what holds stderr open after the child has ended
	if err := d.start(); err != nil {
		unix.Munmap(memory)
		return nil, fmt.Errorf("hexagon: starting %s: %w", path, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.limit)
	defer cancel()
	defer d.killAtEnd(ctx)()
	answer, err := d.exchange(uint32(size), uint32(workers)|o.Seed<<8, nil)
	if err == nil && answer.Status != device.StatusOK {
		err = errors.New("the child cannot map the memory")
	}
	if err != nil {
		err = d.lose(ctx, err)
		d.Close()
		return nil, err
	}
	return d, nil
}

// share makes a file of memory, and maps it.
func share(size int) (*os.File, []byte, error) {
	fd, err := unix.MemfdCreate("lutra-hexagon", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, fmt.Errorf("hexagon: shared memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "lutra-hexagon")
	// The emulator maps whole pages of its own at a fixed place, and a file that ends within one not at all.
	const page = 1 << 16
	if err := f.Truncate(int64(size+page-1) &^ (page - 1)); err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("hexagon: shared memory of %d bytes: %w", size, err)
	}
	memory, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("hexagon: mapping %d bytes: %w", size, err)
	}
	return f, memory, nil
}

// file returns the program as a file that has no place in a file system.
func file(name string, program []byte) (*os.File, error) {
	if program == nil {
		program = dsp.Emulator
	}
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("hexagon: %s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.Write(program); err != nil {
		f.Close()
		return nil, fmt.Errorf("hexagon: %s: %w", name, err)
	}
	return f, nil
}

func (d *Device) start() error {
	stdin, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	out, stdout, err := os.Pipe()
	if err != nil {
		in.Close()
		return err
	}
	defer stdout.Close()
	d.child.Stdin, d.child.Stdout, d.in, d.out = stdin, stdout, in, out
	if err := d.child.Start(); err != nil {
		in.Close()
		out.Close()
		return err
	}
	go func() {
		d.ended = d.child.Wait()
		close(d.waited)
	}()
	return nil
}

// Name returns "qemu".
func (d *Device) Name() string { return "qemu" }

// Memory returns what the child shares.
func (d *Device) Memory() []byte { return d.memory }

// Run computes packets, in requests of at most device.MaxRequest. The child computes packets of the vector unit, this
// process packets of the tile unit when the child wants them.
func (d *Device) Run(ctx context.Context, packets []device.Packet) (device.Counts, error) {
	var total device.Counts
	if d.lost != nil {
		return total, d.lost
	}
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	defer d.killAtEnd(ctx)()
	d.poison(packets)
	begins := 1 | d.blind<<1
	for first := 0; first < len(packets); begins = 0 {
		some := packets[first:min(len(packets), first+device.MaxRequest)]
		answer, err := d.exchange(uint32(len(some)), begins, some)
		if err != nil {
			return total, d.lose(ctx, err)
		}
		total.Add(answer.Counts)
		first += answer.Done
		if answer.Status != device.StatusOK {
			return total, &device.PacketError{Index: first, Op: packets[first].Op, Status: answer.Status}
		}
	}
	return total, nil
}

// poison makes what the last run left in TCM meaningless: on a chip others may have had it.
func (d *Device) poison(next []device.Packet) {
	if d.keep {
		return
	}
	used := d.memory[:d.used]
	for n := copy(used, poison); n > 0 && n < len(used); n *= 2 {
		copy(used[n:], used[:n])
	}
	d.used = 0
	for _, p := range next {
		d.used = max(d.used, p.TCMEnd(len(d.memory)))
	}
}

const poison = "\xa5\xa5\xa5\xa5\xa5\xa5\xa5\xa5"

// exchange asks the child and checks what it answers: packets, or to map count bytes.
func (d *Device) exchange(count, begins uint32, packets []device.Packet) (device.Answer, error) {
	d.number++
	if _, err := d.in.Write(device.AppendRequest(nil, d.number, count, begins, packets)); err != nil {
		return device.Answer{}, err
	}
	var b [device.AnswerBytes]byte
	for products := 0; ; products++ {
		if _, err := io.ReadFull(d.out, b[:]); err != nil {
			return device.Answer{}, err
		}
		at, ok := device.ParseWanted(b[:], d.number, packets)
		if !ok || products == len(packets) || packets[at].Check(d.memory) != device.StatusOK {
			return device.ParseAnswer(b[:], d.number, len(packets))
		}
		d.tiles.Run(d.memory, packets[at])
		if _, err := d.in.Write(device.AppendDone(nil)); err != nil {
			return device.Answer{}, err
		}
	}
}

// killAtEnd kills the child when ctx ends before the function that it returns is called.
func (d *Device) killAtEnd(ctx context.Context) func() bool {
	return context.AfterFunc(ctx, d.kill)
}

// kill ends the child and whatever waits for it.
func (d *Device) kill() {
	d.child.Process.Kill()
	past := time.Unix(1, 0)
	d.in.SetDeadline(past)
	d.out.SetDeadline(past)
}

// busy is the time in which a dying child must report its end, on a machine that has much to do.
const busy = 20 * time.Second

// wait gives the child time to end by itself.
func (d *Device) wait(most time.Duration) {
	select {
	case <-d.waited:
	case <-time.After(most):
	}
}

// lose kills the child, says why, and keeps it.
func (d *Device) lose(ctx context.Context, why error) error {
	died := errors.Is(why, io.EOF) || errors.Is(why, io.ErrUnexpectedEOF) || errors.Is(why, unix.EPIPE)
	if died {
		d.wait(busy) // for how it ended
	}
	d.kill()
	<-d.waited
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		d.lost = fmt.Errorf("hexagon: the emulated device did not answer in time: %w", ctx.Err())
	case ctx.Err() != nil:
		d.lost = fmt.Errorf("hexagon: the emulated device was stopped: %w", ctx.Err())
	case died:
		d.lost = fmt.Errorf("hexagon: the emulated device died (%v)%s", d.ended, d.errors.said())
	default:
		d.lost = fmt.Errorf("hexagon: the emulated device is lost: %w%s", why, d.errors.said())
	}
	return d.lost
}

// Close ends the child. Memory must not be used any more.
func (d *Device) Close() error {
	if d.memory == nil {
		return nil
	}
	d.lost = errors.New("hexagon: the device is closed")
	d.in.Close() // the child reads the end of its requests
	d.wait(time.Second)
	d.kill()
	<-d.waited
	d.out.Close()
	err := unix.Munmap(d.memory)
	d.memory = nil
	return err
}

// tail keeps the first bytes that the child says on stderr.
type tail struct{ buf bytes.Buffer }

func (t *tail) Write(b []byte) (int, error) {
	t.buf.Write(b[:min(len(b), 512-min(t.buf.Len(), 512))])
	return len(b), nil
}

// said may be called once the child has ended.
func (t *tail) said() string {
	if s := strings.TrimSpace(t.buf.String()); s != "" {
		return ": " + s
	}
	return ""
}
