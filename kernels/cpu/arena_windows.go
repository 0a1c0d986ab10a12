package cpu

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// mapRegion returns fresh memory of the system, zeroed when it is first touched.
func mapRegion(bytes int) ([]byte, error) {
	at, err := windows.VirtualAlloc(0, uintptr(bytes), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return nil, err
	}
	// The address is no Go pointer and never becomes one: the collector does not look there.
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), bytes), nil
}

func unmapRegion(region []byte) error {
	return windows.VirtualFree(uintptr(unsafe.Pointer(unsafe.SliceData(region))), 0, windows.MEM_RELEASE)
}
