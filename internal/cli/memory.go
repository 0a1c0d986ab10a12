package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// fallbackMemory is assumed free where the system does not say.
const fallbackMemory = 2 << 30

// bytes is the configured KV budget of one model, 0 for "auto".
func (c KVConfig) bytes() (int64, error) {
	if c.Memory == "auto" || c.Memory == "" {
		return 0, nil
	}
	n, err := humanize.ParseBytes(c.Memory)
	if err != nil {
		return 0, fmt.Errorf("%q is no size such as 512MiB or 2GiB", c.Memory)
	}
	if n < 1<<20 || n > 1<<50 {
		return 0, fmt.Errorf("%q is outside 1MiB..1PiB", c.Memory)
	}
	return int64(n), nil
}

// freeMemory is what can still be allocated without swapping, a container's
// limit included.
func freeMemory() int64 {
	free := int64(fallbackMemory)
	if data, err := os.ReadFile("/proc/meminfo"); err == nil {
		free = meminfoAvailable(data, free)
	}
	if limit, ok := readInt("/sys/fs/cgroup/memory.max"); ok {
		used, _ := readInt("/sys/fs/cgroup/memory.current")
		free = min(free, max(limit-used, 0))
	}
	return free
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

func readInt(path string) (int64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}
