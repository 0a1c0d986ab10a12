package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/server"
)

func TestAServerSaysAtItsStartThatTestsOfCodeAreInterpreted(t *testing.T) {
	o := server.DefaultOptions()
	said := func(w string) bool { return strings.HasPrefix(w, "verify.tests: ") }
	if list := warnings(&o, true); slices.ContainsFunc(list, said) {
		t.Errorf("where WebAssembly is compiled, it says %q", list)
	}
	if list := warnings(&o, false); !slices.ContainsFunc(list, said) {
		t.Errorf("where WebAssembly is interpreted, it says %q", list)
	}
}
