package cpu

import (
	"io/fs"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// spread puts the pages of a large array, which must not have been touched yet,
// on the memory nodes of the processors at work, round robin. Any worker may take
// any part of a matrix: this way all read equally fast, and all memory channels
// work. By default Linux would put a whole model on the node of the thread that
// packs it. The range is rounded outwards as in preferHugePages. Where the system
// refuses, nothing changes.
func spread(p unsafe.Pointer, bytes int) {
	nodes := ownNodes()
	if len(nodes) > 1 {
		_ = interleave(p, bytes, nodes)
	}
}

// mostNodes is the most memory nodes that Linux can be built for.
const mostNodes = 1024

func interleave(p unsafe.Pointer, bytes int, nodes []int) error {
	var mask [mostNodes / 64]uint64
	for _, n := range nodes {
		mask[n/64] |= 1 << (n % 64)
	}
	first := uintptr(p) &^ (hugePage - 1)
	end := (uintptr(p) + uintptr(bytes) + hugePage - 1) &^ (hugePage - 1)
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, first, end-first, unix.MPOL_INTERLEAVE, uintptr(unsafe.Pointer(&mask)), mostNodes+1, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// ownNodes are the memory nodes to use; none where somebody has decided
// otherwise for this process, as numactl does.
var ownNodes = sync.OnceValue(func() []int {
	var policy int32
	_, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&policy)), 0, 0, 0, 0, 0)
	cpus, err := affinity()
	if errno != 0 || policy != unix.MPOL_DEFAULT || err != nil {
		return nil
	}
	return nodesOf(os.DirFS("/sys/devices/system/node"), cpus)
})

// nodesOf returns the nodes that have memory and some of cpus, as sysfs (a folder
// nodeN for each) tells them.
func nodesOf(sysfs fs.FS, cpus iter.Seq[int]) []int {
	own := slices.Collect(cpus)
	var nodes []int
	for n := range listed(sysfs, "has_memory") {
		if n >= mostNodes {
			break
		}
		for cpu := range listed(sysfs, "node"+strconv.Itoa(n)+"/cpulist") {
			if slices.Contains(own, cpu) {
				nodes = append(nodes, n)
				break
			}
		}
	}
	return nodes
}

// listed reads a file such as "0-3,8" as 0, 1, 2, 3, 8. It stops at
// the first entry that is no number or range.
func listed(sysfs fs.FS, name string) iter.Seq[int] {
	return func(yield func(int) bool) {
		data, err := fs.ReadFile(sysfs, name)
		if err != nil {
			return
		}
		for part := range strings.SplitSeq(strings.TrimSpace(string(data)), ",") {
			from, to, ranged := strings.Cut(part, "-")
			lo, err := strconv.Atoi(from)
			hi := lo
			if err == nil && ranged {
				hi, err = strconv.Atoi(to)
			}
			if err != nil || lo < 0 || hi >= 1<<16 {
				return
			}
			for i := lo; i <= hi; i++ {
				if !yield(i) {
					return
				}
			}
		}
	}
}
