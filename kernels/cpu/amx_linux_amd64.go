//go:build !purego

package cpu

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What arch_prctl takes (Linux, Documentation/arch/x86/xstate.rst), and the components of a thread's state that tiles
// are: their configuration, and 8 KiB of data.
const (
	archGetPermission = 0x1022
	archAskPermission = 0x1023
	tileConfiguration = 17
	tileData          = 18
)

// askForTiles has Linux let all threads of this process use tiles, which it does not by itself. Stacks of signal
// handlers then need room for them, as Go's have. It fails where the processor, the kernel or a
// sandbox says no; Linux looks into XCR0 itself.
func askForTiles() error {
	if _, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, archAskPermission, tileData, 0); errno != 0 {
		return fmt.Errorf("the system grants no tiles: %w", errno)
	}
	const both = 1<<tileConfiguration | 1<<tileData
	var granted uint64
	if _, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, archGetPermission, uintptr(unsafe.Pointer(&granted)), 0); errno != 0 || granted&both != both {
		return errors.New("the system grants no tiles, though it says so")
	}
	return nil
}
