package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/lutra-lm/lutra/models/disk"
)

// cursor walks the header, reading ahead by a buffer. The first failure sticks;
// after it every read returns zero values.
type cursor struct {
	r         *bufio.Reader // what follows pos
	pos, size int64
	what      string // what is being read, for errors
	err       error
}

// readAhead is the size of a cursor's buffer.
const readAhead = 1 << 16

func newCursor(s *disk.Source) *cursor {
	return &cursor{r: bufio.NewReaderSize(io.NewSectionReader(s, 0, s.Size()), readAhead), size: s.Size(), what: "header"}
}

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%s at offset %d: %w", c.what, c.pos, fmt.Errorf(format, args...))
	}
}

// left returns the number of bytes that follow.
func (c *cursor) left() int64 { return c.size - c.pos }

// take returns the next n bytes, valid until the next call.
func (c *cursor) take(n int) []byte {
	if c.err != nil {
		return nil
	}
	if int64(n) > c.left() {
		c.fail("%w: %d bytes wanted, %d left", ErrFormat, n, c.left())
		return nil
	}
	var b []byte
	var err error
	if n <= readAhead {
		if b, err = c.r.Peek(n); err == nil {
			_, err = c.r.Discard(n)
		}
	} else {
		b = make([]byte, n)
		_, err = io.ReadFull(c.r, b)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // it was longer a moment ago
		err = ErrChanged
	}
	if err != nil {
		c.fail("%w", err)
		return nil
	}
	c.pos += int64(n)
	return b
}

func (c *cursor) u32() uint32 {
	if b := c.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// count reads a number of things that take at least size bytes each, and
// refuses one that the rest of the file cannot hold.
func (c *cursor) count(of string, size int) int {
	n := c.u64()
	left := uint64(min(c.left(), math.MaxInt)) / uint64(size)
	if c.err == nil && n > left {
		c.fail("%w: %d %s announced, the file has room for %d", ErrFormat, n, of, left)
		return 0
	}
	return int(n)
}

// str reads a length-prefixed string and copies it.
func (c *cursor) str(limit int) string {
	n := c.count("bytes of text", 1)
	if n > limit {
		c.fail("%w: a name of %d bytes, at most %d are allowed", ErrFormat, n, limit)
	}
	return string(c.take(n))
}

// dims reads a shape.
func (c *cursor) dims() []int {
	n := c.u32()
	if c.err == nil && (n == 0 || n > maxDims) {
		c.fail("%w: %d dimensions, want 1 to %d", ErrFormat, n, maxDims)
		return nil
	}
	dims := make([]int, n)
	for i := range dims {
		d := c.u64()
		if c.err == nil && (d == 0 || d > math.MaxInt) {
			c.fail("%w: dimension %d is %d", ErrFormat, i, d)
		}
		dims[i] = int(d)
	}
	return dims
}

// clip shortens a name from the file for an error message.
func clip(s string) string {
	if len(s) > maxTensorName {
		return s[:maxTensorName] + "..."
	}
	return s
}
