package hub

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// A cache is a folder that other programs write to. Where a file should be may lie a
// pipe, which would be waited for without end, or a device that never ends.

// openPlain opens a plain file, or a link to one, and refuses everything else by its
// kind. The flag is os.OpenFile's.
func openPlain(path string, flag int) (*os.File, error) {
	if err := checkPlain(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat() // of what was opened: it may have been replaced
	if err == nil {
		err = plain(path, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checkPlain refuses what is there and is no plain file.
func checkPlain(path string) error {
	if info, err := os.Stat(path); err == nil {
		return plain(path, info)
	}
	return nil // opening it says what is wrong
}

func plain(path string, info fs.FileInfo) error {
	kind := "something else"
	switch m := info.Mode(); {
	case m.IsRegular():
		return nil
	case m.IsDir():
		kind = "a folder"
	case m&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case m&fs.ModeSocket != 0:
		kind = "a socket"
	case m&fs.ModeDevice != 0:
		kind = "a device"
	}
	return fmt.Errorf("%s is %s, not a file", path, kind)
}

// readPlain reads a plain file of at most limit bytes.
func readPlain(path string, limit int64) ([]byte, error) {
	f, err := openPlain(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return text, err
}

// replaceFile writes a file that others see whole or not at all.
func replaceFile(path string, text []byte) error {
	tmp := path + ".tmp"
	f, err := openPlain(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp) // the first error tells more
	}
	return err
}
