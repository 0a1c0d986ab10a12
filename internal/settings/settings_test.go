package settings

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/internal/errtext"
)

// boat has sections that no package of Lutra knows.
type boat struct {
	Hull struct {
		Length float64 `yaml:"length"`
	} `yaml:"hull"`
	Crew []string `yaml:"crew"`
	sail
}

type sail struct {
	Reef time.Duration `yaml:"reef"`
}

func TestSectionsOfAnyStructAreReadFromFileEnvironmentAndFlags(t *testing.T) {
	var b boat
	b.Reef = time.Second
	s := Of(&b, Names{Former: map[string]string{"hull.size": "hull.length"}, Gone: map[string]string{"mast": "it has none"}})
	s.ReadYAML("boat.yaml", []byte("hull: {size: 3}\nmast: 1\ncrew: [x]\n"))
	s.ReadEnvironment([]string{"LUTRA_REEF=2s", "LUTRA_CREW=a, b", "LUTRA_KEEL=1"}, "LUTRA_KEEL")
	s.Set("hull.length", "--length", "4.5")
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	if b.Hull.Length != 4.5 || b.Reef != 2*time.Second || strings.Join(b.Crew, "|") != "a|b" {
		t.Errorf("read %+v", b)
	}
	if s.Origin("hull.length") != "--length" || s.Origin("reef") != "LUTRA_REEF" || len(s.Warnings) != 2 {
		t.Errorf("origins %v, warnings %q", s.origin, s.Warnings)
	}
}

func TestAFaultOfACheckNamesThePlaceOfItsKey(t *testing.T) {
	for from, want := range map[string]string{
		"--length":          "--length: is too long",
		"LUTRA_HULL_LENGTH": "LUTRA_HULL_LENGTH: is too long",
		"boat.yaml:2":       "boat.yaml:2: hull.length: is too long",
		"":                  "hull.length: is too long",
	} {
		var b boat
		s := Of(&b, Names{})
		switch {
		case strings.HasPrefix(from, "boat"):
			s.ReadYAML("boat.yaml", []byte("hull:\n  length: 9\n"))
		case from != "":
			s.Set("hull.length", from, "9")
		}
		s.Check(func() error { return errors.Join(InSection("hull", errors.New("length: is too long"))...) })
		s.Check(func() error { t.Error("checked although there are faults"); return nil })
		if err := s.Err(); err == nil || err.Error() != want {
			t.Errorf("from %q: %v, want %s", from, err, want)
		}
	}
}

func TestAnOptionKeepsItsNameThoughAPackageIsCalledTheSame(t *testing.T) {
	fault := errors.Join(InSection("loading", errors.New("memory: is too much"))...)
	if got, want := errtext.Text(fault), "loading.memory: is too much"; got != want {
		t.Errorf("the fault reads %q, want %q", got, want)
	}
}
