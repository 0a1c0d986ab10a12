package hub

import (
	"encoding/json"
	"sync"
)

// journal notes which bytes of a file have come, so that the next pull goes on
// from there. It lies next to them as JSON and is replaced whole.
type journal struct {
	File      string  `json:"file"` // its name in the repository, for lists
	Size      int64   `json:"size"`
	Part      int64   `json:"part"`      // bytes of each part but the last
	Have      []int64 `json:"have"`      // bytes of each part, from its beginning
	Validator string  `json:"validator"` // ETag of the server that sends the parts; empty: none

	path  string
	mu    sync.Mutex
	dirty int64 // bytes that came since it was written
}

// saveEvery is the number of bytes that may come until the journal is written again.
const saveEvery = 16 << 20

// maxJournal bounds the journal's file: what no file of ours is larger than.
const maxJournal = 4 << 20

// readJournal reads the journal of a file of size bytes that comes in parts;
// one that is damaged, or of another file, is as good as none.
func readJournal(path, file string, size, part int64) *journal {
	fresh := &journal{File: file, Size: size, Part: part, Have: make([]int64, (size+part-1)/part), path: path}
	old := readAnyJournal(path)
	if old == nil || old.Size != size || old.Part != part {
		return fresh
	}
	old.path, old.File = path, file
	return old
}

// readAnyJournal reads a journal, nil where there is none that makes sense.
func readAnyJournal(path string) *journal {
	text, err := readPlain(path, maxJournal)
	j := new(journal)
	if err != nil || json.Unmarshal(text, j) != nil || !j.sound() {
		return nil
	}
	return j
}

// sound tells whether the numbers agree: no part has less than nothing, or more than
// it is long.
func (j *journal) sound() bool {
	if j.Size < 0 || j.Size > maxSize || j.Part < 1 || j.Part > maxSize || int64(len(j.Have)) != (j.Size+j.Part-1)/j.Part {
		return false
	}
	for i, n := range j.Have {
		if lo, hi := j.bounds(i); n < 0 || n > hi-lo {
			return false
		}
	}
	return true
}

// bounds returns the first byte of a part and the one after its last.
func (j *journal) bounds(part int) (lo, hi int64) {
	lo = int64(part) * j.Part
	return lo, min(lo+j.Part, j.Size)
}

// done counts the bytes that have come.
func (j *journal) done() (n int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, have := range j.Have {
		n += have
	}
	return n
}

// begin notes that the first n bytes are there and no others.
func (j *journal) begin(n int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.Have {
		lo, hi := j.bounds(i)
		j.Have[i] = min(max(0, n-lo), hi-lo)
	}
}

// came notes n more bytes of a part, which are in the file already.
func (j *journal) came(part int, n int64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.Have[part] += n
	if j.dirty += n; j.dirty < saveEvery {
		return nil
	}
	return j.write()
}

// have counts the bytes of a part that have come.
func (j *journal) have(part int) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.Have[part]
}

// valid returns the validator of the server that sends the parts. The first that is
// offered stays.
func (j *journal) valid(offer string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.Validator == "" {
		j.Validator = offer
	}
	return j.Validator
}

// forget drops the validator.
func (j *journal) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.Validator = ""
}

func (j *journal) save() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.write()
}

func (j *journal) write() error {
	j.dirty = 0
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return replaceFile(j.path, text)
}
