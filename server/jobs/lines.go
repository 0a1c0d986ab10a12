package jobs

import (
	"bufio"
	stdbytes "bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"

	"github.com/lutra-lm/lutra/internal/cpulimit"
)

// line is where a line of an input stands. The index of a batch has all of them, so that a damaged input moves no line to
// another's number.
type line struct {
	at  int64
	n   int32
	sum uint32 // CRC-32C
}

// lineSize counts the bytes of a line in an index.
const lineSize = 16

// split calls each for the lines of an input that are not empty, which it must not keep. It counts them from 1, as
// their file does, and returns where they stand.
func split(ctx context.Context, r io.Reader, each func(number int, text []byte) error) ([]line, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	var lines []line
	for at, number := int64(0), 1; ; number++ {
		if err := cpulimit.Pause(ctx); err != nil {
			return nil, err
		}
		text, size, err := readLine(in, mostLine)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if size > mostLine {
			text = nil
		}
		if size > mostLine || len(trim(text)) > 0 {
			if err := each(number, text); err != nil {
				return nil, err
			}
			lines = append(lines, line{at, int32(len(text)), crc32.Checksum(text, castagnoli)})
		}
		if err != nil {
			return lines, nil
		}
		at += size
	}
}

// trim takes away what stands around a line's JSON.
func trim(text []byte) []byte { return stdbytes.Trim(text, " \t\r") }

// writeLines writes an index.
func writeLines(path string, lines []line) error {
	text := make([]byte, 0, lineSize*len(lines)+4)
	for _, l := range lines {
		text = binary.LittleEndian.AppendUint64(text, uint64(l.at))
		text = binary.LittleEndian.AppendUint32(text, uint32(l.n))
		text = binary.LittleEndian.AppendUint32(text, l.sum)
	}
	text = binary.LittleEndian.AppendUint32(text, crc32.Checksum(text, castagnoli))
	return replace(path, func(f *os.File) error {
		_, err := f.Write(text)
		return err
	})
}

// readLines reads the index of n lines, or where that is damaged makes it again from the input.
func readLines(path string, input *os.File, n int) ([]line, error) {
	text, err := os.ReadFile(path)
	if k := len(text) - 4; err == nil && k == n*lineSize && crc32.Checksum(text[:k], castagnoli) == binary.LittleEndian.Uint32(text[k:]) {
		lines := make([]line, n)
		for i := range lines {
			t := text[i*lineSize:]
			lines[i] = line{int64(binary.LittleEndian.Uint64(t)), int32(binary.LittleEndian.Uint32(t[8:])), binary.LittleEndian.Uint32(t[12:])}
		}
		return lines, nil
	}
	lines, err := split(context.Background(), io.NewSectionReader(input, 0, 1<<62), func(int, []byte) error { return nil })
	if err == nil && len(lines) != n {
		err = errDamaged
	}
	return lines, err
}

// read returns the text of a line; it is false where that is damaged.
func (l line) read(input io.ReaderAt) ([]byte, bool) {
	text := make([]byte, l.n)
	if n, err := input.ReadAt(text, l.at); err != nil && n < len(text) {
		return nil, false
	}
	return text, crc32.Checksum(text, castagnoli) == l.sum
}
