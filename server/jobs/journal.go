package jobs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
)

// journal is the file of a batch's answers. A record is a line, in the order in which they came:
//
//	CHECKSUM LINE KIND JSON
//
// A record that is torn or damaged is none, and takes no other with it: each begins with an end of line, besides its own.
type journal struct {
	file *os.File
	// write is (*os.File).WriteAt, but in tests of a full disk.
	write func(f *os.File, b []byte, at int64) (int, error)

	mu      sync.Mutex
	end     int64 // where the next record goes
	syncing sync.Mutex
	synced  int64 // bytes that are on the disk; held by syncing
}

// The kinds of a record.
const (
	kindDone   = 'o'
	kindFailed = 'e'
)

// place is where a line's answer stands in the journal.
type place struct {
	at   int64
	n    int32 // bytes with the end of the line; 0: there is no answer
	kind byte
}

// openJournal opens the journal at path, or makes it, and returns where the answers of the first n lines stand.
func openJournal(path string, n int) (*journal, []place, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	j := &journal{file: f, write: (*os.File).WriteAt}
	places, err := j.read(n)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return j, places, nil
}

// read finds the records of the first n lines. Of two for one line the first counts.
func (j *journal) read(n int) ([]place, error) {
	places, in := make([]place, n), bufio.NewReaderSize(j.file, 64<<10)
	for {
		line, size, err := readLine(in, mostAnswer+mostLine)
		if i, kind, _, ok := parse(line); ok && i < n && places[i].n == 0 {
			places[i] = place{j.end, int32(size), kind}
		}
		j.end += size
		if errors.Is(err, io.EOF) {
			return places, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// readLine reads a line and the bytes that it takes with its end. Of one that is longer than most it returns nothing.
func readLine(in *bufio.Reader, most int) (line []byte, size int64, err error) {
	for {
		part, err := in.ReadSlice('\n')
		size += int64(len(part))
		if len(line)+len(part) <= most {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if int64(len(line)) < size {
			line = nil
		}
		if k := len(line); k > 0 && line[k-1] == '\n' {
			line = line[:k-1]
		}
		return line, size, err
	}
}

// parse reads a record.
func parse(line []byte) (i int, kind byte, answer []byte, ok bool) {
	text, ok := opened(line)
	number, rest, cut := strings.Cut(string(text), " ")
	if !ok || !cut || len(rest) < 2 || rest[1] != ' ' {
		return 0, 0, nil, false
	}
	i, err := strconv.Atoi(number)
	return i, rest[0], []byte(rest[2:]), err == nil && i >= 0
}

// append adds the answer of line i and returns once it is on the disk. After an error the line has no answer.
func (j *journal) append(i int, kind byte, answer []byte) (place, error) {
	record := append([]byte{'\n'}, sealed(fmt.Appendf(nil, "%d %c %s", i, kind, answer))...)
	j.mu.Lock()
	p := place{j.end + 1, int32(len(record) - 1), kind}
	_, err := j.write(j.file, record, j.end)
	if err != nil {
		_ = j.file.Truncate(j.end) // else the next record stands over what was written
	} else {
		j.end += int64(len(record))
	}
	end := j.end
	j.mu.Unlock()
	if err != nil {
		return place{}, err
	}
	return p, j.sync(end)
}

// sync returns once the first end bytes are on the disk. One call does for all who wait.
func (j *journal) sync(end int64) error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	if j.synced >= end {
		return nil
	}
	j.mu.Lock()
	end = j.end
	j.mu.Unlock()
	if err := j.file.Sync(); err != nil {
		return err
	}
	j.synced = end
	return nil
}

// answer returns the answer of line i that stands at p; it is false where the record is damaged.
func (j *journal) answer(i int, p place) ([]byte, bool) {
	record := make([]byte, p.n)
	if n, err := j.file.ReadAt(record, p.at); err != nil && n < len(record) {
		return nil, false
	}
	if k := len(record); k > 0 && record[k-1] == '\n' {
		record = record[:k-1]
	}
	got, kind, text, ok := parse(record)
	return text, ok && got == i && kind == p.kind
}

// size returns how many bytes the journal has.
func (j *journal) size() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.end
}

func (j *journal) close() error { return j.file.Close() }
