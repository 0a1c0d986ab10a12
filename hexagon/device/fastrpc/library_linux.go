//go:build fastrpc

package fastrpc

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// library is libcdsprpc.so. The public headers remote.h, rpcmem.h and
// dspqueue.h declare its functions; all but the three of rpcmem return 0 or an error's number.
type library struct {
	rpcmemAlloc  func(heap int32, flags uint32, size int32) unsafe.Pointer
	rpcmemFree   func(p unsafe.Pointer)
	rpcmemToFD   func(p unsafe.Pointer) int32
	control      func(request uint32, data unsafe.Pointer, n uint32) int32
	handleOpen   func(uri string, handle *uint64) int32
	handleInvoke func(handle uint64, scalars uint32, args unsafe.Pointer) int32
	handleClose  func(handle uint64) int32
	mmap         func(domain, fd int32, addr unsafe.Pointer, offset int32, n uintptr, flags int32) int32
	munmap       func(domain, fd int32, addr unsafe.Pointer, n uintptr) int32
	queueCreate  func(domain int32, flags, requests, responses uint32, packet, err, context uintptr, queue *unsafe.Pointer) int32
	queueExport  func(queue unsafe.Pointer, id *uint64) int32
	queueClose   func(queue unsafe.Pointer) int32
	queueWrite   func(queue unsafe.Pointer, flags, buffers uint32, b unsafe.Pointer, n uint32, message *byte, us uint32) int32
	// These are nil where a library has none.
	handleControl   func(request uint32, data unsafe.Pointer, n uint32) int32
	handle64Control func(handle uint64, request uint32, data unsafe.Pointer, n uint32) int32
	queueRead       func(queue unsafe.Pointer, flags *uint32, maxBuffers uint32, buffers *uint32, b unsafe.Pointer, max uint32, n *uint32, message *byte, us uint32) int32
}

func load(path string) (*library, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("hexagon: no FastRPC library, which a Snapdragon's system has: %w", err)
	}
	l := new(library)
	for name, fn := range map[string]any{
		"rpcmem_alloc": &l.rpcmemAlloc, "rpcmem_free": &l.rpcmemFree, "rpcmem_to_fd": &l.rpcmemToFD,
		"remote_session_control": &l.control, "remote_handle64_open": &l.handleOpen,
		"remote_handle64_invoke": &l.handleInvoke, "remote_handle64_close": &l.handleClose,
		"fastrpc_mmap": &l.mmap, "fastrpc_munmap": &l.munmap,
		"dspqueue_create": &l.queueCreate, "dspqueue_export": &l.queueExport, "dspqueue_close": &l.queueClose,
		"dspqueue_write": &l.queueWrite, "dspqueue_read": &l.queueRead,
	} {
		symbol, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("hexagon: %s is too old or another library: %w", path, err)
		}
		purego.RegisterFunc(fn, symbol)
	}
	for name, fn := range map[string]any{"remote_handle_control": &l.handleControl, "remote_handle64_control": &l.handle64Control} {
		if symbol, err := purego.Dlsym(handle, name); err == nil {
			purego.RegisterFunc(fn, symbol)
		}
	}
	return l, nil
}

// codes are names of errors, as AEEStdErr.h numbers them; errors of the DSP's side have remote added.
var codes = map[uint32]string{
	1: "AEE_EFAILED", 2: "AEE_ENOMEMORY", 3: "AEE_ECLASSNOTSUPPORT", 4: "AEE_EVERSIONNOTSUPPORT", 6: "AEE_EUNABLETOLOAD",
	12: "AEE_EEXPIRED", 13: "AEE_EBADSTATE", 14: "AEE_EBADPARM", 16: "AEE_EBADITEM", 20: "AEE_EUNSUPPORTED", 21: "AEE_EPRIVLEVEL",
}

const remote = 0x80000400

// stages are the parts of the start on the DSP (hexagon/dsp/device/platform_sdk.c), whose number stands above an error.
var stages = []string{1: "the vote for power", "finding the host's memory", "asking for the size of TCM", "having TCM and the tile unit"}

// check makes an error of what a function returned.
func check(what string, code int32) error {
	if code == 0 {
		return nil
	}
	low := uint32(code)
	if stage := int(low >> 16); stage > 0 && stage < len(stages) {
		what, low = what+": "+stages[stage], low&0xffff
	}
	name := codes[low&^remote]
	if name != "" {
		name = " (" + name + ")"
	}
	return fmt.Errorf("hexagon: FastRPC: %s failed with %#x%s", what, uint32(code), name)
}
