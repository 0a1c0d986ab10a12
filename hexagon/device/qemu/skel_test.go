package qemu

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/selftest"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// skel is a phone's library as a program, whose caches show what memory had when their lines were last forgotten.
const skel = "build/skel-emulated.elf"

// library runs skel as a device.
type library struct {
	child   *exec.Cmd
	in      io.WriteCloser
	out     io.Reader
	errors  bytes.Buffer
	memory  []byte
	number  uint32
	touched func([]device.Lines) []device.Lines // a fault of the host's; nil: none
}

// Of a frame to the program (hexagon/dsp/emulator/skel.c) and from it.
const (
	invoke = 1 + iota
	message
	mapMemory
)

func openLibrary(program []byte, size int) (*library, error) {
	shared, memory, err := share(size)
	if err != nil {
		return nil, err
	}
	defer shared.Close()
	elf, err := file("skel.elf", program)
	if err != nil {
		return nil, err
	}
	defer elf.Close()
	l := &library{memory: memory, child: exec.Command("prlimit", "--cpu=60", "qemu-hexagon", "-cpu", "v67", "/proc/self/fd/4")}
	l.child.ExtraFiles, l.child.Stderr = []*os.File{shared, elf}, &l.errors
	if l.in, err = l.child.StdinPipe(); err != nil {
		return nil, err
	}
	if l.out, err = l.child.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := l.child.Start(); err != nil {
		return nil, err
	}
	const start, queue = 2<<24 | 1<<16, 42
	begin := binary.LittleEndian.AppendUint64(nil, queue)
	for _, word := range []uint32{3, 0, 0, 0} { // the mapping's file
		begin = binary.LittleEndian.AppendUint32(begin, word)
	}
	begin = binary.LittleEndian.AppendUint64(begin, uint64(size))
	if _, _, err = l.call(mapMemory, uint32(size), nil, nil); err == nil {
		_, _, err = l.call(invoke, start, nil, begin)
	}
	if err != nil {
		l.Close()
	}
	return l, err
}

// call sends a frame and returns the answer's argument and bytes.
func (l *library) call(kind, argument uint32, buffers, payload []byte) (uint32, []byte, error) {
	var frame []byte
	for _, word := range []uint32{kind, argument, uint32(len(payload))} {
		frame = binary.LittleEndian.AppendUint32(frame, word)
	}
	if _, err := l.in.Write(append(append(frame, buffers...), payload...)); err != nil {
		return 0, nil, l.died(err)
	}
	if _, err := io.ReadFull(l.out, frame); err != nil {
		return 0, nil, l.died(err)
	}
	result, n := binary.LittleEndian.Uint32(frame[4:]), int(binary.LittleEndian.Uint32(frame[8:]))
	if kind == message {
		n += int(result) * bufferBytes
	} else if result != 0 {
		return 0, nil, fmt.Errorf("call %d is %d", kind, result)
	}
	answer := make([]byte, n)
	if _, err := io.ReadFull(l.out, answer); err != nil {
		return 0, nil, l.died(err)
	}
	return result, answer, nil
}

func (l *library) died(err error) error {
	l.in.Close()
	return fmt.Errorf("the library ends: %w: %v %s", err, l.child.Wait(), l.errors.String())
}

const bufferBytes = 24

// Run tells the library of each message's lines, as the host's side of FastRPC does.
func (l *library) Run(_ context.Context, packets []device.Packet) (total device.Counts, err error) {
	for first := 0; first < len(packets); {
		part := packets[first:min(first+device.MaxRequest, len(packets))]
		begins := uint32(0)
		if first == 0 {
			begins = 1
		}
		lines := device.Touched(part, len(l.memory))
		if l.touched != nil {
			lines = l.touched(lines)
		}
		var buffers []byte
		for _, s := range lines {
			flags := uint32(16 | 32)
			if s.Streamed {
				flags = 16
			}
			for _, word := range []uint32{3, uint32(s.End - s.From), uint32(s.From), flags, 0, 0} {
				buffers = binary.LittleEndian.AppendUint32(buffers, word)
			}
		}
		l.number++
		returned, b, err := l.call(message, uint32(len(buffers)/bufferBytes), buffers, device.AppendRequest(nil, l.number, uint32(len(part)), begins, part))
		if err != nil {
			return total, err
		}
		answer, err := device.ParseAnswer(b[returned*bufferBytes:], l.number, len(part))
		if err != nil {
			return total, err
		}
		first += answer.Done
		if answer.Status != device.StatusOK {
			return total, &device.PacketError{Index: first, Op: packets[first].Op, Status: answer.Status}
		}
	}
	return total, nil
}

func (l *library) Name() string   { return "library" }
func (l *library) Memory() []byte { return l.memory }
func (l *library) Close() error {
	l.in.Close()
	err := l.child.Wait()
	return errors.Join(err, unix.Munmap(l.memory))
}

// libraryDiffers says what a self-test of a library finds.
func libraryDiffers(t *testing.T, program []byte) error {
	return hostDiffers(t, program, nil)
}

func hostDiffers(t *testing.T, program []byte, touched func([]device.Lines) []device.Lines) error {
	r, err := selftest.Run(t.Context(), selftest.Options{Backend: "hexagon", Quick: true, Rounds: 4, Cases: 1, Open: func(bytes int, step func(string)) (device.Device, error) {
		step("starting")
		l, err := openLibrary(program, bytes)
		if err == nil {
			l.touched = touched
		}
		return l, err
	}})
	if err == nil && !r.Verdict.OK {
		err = errors.New(strings.Join(r.Verdict.Faults, "; "))
	}
	return err
}

// A phone's library sees what the host writes, and the host sees the results, by the lines that packets touch alone. With a line
// less at either end of a part, one of them does not.
func TestALibrarysCachesAgreeWithMemoryByLines(t *testing.T) {
	sweep.Hexagon(t, "make", "clang-19", "ld.lld-19", "qemu-hexagon", "prlimit")
	program := tree(sources).build(t, skel)
	if err := libraryDiffers(t, program); err != nil {
		t.Fatal(err)
	}
	for name, fault := range map[string]func(device.Lines) device.Lines{
		"ends a line early":   func(l device.Lines) device.Lines { l.End -= device.LineBytes; return l },
		"begins a line late":  func(l device.Lines) device.Lines { l.From += device.LineBytes; return l },
		"is all streamed":     func(l device.Lines) device.Lines { l.Streamed = true; return l },
		"is beyond a mapping": func(l device.Lines) device.Lines { l.End = 1 << 30; return l },
	} {
		err := hostDiffers(t, program, func(all []device.Lines) (kept []device.Lines) {
			for _, l := range all {
				if l = fault(l); l.From < l.End {
					kept = append(kept, l)
				}
			}
			return kept
		})
		if err == nil {
			t.Errorf("a host whose parts each %s is not noticed", name)
		}
		t.Log(name, err)
	}
}
