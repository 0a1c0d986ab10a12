package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestHelpListsEachFlagAndCommandOnceUnderAHeading(t *testing.T) {
	root := Command(&bytes.Buffer{}, &bytes.Buffer{})
	var grouped []string
	for _, g := range commandGroups {
		grouped = append(grouped, g.Names...)
	}
	for _, c := range root.Commands() {
		if name := c.Name(); c.IsAvailableCommand() && !slices.Contains([]string{"completion", "help", "version"}, name) {
			if !slices.Contains(grouped, name) {
				t.Errorf("%s has no heading in lutra --help", name)
			}
			grouped = slices.DeleteFunc(grouped, func(g string) bool { return g == name })
		}
		help := flagUsages(c)
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if n := strings.Count(help, "      --"+f.Name+" ") + strings.Count(help, ", --"+f.Name+" "); !f.Hidden && n != 1 {
				t.Errorf("lutra %s --help has --%s %d times", c.Name(), f.Name, n)
			}
		})
	}
	if len(grouped) > 0 {
		t.Errorf("there are no commands %q", grouped)
	}
	help := mustLutra(t, "serve", "--help")
	for _, heading := range []string{"\nFlags:\n", "\nModels:\n", "\nMemory and compute:\n", "\nHexagon NPUs:\n", "\nKeys and certificates:\n"} {
		if strings.Count(help, heading) != 1 {
			t.Errorf("lutra serve --help has %q %d times:\n%s", heading, strings.Count(help, heading), help)
		}
	}
	if help := mustLutra(t, "ask", "--help"); !strings.Contains(help, "\nA server to ask:\n      --api-key") || strings.Contains(help, "Keys and certificates") {
		t.Errorf("lutra ask --help is %s", help)
	}
	if help := mustLutra(t, "completion", "--help"); !strings.HasPrefix(help, "Prints a script") {
		t.Errorf("lutra completion --help is %s", help)
	}
}
