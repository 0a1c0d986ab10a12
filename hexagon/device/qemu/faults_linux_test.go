package qemu

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/hexagon/device"
)

// fakeEnv makes this test's binary a child that misbehaves as it says.
const fakeEnv = "LUTRA_TEST_CHILD"

func TestMain(m *testing.M) {
	if how := os.Getenv(fakeEnv); how != "" {
		misbehave(how)
	}
	os.Exit(m.Run())
}

// misbehave answers the first request, which maps the memory, as it should.
func misbehave(how string) {
	in := bufio.NewReader(os.Stdin)
	for {
		var q struct{ Magic, Number, Count, Zero uint32 }
		if binary.Read(in, binary.LittleEndian, &q) != nil {
			os.Exit(0)
		}
		a := struct {
			Magic, Number, Done uint32
			Status              device.Status
			Counts              device.Counts
		}{Magic: q.Magic, Number: q.Number}
		if q.Number > 1 || how == "cannot map" || how == "hangs at once" {
			if q.Number > 1 {
				io.CopyN(io.Discard, in, int64(q.Count)*64)
			}
			switch how {
			case "cannot map":
				a.Status = device.StatusRange
			case "hangs", "hangs at once":
				io.Copy(io.Discard, os.Stdin) // which stays open
			case "dies":
				os.Stderr.WriteString("something went wrong\n")
				os.Exit(3)
			case "answers in part":
				os.Stdout.Write(make([]byte, 7))
				os.Exit(0)
			case "claims too much":
				a.Done = q.Count + 1
			case "claims too little":
				a.Done = q.Count - 1
			case "fails without a reason":
				a.Done, a.Status = q.Count, device.StatusSize
			case "answers another":
				a.Done, a.Number = q.Count, q.Number-1
			case "knows other statuses":
				a.Status = 99
			case "is no child":
				a.Magic++
			}
		}
		binary.Write(os.Stdout, binary.LittleEndian, a)
	}
}

func fake(t *testing.T, how string, limit time.Duration) (*Device, error) {
	t.Setenv(fakeEnv, how)
	d, err := Open(Options{Memory: device.TCMBytes, Emulator: os.Args[0], Limit: limit})
	if d != nil {
		t.Cleanup(func() { d.Close() })
	}
	return d, err
}

var pings = []device.Packet{{Op: device.OpPing}, {Op: device.OpPing}}

func TestAChildThatDiesOrLiesIsAnError(t *testing.T) {
	for how, says := range map[string]string{
		"dies":                   "died (exit status 3): something went wrong",
		"answers in part":        "died",
		"claims too much":        "3 of 2 packets",
		"claims too little":      "1 of 2 packets",
		"fails without a reason": "2 of 2 packets went well, with status 2",
		"answers another":        "answer is none",
		"knows other statuses":   "answer is none",
		"is no child":            "answer is none",
	} {
		t.Run(how, func(t *testing.T) {
			d, err := fake(t, how, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = d.Run(t.Context(), pings)
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Fatalf("error %v, not of %q", err, says)
			}
			if _, again := d.Run(t.Context(), pings); again != err {
				t.Errorf("after that: %v", again)
			}
			d.Memory()[0] = 1 // stays until Close
		})
	}
}

func TestAHangingChildIsStoppedByItsLimitAndByTheContext(t *testing.T) {
	d, err := fake(t, "hangs", 0)
	if err != nil {
		t.Fatal(err)
	}
	d.limit = 20 * time.Millisecond // once it has begun, which takes longer on a busy machine
	if _, err := d.Run(t.Context(), pings); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "in time") {
		t.Error(err)
	}
	if d, err = fake(t, "hangs", 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Run(ctx, pings); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "stopped") {
		t.Error(err)
	}
}

func TestAnEmulatorThatCannotStartIsAnError(t *testing.T) {
	if _, err := fake(t, "hangs at once", 50*time.Millisecond); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Error(err)
	}
	if _, err := fake(t, "cannot map", 0); err == nil || !strings.Contains(err.Error(), "cannot map") {
		t.Error(err)
	}
	t.Setenv(fakeEnv, "")
	for emulator, says := range map[string]string{"no-such-emulator": "qemu-user", "false": "died (exit status 1)"} {
		if _, err := Open(Options{Emulator: emulator}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", emulator, err)
		}
	}
	// What the options say is read first, whether there is an emulator or not.
	t.Setenv(EmulatorEnv, "no-such-emulator")
	for _, o := range []Options{{Workers: -1}, {Workers: device.MaxWorkers + 1}, {Seed: 1 << 24}} {
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "workers") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, memory := range []int{4096, device.TCMBytes + 1, MaxMemory + 4096, -4096} {
		if _, err := Open(Options{Memory: memory}); err == nil || !strings.Contains(err.Error(), "bytes of memory") {
			t.Errorf("%d bytes of memory: %v", memory, err)
		}
	}
}
