// Package memory measures the memory of the machine or container, and bounds
// the heap of this process.
package memory

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/pbnjay/memory"

	"github.com/lutra-lm/lutra/internal/cgroup"
)

// fallbackMemory is assumed free if the system says nothing at all.
const fallbackMemory = 2 << 30

// Physical returns the machine's memory or the container's limit in bytes; 0 if the
// system does not say.
func Physical() int64 {
	total := int64(min(memory.TotalMemory(), math.MaxInt64))
	if limit, _, ok := cgroup.Memory(os.DirFS("/")); ok {
		total = min(total, limit)
	}
	return total
}

// Free returns the bytes that can still be allocated without swapping and within a
// container's limit; half of the memory if the system does not say.
func Free() int64 {
	free, measured := measure()
	if total := Physical(); !measured && total > 0 {
		free = total / 2
	}
	return free
}

// ForWeights returns the bytes that a model's weights may take without doing harm. These are four
// fifths of the free memory once the promised bytes have been taken. If the system does not say what is
// free, they are three quarters of the memory.
func ForWeights(promised int64) int64 {
	free, measured := measure()
	if total := Physical(); !measured && total > 0 {
		return max(0, total/4*3-promised)
	}
	return max(0, free-promised) / 5 * 4
}

// measure returns what is free, and whether the system says so.
func measure() (free int64, ok bool) {
	free = fallbackMemory
	if data, err := os.ReadFile("/proc/meminfo"); err == nil {
		const unknown = -1
		if n := meminfoAvailable(data, unknown); n != unknown {
			free, ok = n, true
		}
	}
	if limit, used, limited := cgroup.Memory(os.DirFS("/")); limited {
		if left := max(limit-used, 0); !ok || left < free {
			free, ok = left, true
		}
	}
	return free, ok
}

func meminfoAvailable(data []byte, otherwise int64) int64 {
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "MemAvailable:"); ok {
			if kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64); err == nil {
				return kb << 10
			}
		}
	}
	return otherwise
}
