package jobs

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
)

// errDamaged says that neither copy of a record is as it was written.
var errDamaged = errors.New("jobs: the record is damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealed returns text as a line that begins with its checksum.
func sealed(text []byte) []byte {
	return fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(text, castagnoli), text)
}

// opened returns the text of a line that sealed has made, without its end.
func opened(line []byte) (text []byte, ok bool) {
	if len(line) < 9 || line[8] != ' ' {
		return nil, false
	}
	text = line[9:]
	return text, string(line[:8]) == fmt.Sprintf("%08x", crc32.Checksum(text, castagnoli))
}

// writeRecord puts v in place of the record at path, twice: a damaged copy leaves the other.
func writeRecord(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	line := sealed(text)
	return replace(path, func(w *os.File) error {
		_, err := w.Write(append(line, line...))
		return err
	})
}

// mostRecord bounds a record in bytes: a batch's has 16 fields of its owner's and some faults.
const mostRecord = 1 << 20

// readRecord reads the record at path into v.
func readRecord(path string, v any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Buffer(nil, mostRecord); s.Scan(); {
		if text, ok := opened(s.Bytes()); ok && json.Unmarshal(text, v) == nil {
			return nil
		}
	}
	return errDamaged
}

// temporary ends the names of files that are being written.
const temporary = ".tmp"

// replace puts what write writes in place of the file at path, which at any moment is the one or the other.
func replace(path string, write func(*os.File) error) error {
	f, err := os.OpenFile(path+temporary, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(path+temporary, path)
	}
	if err != nil {
		os.Remove(path + temporary)
		return err
	}
	syncFolder(filepath.Dir(path))
	return nil
}

// syncFolder writes the names of a folder to the disk, where the system has that.
func syncFolder(path string) {
	if d, err := os.Open(path); err == nil {
		_ = d.Sync()
		d.Close()
	}
}
