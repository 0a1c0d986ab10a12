package kernels

import (
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// physicalCores counts the cores behind this process's affinity mask, zero if
// the kernel does not say.
func physicalCores() int {
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mask); err != nil {
		return 0
	}
	return countCores(os.DirFS("/sys/devices/system/cpu"), func(yield func(int) bool) {
		for cpu := range len(mask) * strconv.IntSize {
			if mask.IsSet(cpu) && !yield(cpu) {
				return
			}
		}
	})
}

// countCores counts distinct sets of hyper-threads among cpus, as sysfs (a
// folder cpuN for each) tells them; zero if it misses one.
func countCores(sysfs fs.FS, cpus func(yield func(int) bool)) int {
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
