package profile

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Sources say from what searches are chosen for requests that name a quality or a deadline.
type Sources struct {
	Profiles   []string `yaml:"profiles"`   // files of lutra-lab eval --profile, the first that has a model counts
	Alternates []string `yaml:"alternates"` // models of which any may answer such a request for one of them
}

// The bounds of Sources.
const (
	mostProfiles   = 64
	mostAlternates = 64
)

// Read reads the profiles. Faults begin with the setting's name and a colon.
func (s *Sources) Read() (list []*Profile, err error) {
	var errs []error
	if len(s.Profiles) > mostProfiles {
		errs = append(errs, fmt.Errorf("profiles: more than %d files", mostProfiles))
	}
	if len(s.Alternates) > mostAlternates {
		errs = append(errs, fmt.Errorf("alternates: more than %d models", mostAlternates))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	for i, file := range s.Profiles {
		p, err := readFile(file)
		if err != nil {
			errs = append(errs, fmt.Errorf("profiles[%d]: %w", i, err))
			continue
		}
		list = append(list, p)
	}
	return list, errors.Join(errs...)
}

func readFile(file string) (*Profile, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, err
	}
	p, err := Read(text)
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return p, err
}
