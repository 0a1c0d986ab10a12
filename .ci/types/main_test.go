package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFaultsOfAnotherSystemAreFound(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod":       "module example.org/x\n\ngo 1.26\n",
		"x.go":         "package x\n\nimport \"syscall\"\n\nvar X = syscall.Getpid() + y\n",
		"x_linux.go":   "package x\n\nconst y = 1\n",
		"x_windows.go": "package x\n\nconst y = \"1\"\n",
		"x_darwin.go":  "package x\n\nconst y = 1\n\nfunc assembled()\n",
	} {
		if err := os.WriteFile(filepath.Base(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for system, want := range map[string]string{"linux": "", "windows": "mismatched types", "darwin": "assembled has no body", "plan9": "undefined: y"} {
		n, err := check(system, "amd64", []string{"./..."})
		if n != 1 || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %d packages and %v, want 1 and %q", system, n, err, want)
		}
	}
}
