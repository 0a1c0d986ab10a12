package choice

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestChoicesAreKeptForTheSameBuildAlone(t *testing.T) {
	t.Cleanup(func() { file, title, choices = "", "", nil })
	path := filepath.Join(t.TempDir(), "lutra", "kernels")
	note("ternary", "I2:1:avx2:mad") // nothing is kept yet
	KeepIn(path, "v1")
	if c, ok := recall("ternary"); ok {
		t.Errorf("Recall before any Note = %q", c)
	}
	note("ternary", "I2:1:avx2:mad")
	note("Q4", "gfni")
	note("Q4M", "a line\nmore")
	for _, build := range []string{"v2", "v1"} {
		KeepIn(path, build)
		c, ok := recall("ternary")
		if want := build == "v1"; ok != want || want && c != "I2:1:avx2:mad" {
			t.Errorf("Recall of build %s = %q, %t", build, c, ok)
		}
	}
	if c, ok := recall("Q4M"); ok {
		t.Errorf("Recall of a choice of two lines = %q", c)
	}
	Forget()
	if c, ok := recall("Q4"); ok {
		t.Errorf("Recall after Forget = %q", c)
	}
}

func TestDamagedFilesCountAsNone(t *testing.T) {
	t.Cleanup(func() { file, title, choices = "", "", nil })
	path := filepath.Join(t.TempDir(), "kernels")
	first := titleOf("v1") + "\n"
	for name, content := range map[string]string{
		"empty":      "",
		"no title":   "Q4 gfni\n",
		"a bad line": first + "Q4 gfni\nQ4M \x00\n",
		"too long":   first + strings.Repeat("Q4 gfni\n", 1000),
		"too many":   first + "a0 x\na1 x\na2 x\na3 x\na4 x\na5 x\na6 x\na7 x\nb0 x\nb1 x\nb2 x\nb3 x\nb4 x\nb5 x\nb6 x\nb7 x\nc0 x\nc1 x\nc2 x\nc3 x\nc4 x\nc5 x\nc6 x\nc7 x\nd0 x\nd1 x\nd2 x\nd3 x\nd4 x\nd5 x\nd6 x\nd7 x\nQ4 gfni\n",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if KeepIn(path, "v1"); len(choices) != 0 {
			t.Errorf("In of a file that is %s recalls %v", name, choices)
		}
	}
	if KeepIn(t.TempDir(), "v1"); len(choices) != 0 {
		t.Errorf("In of a folder recalls %v", choices)
	}
}
