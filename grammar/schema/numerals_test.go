package schema

import (
	"fmt"
	"strings"
	"testing"
)

func TestANumberOfAListMayBeWrittenAsAnInteger(t *testing.T) {
	for _, c := range []struct {
		number   string
		accepted []string
		refused  []string
	}{
		{"2", []string{"2"}, []string{"2.0", "20", "3"}},
		{"2.0", []string{"2", "2.0"}, []string{"2.00", "20"}},
		{"-1.5e1", []string{"-15", "-1.5e1"}, []string{"15"}},
		{"2.5", []string{"2.5"}, []string{"2", "3"}},
		{"1e-2", []string{"1e-2"}, []string{"0", "1"}},
	} {
		for _, text := range []string{`{"const": %s}`, `{"enum": [%s]}`, `{"enum": [[%s]]}`} {
			g, err := Compile(fmt.Appendf(nil, text, c.number), Options{})
			if err != nil {
				t.Fatal(err)
			}
			open, end := "", ""
			if strings.Contains(text, "[[") {
				open, end = "[", "]"
			}
			accepts := func(instance string) bool {
				s, n, err := g.Start().Read([]byte(open + instance + end))
				return err == nil && n == len(open+instance+end) && s.Accepts()
			}
			for _, instance := range c.accepted {
				if !accepts(instance) {
					t.Errorf(text+" refuses %s", c.number, instance)
				}
			}
			for _, instance := range c.refused {
				if accepts(instance) {
					t.Errorf(text+" accepts %s", c.number, instance)
				}
			}
		}
	}
}
