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
	// Limit is the time that Run waits for one request before the DSP is taken for hung; 0 means ten
	// seconds.
	Limit time.Duration
	// Library is the file to load; empty means "libcdsprpc.so".
	Library string
	// Step is called before each call that opens the device; nil: nothing is.
	Step func(name string)
}

// The steps of Open.
const (
	StepLibrary  = "loading the FastRPC library"
	StepUnsigned = "asking for an unsigned process"
	StepSkel     = "opening liblutra_skel.so on the DSP"
	StepLatency  = "asking for short answers"
	StepMemory   = "allocating memory for the DSP"
	StepMap      = "mapping memory"
	StepQueue    = "making a queue"
	StepExport   = "exporting the queue"
	StepStart    = "starting"
)

// Try returns what may repair a step of Open that failed.
func Try(step string) string { return tries[step] }

var tries = map[string]string{
	StepLibrary:  "run a program that was built with -tags fastrpc on the phone itself, from adb shell with LD_LIBRARY_PATH=/vendor/lib64",
	StepUnsigned: "nothing: this phone's vendor lets only signed libraries run on the DSP",
	StepSkel:     "put liblutra_skel.so of this chip's architecture into the folder that ADSP_LIBRARY_PATH (or DSP_LIBRARY_PATH) names",
	StepLatency:  "nothing: the session goes on, and may be slower",
	StepMemory:   "end other programs; a self-test needs 40 MiB of the system's DMA heap",
	StepMap:      "restart the phone: mappings of programs that were killed may be left over",
	StepQueue:    "update the phone: its FastRPC library has no dspqueue that works",
	StepExport:   "update the phone: its FastRPC library has no dspqueue that works",
	StepStart:    "end other programs that use the NPU: the library wants all of its TCM and the tile unit",
}

// MaxMemory is the most that a session maps: of a DSP's 4 GiB of addresses its own code and TCM take some, and ggml-hexagon maps
// 3.2 GB. Mappings are of device.MappingBytes at most, which rpcmem_alloc can say: phones lack rpcmem_alloc2.
const MaxMemory = 3_200_000_000 &^ 4095

// MostMemory is the most that a session maps on chips of an architecture, such as V75; "": nobody knows which. 8 Gen 2 (V73)
// and older chips have 2 GiB of addresses.
func MostMemory(arch string) int {
	if arch != "" && arch < "V75" {
		return 2<<30 - 4096
	}
	return MaxMemory
}
