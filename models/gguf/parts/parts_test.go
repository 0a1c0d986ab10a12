package parts

import (
	"slices"
	"testing"
)

func TestThePartsOfAModelAreFoundByTheirNames(t *testing.T) {
	n, ok := Parse("dir/Big-Q1_0-00002-of-00003.GGUF")
	if !ok || n.Stem != "dir/Big-Q1_0" || n.No != 2 || n.Count != 3 || n.String() != "dir/Big-Q1_0-00002-of-00003.GGUF" {
		t.Errorf("Parse = %+v, %v", n, ok)
	}
	want := []string{"dir/Big-Q1_0-00001-of-00003.GGUF", "dir/Big-Q1_0-00002-of-00003.GGUF", "dir/Big-Q1_0-00003-of-00003.GGUF"}
	if got := n.All(); !slices.Equal(got, want) {
		t.Errorf("All() = %q", got)
	}
	if got := First(want[2]); got != want[0] {
		t.Errorf("First = %q", got)
	}
	if n, _ := Parse("a-00001-of-99999.gguf"); len(n.All()) != Max {
		t.Errorf("%d names", len(n.All()))
	}
}

func TestOtherNamesAreNoParts(t *testing.T) {
	for _, name := range []string{"", "a.gguf", "a-1-of-2.gguf", "a-00001-of-00001.gguf", "a-00000-of-00002.gguf", "a-00003-of-00002.gguf",
		"a-00001-of-00002.bin", "-00001-of-00002.gguf", "a-00001-of-00002.gguf.part"} {
		if n, ok := Parse(name); ok {
			t.Errorf("Parse(%q) = %+v", name, n)
		}
		if First(name) != name {
			t.Errorf("First(%q) = %q", name, First(name))
		}
	}
}
