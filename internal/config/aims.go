package config

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/lutra-lm/lutra/server"
	"github.com/lutra-lm/lutra/tts/profile"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// Aims say from what searches are chosen for requests that name a quality or a deadline, and
// what requests get that ask for no search.
type Aims struct {
	Profiles   []string `yaml:"profiles"`   // files of lutra-lab eval --profile, the first that has a model counts
	Alternates []string `yaml:"alternates"` // models of which any may answer such a request for one of them
	Fill       string   `yaml:"fill"`       // the search that plain answers get in lanes to spare; empty: none
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
	o.Profiles, o.Alternates, o.Fill = nil, append([]string(nil), a.Alternates...), nil
	for i, file := range a.Profiles {
		p, err := readProfile(file)
		if err != nil {
			errs = append(errs, fmt.Errorf("profiles[%d]: %w", i, err))
			continue
		}
		o.Profiles = append(o.Profiles, p)
	}
	if a.Fill != "" {
		plan, err := fillPlan(a.Fill, o.Limits)
		if err != nil {
			errs = append(errs, fmt.Errorf("fill: %w", err))
		}
		o.Fill = plan
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

// fillPlan reads a search of whole answers, all at once.
func fillPlan(text string, l scaling.Limits) (*scaling.Plan, error) {
	p, err := scaling.Parse(text)
	if err == nil {
		err = p.Validate(l)
	}
	switch {
	case err != nil:
		return nil, err
	case p.Method != scaling.SelfConsistency && p.Method != scaling.BestOfN || p.Adaptive.On || p.Unchosen() || p.Deadline > 0 || p.N == scaling.AutoN:
		return nil, fmt.Errorf("%q is neither self_consistency nor best_of_n with so many candidates, such as sc8", text)
	}
	return &p, nil
}
