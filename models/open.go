package models

import (
	"errors"
	"fmt"
	"os"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/huggingface"
)

// Open opens a model: a GGUF file, or a directory as Hugging Face's transformers saves it.
func Open(path string) (f *gguf.File, err error) {
	err = parallel.Try(func() (err error) {
		if isDirectory(path) {
			f, err = huggingface.Open(path)
		} else {
			f, err = gguf.Open(path)
		}
		return err
	})
	return f, panicked(err, path)
}

// panicked is err, with where it happened if it is a panic: whatever a file brings about is an error
// of that file, and not the end of the process.
func panicked(err error, where string) error {
	var p *parallel.Panic
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", where, err)
	}
	return err
}

// NameOf returns what a model is called by its path.
func NameOf(path string) string {
	if isDirectory(path) {
		return huggingface.Name(path)
	}
	return gguf.ModelName(path)
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
