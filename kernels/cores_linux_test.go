package kernels

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
