package cpu

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
	var arena Arena
	defer arena.Free()
	outside, err := Array[uint8](&arena, bytes)
	if err != nil {
		t.Fatal(err)
	}
	for place, array := range map[string][]uint8{"the heap": Aligned[uint8](bytes), "an arena": outside} {
		for i := 0; i < bytes; i += 4096 {
			array[i] = 1
		}
		advised, err := mappingAdvised(uintptr(unsafe.Pointer(&array[0])) + bytes/2)
		if err != nil {
			t.Fatal(err)
		}
		if !advised {
			t.Errorf("the mapping of a large array in %s carries no advice for huge pages", place)
		}
	}
}

func TestCommittedMemoryIsThere(t *testing.T) {
	const bytes = 1 << 20
	fresh := func() []byte {
		m, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Munmap(m) })
		return m
	}
	resident := func(m []byte) (n int) {
		pages := make([]byte, bytes/unix.Getpagesize())
		if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&m[0])), bytes, uintptr(unsafe.Pointer(&pages[0]))); errno != 0 {
			t.Skip("this system does not tell which pages are there: ", errno)
		}
		for _, p := range pages {
			n += int(p & 1)
		}
		return n
	}
	control, mapped, all := fresh(), fresh(), bytes/unix.Getpagesize()
	if unix.Madvise(control, unix.MADV_POPULATE_WRITE) != nil || resident(control) != all || resident(mapped) != 0 {
		t.Skip("this system, such as an emulated one, does not commit memory when asked to, or before")
	}
	array := unsafe.Slice((*int8)(unsafe.Pointer(&mapped[0])), bytes)
	array[5] = 7
	if !Commit(array) || resident(mapped) != all || array[5] != 7 {
		t.Errorf("%d of %d pages are there, array[5] = %d", resident(mapped), all, array[5])
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
