package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/clienttest"
)

const clientsFolder = "docs/examples"

// clientExamples are the programs of docs/examples, with the package that each needs.
// A program ends with an error if an answer has not the shape that its client expects.
var clientExamples = map[string]string{
	"openai_client.py":    "openai",
	"langchain_agent.py":  "langchain_openai",
	"litellm_client.py":   "litellm",
	"anthropic_client.py": "anthropic",
	"ollama_client.py":    "ollama",
	"openai_client.mjs":   "openai",
	"goopenai":            "",
}

// pins are files that name versions of packages, which are no programs.
var pins = []string{"requirements.txt", "package.json"}

// TestExamplesOfClientsRun runs each against a server with the embedded models, as
// `lutra serve` has them, and one that makes vectors. Programs are skipped without their
// packages, and a Go program is only checked, unless LUTRA_EXAMPLES=all.
func TestExamplesOfClientsRun(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a dozen programs")
	}
	config := configFile(t, "models:\n- {embedded: lutra-tiny-l}\n- {embedded: lutra-tiny-s}\n- {path: "+absolute(t, "../../tts/embed/testdata/bert.gguf")+"}\nverifiers:\n- {embedded: lutra-tiny-prm}\n")
	base := serving(t, "--config", config)
	for _, name := range sortedNames(clientExamples) {
		t.Run(name, func(t *testing.T) {
			cmd := clientProgram(t, name, clientExamples[name])
			cmd.Env = append(os.Environ(), "LUTRA_URL="+base, "PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=*", "no_proxy=*")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if strings.Contains(string(out), "this server has no model") {
				t.Errorf("it has not found the model that makes vectors:\n%s", out)
			}
		})
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.ToSlash(path)
}

// clientProgram is the command that runs an example.
func clientProgram(t *testing.T, name, needs string) *exec.Cmd {
	t.Helper()
	path := absolute(t, filepath.Join(repository, clientsFolder, name))
	program, args := "go", []string{"vet", path} // links nothing
	if clienttest.All() {
		args[0] = "run"
	}
	switch filepath.Ext(name) {
	case ".py":
		program, args = clienttest.Python(t, needs), []string{path}
	case ".mjs": // packages are looked for beside the module
		packages := absolute(t, filepath.Join(repository, "web/test/node_modules"))
		if _, err := os.Stat(filepath.Join(packages, needs)); err != nil {
			clienttest.Missing(t, "npm package "+needs+"; npm ci in web/test")
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		program, args = "node", []string{filepath.Join(dir, name)}
		if err := os.Symlink(packages, filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(args[0], text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	clienttest.Programs(t, program)
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = repository // for `go run`: the example is part of the module
	return cmd
}

func TestEveryClientExampleIsRunAndDocumented(t *testing.T) {
	files, err := os.ReadDir(filepath.Join(repository, clientsFolder))
	if err != nil {
		t.Fatal(err)
	}
	doc := documents(t)["docs/clients.md"]
	for _, file := range files {
		name := file.Name()
		if _, ok := clientExamples[name]; !ok && !slices.Contains(pins, name) {
			t.Errorf("no test runs %s/%s", clientsFolder, name)
		}
		if !strings.Contains(doc, "examples/"+name) {
			t.Errorf("docs/clients.md does not show %s/%s", clientsFolder, name)
		}
	}
	if want := len(clientExamples) + len(pins); len(files) != want {
		t.Errorf("%d files in %s, want %d", len(files), clientsFolder, want)
	}
}

// The suites of .ci/clients pin their clients, and docs/clients.md says which versions.
func TestTheDocumentNamesTheVersionsOfTheTestedClients(t *testing.T) {
	doc := documents(t)["docs/clients.md"]
	suites := filepath.Join(repository, "tools/clients")
	files, err := filepath.Glob(filepath.Join(suites, "test_*.py"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no suites in %s: %v", suites, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "test_"), ".py")
		if strings.Contains(name, "__") {
			continue // a part of another suite
		}
		text, err := os.ReadFile(filepath.Join(suites, "requirements", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		client := strings.ReplaceAll(name, "_", "-")
		pinned := regexp.MustCompile(`(?m)^` + client + `(?:\[.*\])?==(\S+)`).FindSubmatch(text)
		if pinned == nil {
			t.Errorf("requirements/%s.txt pins no %s", name, client)
		} else if row := fmt.Sprintf("| `%s` | %s |", client, pinned[1]); !strings.Contains(doc, row) {
			t.Errorf("docs/clients.md has no row that begins with %q", row)
		}
	}
	var pins struct{ Dependencies map[string]string }
	text, err := os.ReadFile(filepath.Join(suites, "aisdk/package.json"))
	if err == nil {
		err = json.Unmarshal(text, &pins)
	}
	if version := pins.Dependencies["ai"]; err != nil || !strings.Contains(doc, " | "+version+" | ") {
		t.Errorf("docs/clients.md does not name %q of ai (%v)", version, err)
	}
}

func TestTheNodeExampleAndTheTestsOfThePageHaveTheSameClient(t *testing.T) {
	version := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(repository, path))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), `"openai": "`)
		pinned, _, _ := strings.Cut(rest, `"`)
		return pinned
	}
	if ours, tested := version(clientsFolder+"/package.json"), version("web/test/package.json"); ours != tested || ours == "" {
		t.Errorf("openai %q in %s, %q in web/test", ours, clientsFolder, tested)
	}
}
