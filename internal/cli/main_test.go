package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// asCommand in the environment makes the test's binary the lutra command, so
// that tests can run it as a process: with a terminal, with signals, in a shell.
const asCommand = "LUTRA_TEST_AS_COMMAND"

// cheap has settings of each command and process that do not change its output: a lazy collector, and KV caches that
// hold a few of the tests' conversations. By default each server would find and clear a quarter of the machine's memory.
var cheap = map[string]string{"LUTRA_KV_MEMORY": "16MiB", "GOGC": "400"}

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(Main(os.Args[1:], nil))
	}
	cpulimit.OnWait = func() { panic("something is waited for within a place of cpulimit") }
	for name, value := range cheap {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// process is a lutra command line as a process, with its home in a folder of the
// test's.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "HOME="+home, "XDG_STATE_HOME=", "LOCALAPPDATA="+home, "TERM=xterm")
	return cmd
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// tinyModel is a GGUF file of noise.
func tinyModel(t *testing.T) []byte {
	t.Helper()
	shape, err := synthetic.Named("tiny")
	if err != nil {
		t.Fatal(err)
	}
	shape.Layers = 1
	var model bytes.Buffer
	if err := synthetic.Write(&model, shape, synthetic.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	return model.Bytes()
}

// document is the text of a file in docs.
func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks are the fenced blocks of a language in a document.
func blocks(text, lang string) (list []string) {
	for _, m := range regexp.MustCompile("(?ms)^```"+lang+"\n(.*?)\n```$").FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}
