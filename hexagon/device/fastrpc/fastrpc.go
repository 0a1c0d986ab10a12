// Package fastrpc is a Snapdragon's NPU as a device: libcdsprpc.so, the FastRPC library
// of Android and Linux there, carries packets to liblutra_skel.so on the DSP
// (hexagon/dsp/device). No phone has run it yet: it is tested against a stand-in for
// libcdsprpc.so whose DSP is the skel's own code under qemu-hexagon.
//
// Loading a C library links a program dynamically, so that only programs built with
// -tags fastrpc have this device.
package fastrpc

import "time"

// Options of Open. The zero value is good.
type Options struct {
	// Memory in bytes, more than device.TCMBytes and at most MaxMemory; 0 means 256 MiB.
	Memory int
	// Limit is how long Run waits for one request before the DSP is taken for hung; 0
	// means ten seconds.
	Limit time.Duration
	// Library is the file to load; empty means "libcdsprpc.so".
	Library string
}

// MaxMemory is the most that rpcmem_alloc can say.
const MaxMemory = 2<<30 - 4096
