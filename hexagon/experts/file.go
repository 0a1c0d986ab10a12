package experts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrFile says that a file is no plan, or none of what else is said of experts, or a bad one.
var ErrFile = errors.New("experts: bad file")

// mostFile bounds a file: a calibration of Qwen3-30B-A3B has some 10 MB.
const mostFile = 256 << 20

// ReadPlan reads and checks a plan. Errors wrap ErrFile.
func ReadPlan(r io.Reader) (*Plan, error) {
	p := new(Plan)
	if err := Read(r, p, p.Check); err != nil {
		return nil, fmt.Errorf("%w: plan: %w", ErrFile, err)
	}
	return p, nil
}

// OpenPlan reads the plan in the file at path.
func OpenPlan(path string) (*Plan, error) { return Open(path, ReadPlan) }

// Open reads the file at path.
func Open[T any](path string, read func(io.Reader) (*T, error)) (*T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	x, err := read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return x, nil
}

// Read decodes all of r, which holds one JSON value whose fields are known, and has it checked.
func Read(r io.Reader, into any, check func() error) error {
	limited := &io.LimitedReader{R: r, N: mostFile + 1}
	d := json.NewDecoder(limited)
	d.DisallowUnknownFields()
	err := d.Decode(into)
	switch {
	case limited.N == 0:
		return fmt.Errorf("it is longer than %d bytes", mostFile)
	case err != nil:
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows its JSON")
	}
	return check()
}
