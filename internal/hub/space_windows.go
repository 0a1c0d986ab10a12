package hub

import (
	"os"

	"golang.org/x/sys/windows"
)

func freeSpace(dir string) (int64, error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
	return int64(min(free, 1<<62)), err
}

// allocated is not asked of Windows: 0 is unknown.
func allocated(*os.File) int64 { return 0 }
