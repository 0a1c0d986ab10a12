package jobs

import (
	"errors"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
)

// Options is the `jobs:` section of config.yaml.
type Options struct {
	Path       string        `yaml:"path"`            // a folder for files and batches; empty: there are none
	Size       string        `yaml:"size"`            // bytes of all that is kept, with a unit ("10GiB")
	File       string        `yaml:"file"`            // bytes of a file that is sent
	Files      int           `yaml:"files"`           // files that are kept
	Lines      int           `yaml:"lines"`           // requests of a batch
	Batches    int           `yaml:"batches"`         // batches that are kept, whatever has become of them
	KeyBatches int           `yaml:"batches_per_key"` // batches of a key that have not ended
	AtOnce     int           `yaml:"at_once"`         // lines that are answered at once
	Keep       time.Duration `yaml:"keep"`            // how long files stay, and batches that have ended
}

// DefaultOptions keeps nothing: without a path there are no jobs.
func DefaultOptions() Options {
	return Options{Size: "10GiB", File: "200MiB", Files: 1000, Lines: 50_000, Batches: 500, KeyBatches: 50, AtOnce: 8, Keep: 30 * 24 * time.Hour}
}

// mostLine and mostAnswer bound a line of an input and an answer in bytes.
const (
	mostLine   = 16 << 20
	mostAnswer = 16 << 20
)

// Validate joins all faults. Each begins with its key and a colon.
func (o *Options) Validate() error {
	var errs []error
	for _, s := range []struct{ key, text string }{{"size", o.Size}, {"file", o.File}} {
		if n, err := humanize.ParseBytes(s.text); err != nil || n < 1<<10 || n > 1<<50 {
			errs = append(errs, fmt.Errorf("%s: %q is not a size from 1KiB to 1PiB, such as 10GiB", s.key, s.text))
		}
	}
	for _, n := range []struct {
		key          string
		n, low, high int
	}{
		{"files", o.Files, 1, 1 << 16}, {"lines", o.Lines, 1, 1 << 20}, {"batches", o.Batches, 1, 1 << 14},
		{"batches_per_key", o.KeyBatches, 1, 1 << 14}, {"at_once", o.AtOnce, 1, 1 << 10},
	} {
		if n.n < n.low || n.n > n.high {
			errs = append(errs, fmt.Errorf("%s: %d is outside %d..%d", n.key, n.n, n.low, n.high))
		}
	}
	if o.Keep < time.Minute || o.Keep > 10*365*24*time.Hour {
		errs = append(errs, fmt.Errorf("keep: %v is outside 1m..87600h", o.Keep))
	}
	return errors.Join(errs...)
}

// bytes returns a size that Validate has found good.
func bytes(text string) int64 {
	n, _ := humanize.ParseBytes(text)
	return int64(n)
}
