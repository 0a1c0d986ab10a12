//go:build !unix

package disk

import (
	"fmt"
	"os"
)

// stampOf returns what the system says of an open file.
func stampOf(file *os.File) (stamp, error) {
	info, err := file.Stat()
	if err != nil {
		return stamp{}, err
	}
	return stamp{info.Size(), [2]int64{info.ModTime().Unix(), int64(info.ModTime().Nanosecond())}}, nil
}

// stateOf says how an open file is as far as the system tells.
func stateOf(file *os.File) (string, error) {
	s, err := stampOf(file)
	return fmt.Sprint(s), err
}
