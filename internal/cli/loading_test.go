package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

// modelFile is the path of a GGUF file of noise.
func modelFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "big.gguf")
	if err := os.WriteFile(path, tinyModel(t), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// whenSaid calls do as soon as text has been written.
type whenSaid struct {
	bytes.Buffer
	text string
	do   func()
}

func (w *whenSaid) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if strings.Contains(w.String(), w.text) {
		w.do()
	}
	return n, err
}

func TestCtrlCWhileAModelLoadsEndsACommand(t *testing.T) {
	path := modelFile(t)
	for _, args := range [][]string{
		{"ask", "--model", path, "--max-tokens", "2", "hi"},
		{"chat", "--model", path, "--max-tokens", "2"},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var out bytes.Buffer
		said := &whenSaid{text: "loading big (", do: func() { cancel(stopSignal{os.Interrupt}) }}
		root := Command(&out, said)
		root.SetIn(strings.NewReader("hi\n"))
		root.SetArgs(args)
		err := root.ExecuteContext(ctx)
		if !errors.Is(err, context.Canceled) || out.Len() > 0 || strings.Count(said.String(), "\n") != 1 {
			t.Errorf("lutra %q ends with %v; it printed %q and said %q", args, err, &out, said.String())
		}
	}
}

func TestWhatIsLoadingIsSaidOffATerminalOnceAFile(t *testing.T) {
	path := modelFile(t)
	var out, errOut bytes.Buffer
	root := Command(&out, &errOut)
	root.SetIn(strings.NewReader("hi\n/model lutra-tiny-s\n/model " + path + "\n"))
	root.SetArgs([]string{"chat", "--model", path, "--max-tokens", "1"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	size := 0
	if f, err := gguf.Open(path); err != nil {
		t.Fatal(err)
	} else {
		for i := range f.Tensors {
			size += f.Tensors[i].Bytes()
		}
		f.Close()
	}
	if n := strings.Count(errOut.String(), "loading big ("); n != 2 || size == 0 {
		t.Errorf("it says %d times that a file of %d bytes is loading:\n%s", n, size, errOut.String())
	}
}
