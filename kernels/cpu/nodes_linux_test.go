package cpu

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestMemoryNodesAreThoseOfTheProcessorsAtWork(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s + "\n")} }
	machine := fstest.MapFS{ // two sockets, a node of memory alone, one of processors alone
		"has_memory":    file("0-2"),
		"node0/cpulist": file("0-3,8-11"),
		"node1/cpulist": file("4-7,12-15"),
		"node2/cpulist": file(""),
		"node3/cpulist": file("16"),
	}
	for _, c := range []struct {
		name string
		cpus []int
		want []int
	}{
		{"all", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, []int{0, 1}},
		{"hyper-threads of the second socket", []int{12, 13}, []int{1}},
		{"one processor of each", []int{11, 4}, []int{0, 1}},
		{"a processor without memory", []int{16}, nil},
	} {
		if got := nodesOf(machine, slices.Values(c.cpus)); !slices.Equal(got, c.want) {
			t.Errorf("%s: nodes %v, want %v", c.name, got, c.want)
		}
	}
	for _, text := range []string{"", "x", "0-", "-1", "0-99999999", "5-3", "1,,2"} {
		for n := range listed(fstest.MapFS{"has_memory": file(text)}, "has_memory") {
			if text != "1,,2" || n != 1 {
				t.Errorf("%q lists %d", text, n)
			}
		}
	}
	if got := nodesOf(fstest.MapFS{}, slices.Values([]int{0})); got != nil {
		t.Errorf("a machine without nodes has %v", got)
	}
}

func TestLargeArraysCanBeSpreadOverNodes(t *testing.T) {
	const bytes = 8 << 20
	array := make([]byte, bytes)
	err := interleave(unsafe.Pointer(&array[0]), bytes, []int{0})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		t.Skip("this system does not let processes place memory: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/numa_maps")
	if err != nil {
		t.Skip(err)
	}
	at, policy := uintptr(unsafe.Pointer(&array[bytes/2])), ""
	for line := range strings.Lines(string(maps)) { // by ascending begins
		begin, rest, _ := strings.Cut(line, " ")
		if n, err := strconv.ParseUint(begin, 16, 64); err == nil && uintptr(n) <= at {
			policy = rest
		}
	}
	if !strings.HasPrefix(policy, "interleave:0") {
		t.Errorf("the array's pages: %s", policy)
	}
}
