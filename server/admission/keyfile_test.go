package admission

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
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
	standard := Limits{Requests: 60, Tokens: 1000}
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte("sk-5")))
	got, err := ReadKeys(write(t, "\ufeff# who may ask\n\nalice: sk-1\r\n  bob\tsk-2  \ncarol:sk-3 requests_per_minute=0 max_requests=2\nsk-4==\n"+
		"dave: sha256:"+hash+" tokens_per_minute=5 models=a+b,c admin\n# the end"), standard)
	plain := func(name, key string, l Limits) Credential {
		return Credential{Name: name, Hash: sha256.Sum256([]byte(key)), Limits: l, Plain: true}
	}
	want := []Credential{plain("alice", "sk-1", standard), plain("bob", "sk-2", standard), plain("carol", "sk-3", Limits{Tokens: 1000, AtOnce: 2}), plain("", "sk-4==", standard),
		{Name: "dave", Hash: sha256.Sum256([]byte("sk-5")), Limits: Limits{Requests: 60, Tokens: 5, Models: []string{"a+b", "c"}}, Admin: true}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("ReadKeys = %v, %v, want %v", got, err, want)
	}
}

func TestAFileOfKeysThatIsWrongIsRefusedByItsLine(t *testing.T) {
	for text, says := range map[string]string{
		"":                                  "has no keys",
		"# none\n":                          "has no keys",
		"a: secret\nb: secret":              "line 2: the key is that of line 1",
		"a: secret\n\na: other":             "line 3: the name a is that of line 1",
		"a b secret":                        "line 1: want KEY, or NAME: KEY",
		"a: b secret":                       "line 1: setting 1: want requests_per_minute, tokens_per_minute, max_requests, models or admin",
		"a: secret admin=1":                 "line 1: setting 1: admin has no value",
		"a: secret admin admin":             "line 1: admin is set twice",
		"a: secret max_requests":            "line 1: setting 1: max_requests: want a number from 0 to 65536",
		"a: secret max_requests=-1":         "line 1: setting 1: max_requests: want a number",
		"a: secret max_requests=65537":      "line 1: setting 1: max_requests: want a number",
		"\na: secret tokens_per_minute=9e9": "line 2: setting 1: tokens_per_minute: want a number from 0 to 1099511627776",
		"a: secret models=":                 "line 1: setting 1: models: want names",
		"a: secret models=x,,y":             "line 1: setting 1: models: want names",
		"a: secret models=" + strings.Repeat("x,", 64) + "x": "line 1: setting 1: models: more than 64",
		"a: secret models=" + strings.Repeat("x", 257):       "line 1: setting 1: models: want names with commas between, of 1 to 256",
		"a: sha256:secret":                     "line 1: the hash is not sha256: and 64 hexadecimal digits",
		"a: sha256:" + strings.Repeat("0", 63): "line 1: the hash is not",
		"a: sha256:" + strings.Repeat("0", 66): "line 1: the hash is not",
		"sha256:" + strings.Repeat("0", 64):    "line 1: a hash needs a name",
		"a: secret\nb: sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b": "line 2: the key is that of line 1",
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
		_, err := ReadKeys(write(t, text), Limits{})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("ReadKeys(%.40q) = %v, want %q", text, err, says)
		} else if strings.Contains(err.Error(), "secr") || strings.Contains(err.Error(), "2bb80d") || len(err.Error()) > 300 {
			t.Errorf("the error shows the key: %v", err)
		}
	}
	if _, err := ReadKeys(t.TempDir(), Limits{}); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := ReadKeys(filepath.Join(t.TempDir(), "none"), Limits{}); !errors.Is(err, os.ErrNotExist) {
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
	ks := NewKeys([]Credential{{Name: "alice", Hash: sha256.Sum256([]byte("sk-1"))}, {Hash: sha256.Sum256([]byte("sk-2"))}, {Name: "again", Hash: sha256.Sum256([]byte("sk-1"))}}, Limits{})
	for shown, name := range map[string]string{"Bearer sk-1": "alice", "Bearer sk-2": "bbaae8c9"} {
		if k := ks.Of(shown); k == nil || k.Name != name {
			t.Errorf("Of(%q) = %+v, want the name %s", shown, k, name)
		}
	}
	if k := ks.Of("Bearer alice"); k != nil {
		t.Errorf("a name opens the server: %+v", k)
	}
}

func TestANewKeyFitsTheLineThatIsMadeForIt(t *testing.T) {
	c := Credential{Name: "alice", Limits: Limits{Requests: 6, Tokens: 100, AtOnce: 2, Models: []string{"a+b", "c"}}, Admin: true}
	key, line, err := NewKey(c)
	if err != nil || strings.Contains(line, key) {
		t.Fatalf("NewKey = %q, %v", line, err)
	}
	if other, _, _ := NewKey(c); other == key || len(key) < 30 {
		t.Errorf("two keys are %s and %s", key, other)
	}
	list, err := ReadKeys(write(t, line), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	k := NewKeys(list, Limits{}).Of("Bearer " + key)
	if k == nil || k.Plain || !k.Admin || !reflect.DeepEqual(k.Limits, c.Limits) {
		t.Errorf("the line %q is read as %+v", line, k)
	}
	for _, c := range []Credential{{}, {Name: "a b"}, {Name: "a", Limits: Limits{Models: []string{"a b"}}}, {Name: "a", Limits: Limits{Models: []string{"a,b"}}}, {Name: "a", Limits: Limits{AtOnce: -1}}} {
		if _, line, err := NewKey(c); err == nil {
			t.Errorf("NewKey(%+v) = %q", c, line)
		}
	}
}
