package cpu

import (
	"io/fs"
	"iter"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// affinity lists the logical processors that this process may run on.
func affinity() (iter.Seq[int], error) {
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mask); err != nil {
		return nil, err
	}
	return func(yield func(int) bool) {
		for cpu := range len(mask) * strconv.IntSize {
			if mask.IsSet(cpu) && !yield(cpu) {
				return
			}
		}
	}, nil
}

// physicalCores counts the cores of this process's affinity mask, zero if
// the kernel does not say.
func physicalCores() int {
	cpus, err := affinity()
	if err != nil {
		return 0
	}
	return countCores(os.DirFS("/sys/devices/system/cpu"), cpus)
}

// countCores counts distinct sets of hyper-threads among cpus, as sysfs (a
// folder cpuN for each) tells them; zero if it misses one.
func countCores(sysfs fs.FS, cpus iter.Seq[int]) int {
	cores := map[string]bool{}
	for cpu := range cpus {
		topology := "cpu" + strconv.Itoa(cpu) + "/topology/"
		threads, err := fs.ReadFile(sysfs, topology+"core_cpus_list")
		if err != nil { // its name before Linux 5.3
			threads, err = fs.ReadFile(sysfs, topology+"thread_siblings_list")
		}
		if err != nil {
			return 0
		}
		cores[string(threads)] = true
	}
	return len(cores)
}

// quotaCores returns the whole processors of this process's quota, at least one;
// zero if it has none.
func quotaCores() int { return countQuota(os.DirFS("/")) }

// countQuota reads the quota from the control groups (version 2) of a root
// file system: the quotas of the process's own group and of the groups above it all bind. A
// container sees its group as the root.
func countQuota(root fs.FS) int {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	cores := 0
	for line := range strings.Lines(string(groups)) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		// Joined to the root first, no ".." leads out of it.
		for dir := path.Join("/", group); ; dir = path.Dir(dir) {
			if n := readQuota(root, path.Join("sys/fs/cgroup", dir, "cpu.max")); n > 0 && (cores == 0 || n < cores) {
				cores = n
			}
			if dir == "/" {
				break
			}
		}
	}
	return cores
}

// readQuota reads a file of "quota period" in µs; zero if it is "max period", or none.
func readQuota(root fs.FS, name string) int {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	quota, period, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	q, err := strconv.Atoi(quota)
	if err != nil || q < 1 {
		return 0
	}
	p, err := strconv.Atoi(period)
	if err != nil || p < 1 {
		return 0
	}
	return max(q/p, 1)
}
