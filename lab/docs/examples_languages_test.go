package docs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/lutra-lm/lutra/internal/clienttest"
)

func (s *sandbox) file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// python runs a program where the packages that it imports are installed.
func (s *sandbox) python(t *testing.T, text string) string {
	var needs []string
	for _, m := range regexp.MustCompile(`(?m)^(?:from|import) (\w+)`).FindAllStringSubmatch(text, -1) {
		needs = append(needs, m[1])
	}
	if len(needs) == 0 { // continues an example before it
		needs = []string{"openai"}
		text = "from openai import OpenAI\nclient = OpenAI(base_url=\"" + s.sub.Replace("http://127.0.0.1:8080/v1") + "\", api_key=\"none\")\n" + text
	}
	return s.run(t, clienttest.Python(t, needs...), s.file(t, "example.py", text))
}

// node runs a module beside the npm packages of the page's tests.
func (s *sandbox) node(t *testing.T, text string) string {
	packages, err := filepath.Abs(filepath.Join(repository, "web/test/node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(packages, "openai")); err != nil {
		clienttest.Missing(t, "npm package openai; npm ci in web/test")
	}
	clienttest.Programs(t, "node")
	if err := os.Symlink(packages, filepath.Join(s.dir, "node_modules")); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	return s.run(t, "node", s.file(t, "example.mjs", text))
}

// golang runs statements that end with an answer.
func (s *sandbox) golang(t *testing.T, text string) string {
	goTool, err := exec.LookPath("go")
	if err != nil {
		clienttest.Missing(t, "go")
	}
	program := `package main

import (
	"context"
	"fmt"
	"log"

	"github.com/sashabaranov/go-openai"
)

func main() {
	ctx := context.Background()
	` + text + `
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Choices[0].Message.Content)
}
`
	verb := "vet" // links nothing
	if clienttest.All() {
		verb = "run"
	}
	cmd := exec.CommandContext(t.Context(), goTool, verb, s.file(t, "example.go", program)) // in the module, for its dependencies
	cmd.Env = append(os.Environ(), "NO_PROXY=*", "no_proxy=*")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
