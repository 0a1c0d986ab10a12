package kernels

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestLargeArraysLieOnHugePages(t *testing.T) {
	if mode, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled"); err != nil || strings.Contains(string(mode), "[never]") {
		t.Skip("this system has no transparent huge pages")
	}
	const bytes = 16 << 20
	control, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(control) }()
	if err := unix.Madvise(control, unix.MADV_HUGEPAGE); err != nil {
		t.Skip("this system takes no advice for huge pages: ", err)
	}
	if shown, _ := mappingAdvised(uintptr(unsafe.Pointer(&control[0])) + bytes/2); !shown {
		t.Skip("this system, such as an emulated one, does not show what advice it was given")
	}
	array := aligned[uint8](bytes)
	for i := 0; i < bytes; i += 4096 {
		array[i] = 1
	}
	first := uintptr(unsafe.Pointer(&array[0]))
	advised, err := mappingAdvised(first + bytes/2)
	if err != nil {
		t.Fatal(err)
	}
	if !advised {
		t.Error("the mapping of a large array carries no advice for huge pages")
	}
}

// mappingAdvised reports whether the mapping that holds address has the flag
// "hg" in /proc/self/smaps.
func mappingAdvised(address uintptr) (bool, error) {
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		return false, err
	}
	defer file.Close()
	inside := false
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var from, to uintptr
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x ", &from, &to); n == 2 {
			inside = from <= address && address < to
			continue
		}
		if flags, ok := strings.CutPrefix(lines.Text(), "VmFlags:"); ok && inside {
			return strings.Contains(flags+" ", " hg "), nil
		}
	}
	return false, fmt.Errorf("no mapping holds %x: %w", address, lines.Err())
}
