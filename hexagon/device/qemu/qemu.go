// Package qemu is the emulated device: the machine code of hexagon/dsp under
// qemu-hexagon, a child process that shares its memory with this one. It gives the
// results of the chip's instructions; its speed says nothing about a chip. The tile unit,
// which qemu lacks, is hexagon/hmx. Linux only.
package qemu

import (
	"time"

	"github.com/lutra-lm/lutra/kernels/pool"
)

// Options of Open. The zero value is good.
type Options struct {
	// Memory in bytes, at least device.TCMBytes and at most MaxMemory; 0 means 256 MiB.
	// What is not used costs nothing.
	Memory int
	// Limit bounds the time of Run before the child is taken for hung; 0 means two minutes.
	Limit time.Duration
	// Workers are the threads with vectors that the device has, at most device.MaxWorkers; 0
	// means DefaultWorkers. Their shards of an operation run one after the other.
	Workers int
	// Seed, below 1<<24, chooses an order of shards, each of which then runs by itself, twice: the
	// child dies where two write one place or one reads what another writes. 0: they run as they come.
	Seed uint32
	// Pool works for the tile unit; nil means one goroutine.
	Pool *pool.Pool
	// Emulator is the command to run, with its flags; empty means the environment's
	// LUTRA_QEMU_HEXAGON, or "qemu-hexagon -cpu v67".
	Emulator string
	// KeepTCM lets TCM keep from run to run what it holds, and the host write there: for tests of
	// single packets.
	KeepTCM bool
	// Program is run instead of dsp.Emulator; for tests of kernels that lie elsewhere.
	Program []byte
}

// DefaultWorkers is the number of vector threads of the phone that the T-MAN paper measures.
const DefaultWorkers = 4

// MaxMemory bounds the memory that a child of 32 bits can share: qemu maps no part of a file beyond.
const MaxMemory = 2 << 30

// EmulatorEnv names the environment variable of Options.Emulator.
const EmulatorEnv = "LUTRA_QEMU_HEXAGON"
