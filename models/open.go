package models

import (
	"os"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/huggingface"
)

// Open opens a model: a GGUF file, or a directory as Hugging Face's transformers saves it.
func Open(path string) (*gguf.File, error) {
	if isDirectory(path) {
		return huggingface.Open(path)
	}
	return gguf.Open(path)
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
