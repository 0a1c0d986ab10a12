package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/server/admission"
)

// keyCommand runs lutra key with arguments.
func keyCommand(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := Command(&out, &out)
	cmd.SetArgs(append([]string{"key"}, args...))
	err := cmd.Execute()
	return out.String(), err
}

func TestANewKeyIsShownOnceAndItsHashGoesIntoTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.txt")
	out, err := keyCommand("create", "alice", "--requests-per-minute", "6", "--models", "a,b")
	if err != nil {
		t.Fatal(err)
	}
	key, line, _ := strings.Cut(strings.TrimSpace(out), "\n")
	if !strings.HasPrefix(key, "sk-lutra-") || !strings.HasPrefix(line, "alice: sha256:") || !strings.HasSuffix(line, " requests_per_minute=6 models=a,b") {
		t.Errorf("lutra key create prints %q", out)
	}
	if err := os.WriteFile(file, []byte("# clients\n"+line), 0o640); err != nil { // no newline at the end
		t.Fatal(err)
	}
	if out, err = keyCommand("create", "ops", "--admin", "--file", file); err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("%q, %v", out, err)
	}
	list, err := admission.ReadKeys(file, admission.Limits{})
	if err != nil || len(list) != 2 || list[0].Name != "alice" || !list[1].Admin {
		t.Errorf("the file holds %+v, %v", list, err)
	}
	ks := admission.NewKeys(list, admission.Limits{})
	for shown, name := range map[string]string{key: "alice", strings.TrimSpace(out): "ops"} {
		if k := ks.Of("Bearer " + shown); k == nil || k.Name != name {
			t.Errorf("%s opens %+v, want %s", shown, k, name)
		}
	}
	before, _ := os.ReadFile(file)
	if bytes.Contains(before, []byte("sk-")) {
		t.Errorf("the file shows a key:\n%s", before)
	}
	if _, err := keyCommand("create", "ops", "--file", file); err == nil || !strings.Contains(err.Error(), "line 4: the name ops is that of line 3") {
		t.Errorf("a second key of one name: %v", err)
	}
	if after, _ := os.ReadFile(file); !bytes.Equal(before, after) {
		t.Errorf("a refused key changes the file to\n%s", after)
	}
	if left, _ := filepath.Glob(file + "?*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file's mode is %v, %v; it was 640", info.Mode(), err)
	}
	for _, args := range [][]string{{"create"}, {"create", "a b"}, {"create", "x", "--max-requests", "-1"}, {"make", "x"}} {
		if out, err := keyCommand(args...); err == nil {
			t.Errorf("lutra key %v prints %q", args, out)
		}
	}
}
