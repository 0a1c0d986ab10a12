package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/hub/hubtest"
)

// withOllama gives commands a registry with two models.
func withOllama(t *testing.T) {
	t.Helper()
	h := withHub(t)
	model := tinyModel(t)
	h.PutOllama("library/tiny", "1b", hubtest.Layer{Kind: "model", Contents: model}, hubtest.Layer{Kind: "params", Contents: []byte(`{"temperature":0.25,"top_k":7,"min_p":5,"stop":["x"]}`)})
	h.PutOllama("acme/eyes", "latest", hubtest.Layer{Kind: "model", Contents: model}, hubtest.Layer{Kind: "projector", Contents: []byte("GGUF")})
}

// defaults returns how a server samples its models where nobody says.
func (s *live) defaults(t *testing.T) map[string]map[string]any {
	t.Helper()
	_, text := fetched(t, s.base+"/v1/models")
	var answer struct {
		Data []struct {
			ID    string
			Lutra struct{ Defaults map[string]any }
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	list := map[string]map[string]any{}
	for _, m := range answer.Data {
		list[m.ID] = m.Lutra.Defaults
	}
	return list
}

func TestAModelOfOllamasRegistryIsServedAsItsParametersSay(t *testing.T) {
	withOllama(t)
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("models: [{path: 'ollama:tiny:1b'}, {name: mine, path: 'ollama:tiny:1b', sampling: {top_k: 3}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		args []string
	}{{"by a flag", []string{"--model", "ollama:tiny:1b"}}, {"by the configuration", []string{"--config", path}}, {"from the cache", []string{"--offline", "--model", "lutra-tiny-s"}}} {
		what, args := c.what, c.args
		s := serving(t, append([]string{"--addr", "127.0.0.1:0"}, args...)...)
		got := s.defaults(t)
		if d := got["tiny:1b"]; what != "from the cache" && (d["temperature"] != 0.25 || d["top_k"] != 7.0) {
			t.Errorf("%s: %v, want temperature 0.25 and top_k 7", what, got)
		}
		if d := got["mine"]; what == "by the configuration" && (d["temperature"] != 0.25 || d["top_k"] != 3.0) {
			t.Errorf("%s: mine has %v, want temperature 0.25 and its own top_k", what, d)
		}
		if names := s.models(t); !slices.Contains(names, "tiny:1b") {
			t.Errorf("%s: tiny:1b is not among %q", what, names)
		}
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		warned := slices.ContainsFunc(s.log, func(e map[string]any) bool {
			text, _ := e["message"].(string)
			return strings.Contains(text, "min_p counts for nothing")
		})
		if !warned && what != "from the cache" {
			t.Errorf("%s: the log does not name min_p", what)
		}
	}
}

func TestModelsOfOllamasRegistryAreDownloadedListedAndDeleted(t *testing.T) {
	withOllama(t)
	path := strings.TrimSpace(mustLutra(t, "pull", "ollama:tiny:1b"))
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		t.Fatalf("pull = %q: %v", path, err)
	}
	if got, want := mustLutra(t, "info", "ollama:tiny:1b"), "answers are sampled with temperature=0.25,top_k=7 where nobody says otherwise"; !strings.Contains(got, want) {
		t.Errorf("info does not say %q:\n%s", want, got)
	}
	if got := mustLutra(t, "info", "lutra-tiny-s"); strings.Contains(got, "answers are sampled") {
		t.Errorf("info of a model whose author names no sampling:\n%s", got)
	}
	if _, got := complain(t, "pull", "ollama:acme/eyes"); !strings.Contains(got, "ollama:acme/eyes: its projector is not used") {
		t.Errorf("pull of a model with a projector tells %q", got)
	}
	var list []storedModel
	if err := json.Unmarshal([]byte(mustLutra(t, "list", "--json")), &list); err != nil || len(list) != 2 || list[0].Name != "ollama:acme/eyes" || list[1].File != "ollama:tiny:1b" || list[1].Path != path {
		t.Errorf("list --json = %+v, %v", list, err)
	}
	if got := mustLutra(t, "info", "ollama:tiny:1b"); !strings.Contains(got, "sampled with temperature=0.25,top_k=7 where") || !strings.Contains(got, "min_p") {
		t.Errorf("info = %s", got)
	}
	mustLutra(t, "ask", "--model", "ollama:tiny:1b", "--max-tokens", "2", "Hi")
	if got := mustLutra(t, "rm", "ollama:tiny:1b"); !strings.HasPrefix(got, "ollama:tiny:1b deleted, ") {
		t.Errorf("rm = %s", got)
	}
	if status, got := complain(t, "info", "ollama:tiny:1b"); status != 1 || !strings.Contains(got, "lutra pull ollama:tiny:1b gets it") {
		t.Errorf("info of what is not there: %d, %s", status, got)
	}
	if status, got := complain(t, "pull", "ollama:tiny:9b"); status != 1 || !strings.Contains(got, "no such tag") {
		t.Errorf("pull of a tag that is not there: %d, %s", status, got)
	}
	if status, got := complain(t, "pull", "ollama:../x"); status != 2 || !strings.Contains(got, "names no model of Ollama's registry") {
		t.Errorf("pull of what is no name: %d, %s", status, got)
	}
}
