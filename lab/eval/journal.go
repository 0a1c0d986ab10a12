package eval

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"sync"
	"time"
)

// Setup holds what all records of a journal share.
type Setup struct {
	Data        string  `json:"data"`
	Hash        string  `json:"hash"` // of the problems
	Temperature float32 `json:"temperature"`
	Seed        uint64  `json:"seed"` // of problem 0; problem i has Seed+i
	MaxTokens   int     `json:"max_tokens"`
	System      string  `json:"system,omitempty"`   // system message
	Thinking    string  `json:"thinking,omitempty"` // switched on or off; empty: as the template has it
	Concurrency int     `json:"concurrency"`        // problems at once
	Where       string  `json:"where"`              // the machine, or the server
	SoC         string  `json:"soc,omitempty"`      // whose NPU's time is modelled, too
	// States are the layers whose states of each candidate lie beside the journal; nil: none.
	States []int `json:"states,omitempty"`
	// Models are the SHA-256 of the models' files, by the models' names; nil: not known.
	Models map[string]string `json:"models,omitempty"`
}

// Record is the result of one point for one problem.
type Record struct {
	Point
	Problem  int           `json:"problem"` // index in the data set
	Answer   string        `json:"answer"`  // extracted; empty: none found
	Right    bool          `json:"right"`
	Any      *bool         `json:"any,omitempty"`      // some candidate is right; nil: unknown
	Tokens   int           `json:"tokens"`             // generated, by all candidates
	Verifier int           `json:"verifier,omitempty"` // tokens that a verifier computed
	Latency  time.Duration `json:"latency_ns"`         // from asking to the whole answer
	Modelled *Modelled     `json:"modelled,omitempty"` // nil: nothing was modelled
	*Sample                // in the file alone; nil in journals of older versions too
}

// maxRecord bounds a line of a journal: all candidates of one problem.
const maxRecord = 64 << 20

// key identifies a record.
type key struct {
	Point
	problem int
}

// ErrSetup says that a journal belongs to another setup.
var ErrSetup = errors.New("the journal belongs to another setup")

// Journal holds records, also in a file if it has one: a line with the setup, then
// one line a record, written before the record counts. Many goroutines may use it at
// once.
type Journal struct {
	mu      sync.Mutex
	file    *os.File // nil: in memory only
	records []Record
	have    map[key]bool
}

// NewJournal makes a journal without a file.
func NewJournal() *Journal { return &Journal{have: map[key]bool{}} }

// OpenJournal continues the journal at path, or begins it. A journal of
// another setup is refused with ErrSetup; fresh discards whatever is there.
func OpenJournal(path string, s Setup, fresh bool) (*Journal, error) {
	flags := os.O_RDWR | os.O_CREATE
	if fresh {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return nil, fmt.Errorf("eval: %w", err)
	}
	j := NewJournal()
	j.file = f
	if err := j.restore(s); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return j, nil
}

// ReadJournal calls each with what the journal at path has of every answer, texts too. The file may be compressed by gzip.
func ReadJournal(path string, each func(Setup, Record) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("eval: %w", err)
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<16)
	if head, err := r.Peek(2); err == nil && head[0] == 0x1f && head[1] == 0x8b {
		unzipped, err := gzip.NewReader(r)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		r = bufio.NewReaderSize(unzipped, 1<<16)
	}
	var setup Setup
	for n := 1; ; n++ {
		line, err := readLine(r, maxRecord)
		if errors.Is(err, io.EOF) {
			return nil
		}
		var record Record
		switch {
		case err != nil:
		case n == 1:
			err = json.Unmarshal(line, &setup)
		default:
			if err = json.Unmarshal(line, &record); err == nil {
				err = each(setup, record)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: line %d: %w", path, n, err)
		}
	}
}

// restore reads the file and leaves it at its end. A last line without a newline was
// cut off while it was written, and is dropped.
func (j *Journal) restore(s Setup) error {
	r := bufio.NewReaderSize(j.file, 1<<16)
	end := int64(0)
	for n := 1; ; n++ {
		most := maxRecord
		if n == 1 {
			most = maxLine // of the setup; longer ones are no journal
		}
		line, err := readLine(r, most)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("eval: line %d: %w", n, err)
		}
		end += int64(len(line))
		if n == 1 {
			err = matches(line, s)
		} else {
			err = j.recall(line)
		}
		if err != nil {
			return fmt.Errorf("eval: line %d: %w", n, err)
		}
	}
	if err := j.file.Truncate(end); err != nil {
		return err
	}
	if _, err := j.file.Seek(end, io.SeekStart); err != nil {
		return err
	}
	if end == 0 {
		return j.write(s)
	}
	return nil
}

func matches(line []byte, s Setup) error {
	var was Setup
	if err := json.Unmarshal(line, &was); err != nil {
		return err
	}
	same := s
	if was.Models == nil {
		same.Models = nil // an older version did not note them
	}
	if !reflect.DeepEqual(was, same) {
		now, err := json.Marshal(s)
		if err != nil {
			return err
		}
		return fmt.Errorf("%w:\n  was %.2000s\n  now %s", ErrSetup, bytes.TrimSpace(line), now)
	}
	return nil
}

func (j *Journal) recall(line []byte) error {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return err
	}
	if k := (key{r.Point, r.Problem}); !j.have[k] {
		j.keep(r)
	}
	return nil
}

// keep notes a record without its texts, which stay in the file.
func (j *Journal) keep(r Record) {
	r.Sample = nil
	j.have[key{r.Point, r.Problem}] = true
	j.records = append(j.records, r)
}

// readLine reads a line of at most most bytes, with its end. A line without one is
// io.EOF.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > most {
			return nil, fmt.Errorf("it is longer than %d bytes", most)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func (j *Journal) write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(line, '\n'))
	return err
}

// Add adds a record.
func (j *Journal) Add(r Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file != nil {
		if err := j.write(r); err != nil {
			return fmt.Errorf("eval: journal: %w", err)
		}
	}
	j.keep(r)
	return nil
}

// Has reports whether the problem has a record at the point.
func (j *Journal) Has(p Point, problem int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.have[key{p, problem}]
}

// Records returns all records so far. The caller must not change them.
func (j *Journal) Records() []Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.records[:len(j.records):len(j.records)]
}

// Close closes the file.
func (j *Journal) Close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}
