package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/internal/clienttest"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// asked are the requests that a program has sent.
type asked struct {
	mu    sync.Mutex
	seen  []string // method, path and status
	shape *shaper  // gathers the shapes of requests; nil: nothing does
}

// recorded serves a fixture to programs, and notes what they ask.
func (f *fixture) recorded(t *testing.T) (url string, seen *asked) {
	seen = &asked{}
	handler := f.Handler()
	live := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler.ServeHTTP(status, r)
		seen.mu.Lock()
		defer seen.mu.Unlock()
		seen.shape.add(r, body)
		seen.seen = append(seen.seen, fmt.Sprint(r.Method, " ", r.URL.Path, " ", status.status))
	}))
	t.Cleanup(live.Close)
	return live.URL, seen
}

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// all returns the requests, and those that a path answered otherwise than with 200.
func (r *asked) all() (seen, refused []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.seen {
		if !strings.HasSuffix(one, " 200") {
			refused = append(refused, one)
		}
	}
	return slices.Clone(r.seen), refused
}

// programs are agents that write code, as npm installs them, and how each is asked without a
// terminal. tool is what it calls its shell, and the arguments of a call.
var programs = []struct {
	name, tool, arguments string
	files                 map[string]string // in its home; SERVER is the server's
	args, env             []string
}{
	{"codex", "exec_command", `{"cmd": "echo lutra > found"}`,
		map[string]string{".codex/config.toml": "model = \"toy\"\nmodel_provider = \"lutra\"\n\n[model_providers.lutra]\nname = \"Lutra\"\nbase_url = \"SERVER/v1\"\nwire_api = \"responses\"\n"},
		[]string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "Run echo."}, nil},
	{"opencode", "bash", `{"command": "echo lutra > found", "description": "Says it"}`,
		map[string]string{".config/opencode/opencode.json": `{"model": "lutra/toy", "small_model": "lutra/toy", "autoupdate": false, "share": "disabled", "permission": "allow",
			"provider": {"lutra": {"npm": "@ai-sdk/openai-compatible", "name": "Lutra", "options": {"baseURL": "SERVER/v1", "apiKey": "none"}, "models": {"toy": {"name": "toy", "limit": {"context": 131072, "output": 1024}}}}}}`},
		[]string{"run", "Run echo."}, nil},
	{"claude", "Bash", `{"command": "echo lutra > found", "description": "Says it"}`, nil,
		[]string{"-p", "--permission-mode", "acceptEdits", "--allowedTools", "Bash", "--", "Run echo."},
		[]string{"ANTHROPIC_BASE_URL=SERVER", "ANTHROPIC_AUTH_TOKEN=none", "ANTHROPIC_MODEL=toy", "ANTHROPIC_DEFAULT_HAIKU_MODEL=toy", "CLAUDE_CODE_MAX_CONTEXT_TOKENS=131072", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"}},
}

// TestAgentsThatWriteCodeRunWithTheirDefaults runs the programs in the folder that
// LUTRA_PROGRAMS names. Each asks, is told to call its shell, and ends with the model's answer.
func TestAgentsThatWriteCodeRunWithTheirDefaults(t *testing.T) {
	folder := os.Getenv("LUTRA_PROGRAMS")
	if folder == "" {
		t.Skip("LUTRA_PROGRAMS names no folder of programs")
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			program := filepath.Join(folder, p.name)
			if _, err := os.Stat(program); err != nil {
				t.Skip(err)
			}
			m := agent(t, toolcall.Hermes.Write(p.tool, p.arguments), "All is well.")
			m.Context = 1 << 17
			f := start(t, m, nil)
			f.withTemplate(template.ChatML)
			url, seen := f.recorded(t)
			seen.shape = newShaper(p.tool)
			home, work := t.TempDir(), t.TempDir()
			for name, text := range p.files {
				name = filepath.Join(home, name)
				if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(strings.ReplaceAll(text, "SERVER", url)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), program, p.args...)
			cmd.Dir = work
			cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "PWD="+work, "NO_PROXY=*", "no_proxy=*")
			for _, v := range p.env {
				cmd.Env = append(cmd.Env, strings.ReplaceAll(v, "SERVER", url))
			}
			out, err := cmd.CombinedOutput()
			all, refused := seen.all()
			if err != nil || !strings.Contains(string(out), "All is well.") || len(refused) > 0 {
				t.Errorf("%v, refused %q of %q\n%s", err, refused, all, out)
			}
			if text, err := os.ReadFile(filepath.Join(work, "found")); string(text) != "lutra\n" {
				t.Errorf("the call of its shell left %q: %v", text, err)
			}
			t.Logf("%d requests: %q", len(all), all)
			if *updateBytes && !t.Failed() {
				seen.shape.write(t, p.name)
			}
		})
	}
}

// TestLibrariesCallToolsAndEndWithinASchema runs the libraries that LUTRA_PYTHON has.
func TestLibrariesCallToolsAndEndWithinASchema(t *testing.T) {
	sweep.Full(t)
	for library, apis := range map[string][]string{"agents": {"chats", "responses"}, "pydantic_ai": {"chats", "responses", "messages"}, "langchain": {"chats", "responses"}, "instructor": {"chats"}} {
		for _, api := range apis {
			t.Run(library+" "+api, func(t *testing.T) {
				python := clienttest.Python(t, library)
				f := start(t, agent(t, toolcall.Hermes.Write("multiply", `{"a": 12, "b": 7}`), `{"eggs": 84, "sure": true}`), nil)
				url, seen := f.recorded(t)
				cmd := exec.CommandContext(t.Context(), python, "../tools/clients/final.py", library, api)
				cmd.Env = append(os.Environ(), "LUTRA_URL="+url, "PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=*", "no_proxy=*")
				out, err := cmd.CombinedOutput()
				all, refused := seen.all()
				if text := string(out); err != nil || len(all) != 2 || len(refused) > 0 || !strings.Contains(text, "called with 12 7\n") || !strings.HasSuffix(strings.TrimSpace(text), "Estimate(eggs=84, sure=True)") {
					t.Errorf("%v, asked %q\n%s", err, all, out)
				}
			})
		}
	}
}
