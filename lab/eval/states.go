package eval

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
)

// StatesDir is the folder of states beside a journal.
const StatesDir = "states"

// statesFile returns the file of a record's states in a folder.
func statesFile(dir string, r *Record) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%d.f32", url.PathEscape(r.Model+";"+r.Point.String()), r.Problem))
}

// writeStates writes what the states of a record's candidates say: a row a candidate, of numbers in 32 bits with the
// lowest byte first. The file is there whole or not at all. A record without states writes nothing.
func writeStates(dir string, r *Record) error {
	if r.Sample == nil || len(r.Candidates) == 0 || r.Candidates[0].States == nil {
		return nil
	}
	width := len(r.Candidates[0].States)
	data := make([]byte, 0, 4*width*len(r.Candidates))
	for i := range r.Candidates {
		if have := len(r.Candidates[i].States); have != width {
			return fmt.Errorf("eval: candidate %d has %d numbers of states, the first %d", i, have, width)
		}
		for _, v := range r.Candidates[i].States {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
	}
	path := statesFile(dir, r)
	if err := os.WriteFile(path+".part", data, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// ReadStates fills in the states of a record's candidates from a folder, width numbers each. A record without a
// file keeps none.
func ReadStates(dir string, r *Record, width int) error {
	path := statesFile(dir, r)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if want := 4 * width * len(r.Candidates); len(data) != want {
		return fmt.Errorf("%s: %d bytes, want %d: %d numbers of each of %d candidates", path, len(data), want, width, len(r.Candidates))
	}
	for i := range r.Candidates {
		states := make([]float32, width)
		for k := range states {
			states[k] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*(i*width+k):]))
		}
		r.Candidates[i].States = states
	}
	return nil
}
