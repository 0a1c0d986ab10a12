package cli

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// against runs a command, which must succeed.
func against(t *testing.T, in string, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := Command(&out, &errOut)
	cmd.SetIn(strings.NewReader(in))
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("lutra %q: %v\n%s", args, err, &errOut)
	}
	return out.String()
}

// served are a server's models by name.
func (l *live) served(t *testing.T) map[string]servedModel {
	t.Helper()
	var list []servedModel
	if err := json.Unmarshal([]byte(against(t, "", "ps", "--json", "--url", l.base)), &list); err != nil {
		t.Fatal(err)
	}
	byName := map[string]servedModel{}
	for _, m := range list {
		byName[m.Name] = m
	}
	return byName
}

// becomes asks for a model until it is as wanted: a request's end is told before it lets go of its
// model.
func (l *live) becomes(t *testing.T, name string, wanted func(servedModel) bool) {
	t.Helper()
	var m servedModel
	for range 500 {
		if m = l.served(t)[name]; wanted(m) {
			return
		}
	}
	t.Errorf("%s stays %+v", name, m)
}

func TestModelsOfARunningServerAreListedAndStopped(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "noise.gguf"), tinyModel(t), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LUTRA_LOADING_KEEP_ALIVE", "1h")
	s := serving(t, "--addr", "127.0.0.1:0", "--model", "lutra-tiny-s", "--models-dir", dir)
	if m := s.served(t); m["lutra-tiny-s"].Status != "loaded" || m["lutra-tiny-s"].Bytes == 0 || m["lutra-tiny-s"].Until != nil || m["noise"].Status != "unloaded" || m["noise"].Bytes != 0 {
		t.Fatalf("at first the models are %+v", m)
	}
	against(t, "", "ask", "--url", s.base, "--model", "noise", "--max-tokens", "2", "hi")
	s.becomes(t, "noise", func(m servedModel) bool { return m.Status == "loaded" && m.Until != nil && m.Running+m.Waiting == 0 })
	if out := against(t, "", "ps", "--url", s.base); !strings.Contains(out, "stays") || !strings.Contains(out, "noise") {
		t.Errorf("ps prints\n%s", out)
	}
	for _, name := range []string{"noise", "all"} {
		if name == "all" {
			against(t, "", "ask", "--url", s.base, "--model", "noise", "--max-tokens", "2", "hi")
		}
		if out := against(t, "", "stop", "--url", s.base, name); !strings.Contains(out, "noise goes\n") || strings.Contains(out, "tiny-s stays\n") != (name == "all") {
			t.Errorf("stop %s prints %q", name, out)
		}
		s.becomes(t, "noise", func(m servedModel) bool { return m.Status == "unloaded" })
	}
	for name, want := range map[string]string{"noise": "not running", "lutra-tiny-s": "pinned", "nobody": "nobody"} {
		if status, got := complain(t, "stop", "--url", s.base, name); status != 1 || !strings.Contains(got, want) {
			t.Errorf("stop %s: status %d, %s", name, status, got)
		}
	}
	if status, got := complain(t, "run", "--addr", strings.TrimPrefix(s.base, "http://"), "nobody", "hi"); status != 1 || !strings.Contains(got, `no model "nobody"`) {
		t.Errorf("run: status %d, %s", status, got)
	}
}

func TestWhatIsNoServerOfLutraIsNotListed(t *testing.T) {
	const running, waiting = "# TYPE lutra_num_requests_running gauge\nlutra_num_requests_running{model_name=\"m\"} ", "# TYPE lutra_num_requests_waiting gauge\nlutra_num_requests_waiting{model_name=\"m\"} "
	for text, want := range map[string]doing{
		running + "2\n" + waiting + "1\n":      {2, 1},
		running + "NaN\n" + waiting + "1e99\n": {0, 1 << 30},
		"go_goroutines 3\n":                    {},
	} {
		if does, err := sequences(strings.NewReader(text)); err != nil || does["m"] != want {
			t.Errorf("sequences(%q) = %v, %v, want %v", text, does, err, want)
		}
	}
	if does, err := sequences(strings.NewReader("<html>")); err == nil {
		t.Errorf("a page has %v", does)
	}
	if status, got := complain(t, "ps", "--url", "http://127.0.0.1:1"); status != 1 || !strings.Contains(got, "no server answers") {
		t.Errorf("ps: status %d, %s", status, got)
	}
}

func TestRunStartsAServerWhereNoneIsAndEndsIt(t *testing.T) {
	addr := "127.0.0.1:" + freePort(t)
	for _, c := range []struct {
		in   string
		args []string
	}{
		{"", []string{"What is 12 * 7?"}},
		{"What is 12 * 7?", nil},
		{"A box holds 12 eggs. Ann buys 7 boxes.", []string{"How many eggs does she have?"}},
	} {
		if out := against(t, c.in, append([]string{"run", "--addr", addr, "lutra-tiny-l"}, c.args...)...); !strings.Contains(out, "84") {
			t.Errorf("run %q of %q answers %q", c.args, c.in, out)
		}
		if l, err := net.Listen("tcp", addr); err != nil {
			t.Errorf("run leaves a server: %v", err)
		} else {
			l.Close()
		}
	}
	serving(t, "--addr", addr, "--model", "lutra-tiny-l")
	if out := against(t, "", "run", "--addr", addr, "lutra-tiny-l", "What is 9 * 8?"); !strings.Contains(out, "72") {
		t.Errorf("run answers %q by the server that is there", out)
	}
	for _, args := range [][]string{{"run"}, {"run", "--model", "x", "lutra-tiny-l", "hi"}, {"run", "lutra-tiny-l", "a", "b"}} {
		if status, got := complain(t, args...); status != 2 {
			t.Errorf("%q: status %d, %s", args, status, got)
		}
	}
}
