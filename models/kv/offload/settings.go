package offload

import (
	"errors"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
)

// Settings are the `kv.disk:` section of config.yaml.
type Settings struct {
	Path string        `yaml:"path"` // a folder that processes may share; empty: nothing is kept
	Size string        `yaml:"size"` // bytes of all files, with a unit ("10GiB")
	Keep time.Duration `yaml:"keep"` // how long files stay that nobody uses
}

// DefaultSettings keep nothing: there is no path.
func DefaultSettings() Settings { return Settings{Size: "10GiB", Keep: 7 * 24 * time.Hour} }

// Validate joins all faults. Each begins with its key and a colon. prefixes tells whether caches reuse prefixes.
func (s *Settings) Validate(prefixes bool) error {
	var errs []error
	if n, err := humanize.ParseBytes(s.Size); err != nil || n < 1<<20 || n > 1<<50 {
		errs = append(errs, fmt.Errorf("size: %q is not a size from 1MiB to 1PiB, such as 10GiB", s.Size))
	}
	if s.Keep < time.Minute || s.Keep > 10*365*24*time.Hour {
		errs = append(errs, fmt.Errorf("keep: %v is outside 1m..87600h", s.Keep))
	}
	if s.Path != "" && !prefixes {
		errs = append(errs, errors.New("path: there are no prefixes to keep while kv.prefix is false"))
	}
	return errors.Join(errs...)
}

// bytes returns the size, which Validate has found good.
func (s *Settings) bytes() int64 {
	n, _ := humanize.ParseBytes(s.Size)
	return int64(n)
}
