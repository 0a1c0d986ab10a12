//go:build !unix

package disk

import "os"

// stampOf returns what the system says of an open file.
func stampOf(file *os.File) (stamp, error) {
	info, err := file.Stat()
	if err != nil {
		return stamp{}, err
	}
	return stamp{info.Size(), [2]int64{info.ModTime().Unix(), int64(info.ModTime().Nanosecond())}}, nil
}
