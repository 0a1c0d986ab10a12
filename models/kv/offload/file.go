package offload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// A file is a header and pieces of equal size: blocks of keys and values, or one recurrent state.
//
//	magic, pieces, bytes of a piece   8 bytes each
//	root, hash                        32 bytes each: whose prefix it is, and what the prefix ends with
//	sums                              xxHash64 of each piece
//	sum                               xxHash64 of all before
//
// Numbers are little-endian. Whoever reads knows what all but the sums must be.
const (
	magic     = "lutrakv1"
	fixedHead = 8 + 8 + 8 + 2*len(Hash{})
	sumBytes  = 8
)

// kind is the end of a file's name, which tells keys and values from recurrent states.
type kind string

const (
	blocksKind kind = ".kv"
	stateKind  kind = ".state"
)

// namePattern matches the names of files: the number of blocks before the end, and the hash there.
var namePattern = regexp.MustCompile(`^([0-9a-f]{8})-[0-9a-f]{32}\.(kv|state)$`)

// partial begins the names of files that are being written.
const partial = ".partial-"

// prefix identifies the tokens that a file ends with.
type prefix struct {
	root Hash // the model and its variant
	hash Hash // all tokens
	end  int  // in blocks
}

// name returns the name of a file of that prefix.
func (p *prefix) name(k kind) string {
	h := sha256.Sum256(append(p.root[:], p.hash[:]...))
	return fmt.Sprintf("%08x-%s%s", uint32(p.end), hex.EncodeToString(h[:16]), k)
}

// depthOf returns the number of blocks before the end of a file of that name.
func depthOf(name string) (depth int, ok bool) {
	m := namePattern.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseUint(m[1], 16, 32)
	return int(n), err == nil
}

// headBytes returns the length of the header of a file of so many pieces.
func headBytes(pieces int) int { return fixedHead + (pieces+1)*sumBytes }

// fileBytes returns the length of a file.
func fileBytes(pieces, each int) int64 { return int64(headBytes(pieces)) + int64(pieces)*int64(each) }

// begin writes what of a header is known before the pieces.
func begin(head []byte, p *prefix, pieces, each int) {
	copy(head, magic)
	binary.LittleEndian.PutUint64(head[8:], uint64(pieces))
	binary.LittleEndian.PutUint64(head[16:], uint64(each))
	copy(head[24:], p.root[:])
	copy(head[24+len(p.root):], p.hash[:])
}

// finish writes the header of a file whose pieces are there.
func finish(file []byte, p *prefix, pieces, each int) {
	head, data := file[:headBytes(pieces)], file[headBytes(pieces):]
	begin(head, p, pieces, each)
	for i := range pieces {
		binary.LittleEndian.PutUint64(head[fixedHead+i*sumBytes:], xxhash.Sum64(data[i*each:(i+1)*each]))
	}
	binary.LittleEndian.PutUint64(head[fixedHead+pieces*sumBytes:], xxhash.Sum64(head[:fixedHead+pieces*sumBytes]))
}

// errDamaged says that a file is not what its name says.
var errDamaged = errors.New("offload: damaged file")

// reader reads pieces of a file.
type reader struct {
	file   *os.File
	pieces int
	each   int
	sums   []byte
}

// open opens a file that must be of that prefix. Errors: errDamaged, and of the system.
func open(path string, p *prefix, pieces, each int) (*reader, error) {
	if err := regular(os.Lstat(path)); err != nil { // nothing that would wait to be opened
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &reader{file: f, pieces: pieces, each: each}
	if err := r.check(p); err != nil {
		f.Close() //nolint:errcheck // only read
		return nil, err
	}
	return r, nil
}

// regular fails for what is no file.
func regular(info os.FileInfo, err error) error {
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("offload: %s is no file", info.Name())
	}
	return err
}

// check reads the header.
func (r *reader) check(p *prefix) error {
	info, err := r.file.Stat()
	if err := regular(info, err); err != nil {
		return err
	}
	if info.Size() != fileBytes(r.pieces, r.each) {
		return errDamaged
	}
	head, want := make([]byte, headBytes(r.pieces)), make([]byte, fixedHead)
	if _, err := io.ReadFull(io.NewSectionReader(r.file, 0, int64(len(head))), head); err != nil {
		return err
	}
	begin(want, p, r.pieces, r.each)
	end := len(head) - sumBytes
	if string(head[:fixedHead]) != string(want) || binary.LittleEndian.Uint64(head[end:]) != xxhash.Sum64(head[:end]) {
		return errDamaged
	}
	r.sums = head[fixedHead:end]
	return nil
}

// read fills dst with piece i.
func (r *reader) read(dst []byte, i int) error {
	at := int64(headBytes(r.pieces)) + int64(i)*int64(r.each)
	if _, err := io.ReadFull(io.NewSectionReader(r.file, at, int64(r.each)), dst[:r.each]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return errDamaged
		}
		return err
	}
	if xxhash.Sum64(dst[:r.each]) != binary.LittleEndian.Uint64(r.sums[i*sumBytes:]) {
		return errDamaged
	}
	return nil
}

func (r *reader) close() { r.file.Close() } //nolint:errcheck // only read

// writeFile writes a file that appears at once or not at all.
func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), partial+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
