package admission

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAFileOfKeysHasOneALine(t *testing.T) {
	got, err := ReadKeys(write(t, "\ufeff# who may ask\n\nalice: sk-1\r\n  bob\tsk-2  \ncarol:sk-3\nsk-4==\n# the end"))
	want := []Credential{{"alice", "sk-1"}, {"bob", "sk-2"}, {"carol", "sk-3"}, {"", "sk-4=="}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("ReadKeys = %v, %v, want %v", got, err, want)
	}
}

func TestAFileOfKeysThatIsWrongIsRefusedByItsLine(t *testing.T) {
	for text, says := range map[string]string{
		"":                                      "has no keys",
		"# none\n":                              "has no keys",
		"a: secret\nb: secret":                  "line 2: the key is that of line 1",
		"a: secret\n\na: other":                 "line 3: the name a is that of line 1",
		"a b secret":                            "line 1: want KEY, or NAME: KEY",
		"a: b secret":                           "line 1: want KEY, or NAME: KEY",
		"a b: secret":                           "line 1: want KEY, or NAME: KEY",
		"a:":                                    "line 1: want KEY, or NAME: KEY",
		": secret":                              "line 1: the name is not",
		"-a: secret":                            "line 1: the name is not",
		"a\x1b[2J: secret":                      "line 1: the name is not",
		strings.Repeat("a", 65) + ": secret":    "line 1: the name is not",
		"a: secrèt":                             "line 1: the key has characters",
		"a: secret:x":                           "line 1: the key has characters",
		"a: " + strings.Repeat("secret", 1000):  "line 1: the key has more than",
		strings.Repeat("#\n", maxKeyFile):       "more than 1048576 bytes",
		strings.Join(manyKeys(maxKeys+1), "\n"): "more than 1024 keys",
	} {
		_, err := ReadKeys(write(t, text))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("ReadKeys(%.40q) = %v, want %q", text, err, says)
		} else if strings.Contains(err.Error(), "secr") || len(err.Error()) > 300 {
			t.Errorf("the error shows the key: %v", err)
		}
	}
	if _, err := ReadKeys(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := ReadKeys(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func manyKeys(n int) (lines []string) {
	for i := range n {
		lines = append(lines, strings.Repeat("k", i%64+1)+strings.Repeat("x", i/64))
	}
	slices.Sort(lines)
	return lines
}

func TestAKeyIsKnownByItsNameOrItsHash(t *testing.T) {
	ks := NewKeys([]Credential{{"alice", "sk-1"}, {"", "sk-2"}}, 0, 0)
	for shown, name := range map[string]string{"Bearer sk-1": "alice", "Bearer sk-2": "bbaae8c9"} {
		if k := ks.Of(shown); k == nil || k.Name != name {
			t.Errorf("Of(%q) = %+v, want the name %s", shown, k, name)
		}
	}
	if k := ks.Of("Bearer alice"); k != nil {
		t.Errorf("a name opens the server: %+v", k)
	}
}
