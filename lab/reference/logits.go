package reference

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// WriteLogits writes the logits after each token as float32 little-endian
// [tokens][width]; as a NumPy array when path ends in .npy.
func WriteLogits(path string, tokens []int32, width int, score Scorer) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if strings.HasSuffix(path, ".npy") {
		if err := writeNPYHeader(w, len(tokens), width); err != nil {
			return err
		}
	}
	if err := score(tokens, func(_ int, logits []float32) error {
		return binary.Write(w, binary.LittleEndian, logits)
	}); err != nil {
		return err
	}
	return w.Flush()
}

// writeNPYHeader begins a NumPy 1.0 file of float32 [rows][cols]; the header
// is padded so that the data starts on a multiple of 64 bytes.
func writeNPYHeader(w io.Writer, rows, cols int) error {
	dict := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, cols)
	const fixed = 10
	dict += strings.Repeat(" ", 63-(fixed+len(dict))%64) + "\n"
	_, err := w.Write(append([]byte{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, byte(len(dict)), byte(len(dict) >> 8)}, dict...))
	return err
}

// ParseTokens reads ids separated by white space or commas, with or without a
// JSON list's brackets.
func ParseTokens(text string, vocab int) ([]int32, error) {
	fields := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n,[]", r) })
	tokens := make([]int32, len(fields))
	for i, f := range fields {
		id, err := strconv.ParseInt(f, 10, 32)
		if err != nil || id < 0 || id >= int64(vocab) {
			return nil, fmt.Errorf("token %d: %q is not an id in 0..%d", i, f, vocab-1)
		}
		tokens[i] = int32(id)
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("no tokens")
	}
	return tokens, nil
}
