package cpu

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestHyperThreadsOfACoreCountOnce(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s + "\n")} }
	machine := fstest.MapFS{ // two cores of two threads, one of one, as old and new kernels name them
		"cpu0/topology/core_cpus_list":       file("0,2"),
		"cpu1/topology/core_cpus_list":       file("1,3"),
		"cpu2/topology/core_cpus_list":       file("0,2"),
		"cpu3/topology/thread_siblings_list": file("1,3"),
		"cpu4/topology/core_cpus_list":       file("4"),
	}
	for _, c := range []struct {
		name  string
		cpus  []int
		cores int
	}{
		{"all", []int{0, 1, 2, 3, 4}, 3},
		{"one thread of each core", []int{0, 1}, 2},
		{"both threads of one core", []int{0, 2}, 1},
		{"a processor without a topology", []int{0, 5}, 0},
	} {
		if got := countCores(machine, slices.Values(c.cpus)); got != c.cores {
			t.Errorf("%s: %d cores, want %d", c.name, got, c.cores)
		}
	}
}

func TestAMachineHasAtLeastOneCore(t *testing.T) {
	if Cores() < 1 {
		t.Errorf("%d cores", Cores())
	}
}

func TestAQuotaBindsInWholeProcessors(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s + "\n")} }
	for _, c := range []struct {
		name  string
		root  fstest.MapFS
		cores int
	}{
		{"no control groups", fstest.MapFS{}, 0},
		{"no quota", fstest.MapFS{"proc/self/cgroup": file("0::/"), "sys/fs/cgroup/cpu.max": file("max 100000")}, 0},
		{"a container of two and a half", fstest.MapFS{"proc/self/cgroup": file("0::/"), "sys/fs/cgroup/cpu.max": file("250000 100000")}, 2},
		{"half a processor", fstest.MapFS{"proc/self/cgroup": file("0::/"), "sys/fs/cgroup/cpu.max": file("50000 100000")}, 1},
		{"the group above is narrower", fstest.MapFS{
			"proc/self/cgroup":              file("1:name=systemd:/x\n0::/a/b"),
			"sys/fs/cgroup/a/b/cpu.max":     file("800000 100000"),
			"sys/fs/cgroup/a/cpu.max":       file("300000 100000"),
			"sys/fs/cgroup/elsewhere/x.max": file("100000 100000"),
		}, 3},
		{"a group outside of the container's view", fstest.MapFS{"proc/self/cgroup": file("0::/../.."), "sys/fs/cgroup/cpu.max": file("400000 100000")}, 4},
		{"nonsense", fstest.MapFS{"proc/self/cgroup": file("0::/"), "sys/fs/cgroup/cpu.max": file("-5 0")}, 0},
		{"no period", fstest.MapFS{"proc/self/cgroup": file("0::/"), "sys/fs/cgroup/cpu.max": file("100000")}, 0},
	} {
		if got := countQuota(c.root); got != c.cores {
			t.Errorf("%s: %d processors, want %d", c.name, got, c.cores)
		}
	}
}
