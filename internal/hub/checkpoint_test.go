package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// whole is a repository without GGUF: a checkpoint in two files, and what else such have.
var whole = Ref{Owner: "acme", Repo: "Tiny-1.5B"}

func shardName(no int) string { return fmt.Sprintf("model-%05d-of-00002.safetensors", no) }

func withCheckpoint(t *testing.T) (b *bench, files map[string][]byte) {
	t.Helper()
	b = newBench(t)
	all := contents(3000)
	files = map[string][]byte{
		"config.json": []byte(`{"model_type":"llama"}`), "tokenizer.json": []byte("{}"), "tokenizer_config.json": []byte("{ }"),
		"model.safetensors.index.json": []byte(`{"weight_map":{}}`), shardName(1): all[:2000], shardName(2): all[2000:],
	}
	for name, raw := range files {
		b.server.Put(whole.ID(), name, raw)
	}
	for _, other := range []string{"README.md", "pytorch_model.bin", "onnx/model.safetensors", "training_args.bin", "consolidated.safetensors"} {
		b.server.Put(whole.ID(), other, []byte(other))
	}
	return b, files
}

func TestARepositoryWithoutGGUFIsPulledAsACheckpoint(t *testing.T) {
	b, files := withCheckpoint(t)
	if _, err := b.Find(whole); !errors.Is(err, ErrAbsent) {
		t.Errorf("Find before = %v", err)
	}
	var told []int64
	dir, err := b.Pull(t.Context(), whole, func(done, _ int64) { told = append(told, done) })
	if err != nil || !slices.IsSorted(told) {
		t.Fatalf("Pull = %q, %v; progress %v", dir, err, told)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(files) {
		t.Errorf("%d files, %v; want %d", len(entries), err, len(files))
	}
	size := int64(0)
	for name, want := range files {
		size += int64(len(want))
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes, %v", name, len(got), err)
		}
	}
	if found, err := b.Find(whole); err != nil || found != dir {
		t.Errorf("Find = %q, %v", found, err)
	}
	list, err := b.List()
	if err != nil || len(list) != 1 || list[0].Ref != whole || list[0].Path != dir || list[0].Size != size || list[0].Missing != 0 {
		t.Errorf("List = %+v, %v", list, err)
	}
	if _, err := b.Remove(whole); err != nil {
		t.Error(err)
	}
	if list, err := b.List(); err != nil || len(list) != 0 {
		t.Errorf("still there: %+v, %v", list, err)
	}
}

func TestACheckpointOfWhichAFileIsMissingIsNone(t *testing.T) {
	b, files := withCheckpoint(t)
	dir, err := b.Pull(t.Context(), whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name := range files {
		if name == "tokenizer_config.json" {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if found, err := b.Find(whole); !errors.Is(err, ErrAbsent) {
			t.Errorf("without %s: Find = %q, %v", name, found, err)
		}
		if _, err := b.Pull(t.Context(), whole, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnInterruptedPullOfACheckpointIsListedAndGoesOn(t *testing.T) {
	b, _ := withCheckpoint(t)
	ctx, interrupt := context.WithCancel(t.Context())
	b.server.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		held := ctx.Err() == nil && r.Header.Get("Range") == "bytes=1000-1999"
		if held {
			<-r.Context().Done()
		}
		return held
	}
	if _, err := b.Pull(ctx, whole, func(done, _ int64) {
		if done >= 1000 {
			interrupt()
		}
	}); !errors.Is(err, context.Canceled) {
		t.Fatalf("an interrupted Pull = %v", err)
	}
	list, err := b.List()
	if err != nil || len(list) != 1 || list[0].Ref != whole || list[0].Missing == 0 {
		t.Errorf("List = %+v, %v", list, err)
	}
	if _, err := b.Pull(t.Context(), whole, nil); err != nil {
		t.Fatal(err)
	}
	if list, err := b.List(); err != nil || len(list) != 1 || list[0].Missing != 0 {
		t.Errorf("List = %+v, %v", list, err)
	}
}

func TestGGUFGoesBeforeACheckpoint(t *testing.T) {
	b, _ := withCheckpoint(t)
	b.server.Put(whole.ID(), "tiny-Q8_0.gguf", []byte("GGUF"))
	if path, err := b.Pull(t.Context(), whole, nil); err != nil || filepath.Base(path) != "tiny-Q8_0.gguf" {
		t.Errorf("Pull = %q, %v", path, err)
	}
}

func TestARepositoryWithoutAWholeCheckpointHasNoModel(t *testing.T) {
	for _, files := range [][]string{
		{"config.json", "model.safetensors"},
		{"config.json", "tokenizer.json"},
		{"config.json", "tokenizer.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors"},
		{"config.json", "tokenizer.json", "model-00001-of-00001.safetensors"},
		{"config.json", "tokenizer.json", "sub/model.safetensors"},
	} {
		b := newBench(t)
		for _, name := range files {
			b.server.Put(whole.ID(), name, []byte("x"))
		}
		if _, err := b.Pull(t.Context(), whole, nil); !errors.Is(err, ErrChoice) || !strings.Contains(err.Error(), "has no GGUF model, nor the safetensors of one") {
			t.Errorf("%v: Pull = %v", files, err)
		}
	}
}
