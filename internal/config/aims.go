package config

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/lutra-lm/lutra/server"
	"github.com/lutra-lm/lutra/tts/profile"
)

// Aims say from what searches are chosen for requests that name a quality or a deadline.
type Aims struct {
	Profiles   []string `yaml:"profiles"`   // files of lutra-lab eval --profile, the first that has a model counts
	Alternates []string `yaml:"alternates"` // models of which any may answer such a request for one of them
}

// The bounds of Aims.
const (
	mostProfiles   = 64
	mostAlternates = 64
)

// apply reads what is named, and tells the server. Faults begin with the setting's name and a
// colon.
func (a *Aims) apply(o *server.Options) error {
	var errs []error
	if len(a.Profiles) > mostProfiles {
		errs = append(errs, fmt.Errorf("profiles: more than %d files", mostProfiles))
	}
	if len(a.Alternates) > mostAlternates {
		errs = append(errs, fmt.Errorf("alternates: more than %d models", mostAlternates))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	o.Profiles, o.Alternates = nil, append([]string(nil), a.Alternates...)
	for i, file := range a.Profiles {
		p, err := readProfile(file)
		if err != nil {
			errs = append(errs, fmt.Errorf("profiles[%d]: %w", i, err))
			continue
		}
		o.Profiles = append(o.Profiles, p)
	}
	return errors.Join(errs...)
}

func readProfile(file string) (*profile.Profile, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, profile.MaxFile+1))
	if err != nil {
		return nil, err
	}
	p, err := profile.Read(text)
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return p, err
}
