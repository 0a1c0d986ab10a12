package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models/huggingface"
)

// CheckModelFile explains what is wrong with a path that should be a GGUF file, or a
// directory with config.json and safetensors. It
// knows the mistakes that people make when they first download a model.
func CheckModelFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		beside, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.gguf")) // an error means a path with odd characters
		meant := usage.DidYouMean(path, slices.Concat(beside, embeddedNames(), hub.Names()))
		return fmt.Errorf("there is no file %s; embedded models: %s%s",
			path, strings.Join(embeddedNames(), ", "), cmp.Or(meant, "; lutra list --catalogue names those to download"))
	case err != nil:
		return err
	case info.IsDir() && huggingface.Is(path):
		return nil
	case info.IsDir():
		return fmt.Errorf("%s is a directory; %s", path, filesWithin(path))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, 256)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return err
	}
	if what := notGGUF(head[:n]); what != "" {
		return fmt.Errorf("%s is %s", path, what)
	}
	return nil
}

// filesWithin names the models in a directory.
func filesWithin(dir string) string {
	const shown = 5
	files, err := filepath.Glob(filepath.Join(dir, "*.gguf"))
	switch {
	case err != nil || len(files) == 0:
		return "there is neither a GGUF file in it nor a config.json"
	case len(files) > shown:
		return fmt.Sprintf("name one of its files: %s ...", strings.Join(files[:shown], ", "))
	}
	return "name one of its files: " + strings.Join(files, ", ")
}

// notGGUF says what a file that begins with head is; empty: perhaps a GGUF file.
func notGGUF(head []byte) string {
	is := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	switch {
	case is("GGUF"):
		return ""
	case len(head) == 0:
		return "empty"
	case len(head) > 8 && head[8] == '{' && bytes.Equal(head[5:8], []byte{0, 0, 0}):
		return "a safetensors file; name its directory, where config.json and tokenizer.json lie too"
	case is("PK\x03\x04"):
		return "a PyTorch checkpoint or another ZIP archive; save it as safetensors with transformers, and name the directory"
	case is("lmgg"), is("tjgg"), is("fmgg"), is("algg"):
		return "a model in the format before GGUF; convert it, or download it as GGUF"
	case is("version https://git-lfs"):
		return "what Git keeps in place of a large file; fetch the file itself with git lfs pull"
	case is("<"):
		return "a web page, not a model: the download went wrong"
	}
	return "not a GGUF file"
}
