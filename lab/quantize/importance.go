package quantize

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
)

// The names in files of importances, which llama-imatrix writes and llama-quantize reads.
const (
	sumsOf   = ".in_sum2" // [columns][matrices] sums of squared inputs
	countsOf = ".counts"  // [1][matrices] rows that were summed

	keyDatasets   = "imatrix.datasets"
	keyChunks     = "imatrix.chunk_count"
	keyChunkSize  = "imatrix.chunk_size"
	keyUsedFile   = "quantize.imatrix.file"
	keyUsedSet    = "quantize.imatrix.dataset"
	keyUsedCount  = "quantize.imatrix.entries_count"
	keyUsedChunks = "quantize.imatrix.chunks_count"
)

// Importance is an importance matrix: for each column of a weight matrix the mean square of
// what it is multiplied by, which errors of that column's weights are weighed by.
type Importance struct {
	path string
	file *gguf.File
}

// OpenImportance opens an importance matrix in the GGUF form of llama.cpp. Its numbers stay
// in the file until Close. Errors name what is missing, or wrong.
func OpenImportance(path string) (*Importance, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	if err := checkImportance(f); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return &Importance{path, f}, nil
}

func checkImportance(f *gguf.File) error {
	if kind, _ := f.Metadata.String("general.type"); kind != "imatrix" {
		return fmt.Errorf("key %q: %w: it is %q, and %q of an importance matrix", "general.type", gguf.ErrFormat, kind, "imatrix")
	}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		name, sums := strings.CutSuffix(t.Name, sumsOf)
		if t.Type != gguf.F32 {
			return fmt.Errorf("tensor %q: %w: it is %v, want F32", t.Name, gguf.ErrFormat, t.Type)
		}
		if !sums {
			continue
		}
		counts := f.Tensor(name + countsOf)
		if counts == nil || t.Len()%counts.Len() != 0 {
			return fmt.Errorf("tensor %q: %w: %s does not belong to it", t.Name, gguf.ErrFormat, name+countsOf)
		}
	}
	return nil
}

// Close closes the file.
func (m *Importance) Close() error { return m.file.Close() }

// metadata describes m in a file that was made with it.
func (m *Importance) metadata() gguf.Metadata {
	entries := uint32(0)
	for i := range m.file.Tensors {
		if strings.HasSuffix(m.file.Tensors[i].Name, sumsOf) {
			entries++
		}
	}
	about := gguf.Metadata{keyUsedFile: filepath.Base(m.path), keyUsedCount: entries}
	if sets, ok := m.file.Metadata.Strings(keyDatasets); ok && len(sets) > 0 {
		about[keyUsedSet] = sets[0]
	}
	if n, ok := m.file.Metadata.Uint(keyChunks); ok && n <= math.MaxUint32 {
		about[keyUsedChunks] = uint32(n)
	}
	return about
}

// has reports whether there are importances for t. An error says that they are of another
// model.
func (m *Importance) has(t *gguf.Tensor) (bool, error) {
	sums := m.file.Tensor(t.Name + sumsOf)
	if sums == nil {
		return false, nil
	}
	if want := t.Cols() * matrices(t); sums.Len() != want {
		if categoryOf(t.Name) == tokenEmbedding { // its rows are looked up, not multiplied
			return false, nil
		}
		return false, fmt.Errorf("%w: %s has %d importances for it, want %d", gguf.ErrFormat, m.path, sums.Len(), want)
	}
	return true, nil
}

// matrices returns the number of matrices in t, which are experts'.
func matrices(t *gguf.Tensor) int {
	n := 1
	for _, d := range t.Dims[min(2, len(t.Dims)):] {
		n *= d
	}
	return n
}

// of returns the importances of t's columns, [matrices][columns]: ones where no row was
// summed, as of an expert that no token chose.
func (m *Importance) of(t *gguf.Tensor) ([]float32, error) {
	sums, counts := m.file.Tensor(t.Name+sumsOf), m.file.Tensor(t.Name+countsOf)
	v, n := make([]float32, sums.Len()), make([]float32, counts.Len())
	if err := errors.Join(sums.Dequantize(v, 0), counts.Dequantize(n, 0)); err != nil {
		return nil, err
	}
	each := len(v) / len(n)
	for i := range v {
		count := float32(math.Round(float64(n[i/each])))
		if count > 0 {
			v[i] /= count
		} else {
			v[i] = 1
		}
		if !(v[i] >= 0) || math.IsInf(float64(v[i]), 1) {
			return nil, fmt.Errorf("%w: %s has the importance %v for column %d", ErrValue, m.path, v[i], i%t.Cols())
		}
	}
	return v, nil
}

// Collector sums squared inputs of weight matrices. It is not safe for concurrent use.
type Collector struct{ tensors map[string]*collected }

type collected struct {
	sums   []float64 // [matrices][columns]
	counts []float64 // [matrices]
}

// Add counts one row that matrix number i, of n in a tensor, was multiplied by.
func (c *Collector) Add(tensor string, i, n int, row []float32) {
	t := c.tensors[tensor]
	if t == nil {
		if c.tensors == nil {
			c.tensors = map[string]*collected{}
		}
		t = &collected{make([]float64, n*len(row)), make([]float64, n)}
		c.tensors[tensor] = t
	}
	t.counts[i]++
	for k, x := range row {
		t.sums[i*len(row)+k] += float64(x) * float64(x)
	}
}

// Tensors returns for how many tensors rows were added, and for how many of their matrices
// there was none.
func (c *Collector) Tensors() (tensors, unseen int) {
	for _, t := range c.tensors {
		for _, n := range t.counts {
			if n == 0 {
				unseen++
			}
		}
	}
	return len(c.tensors), unseen
}

// File returns the sums as a file that OpenImportance and llama-quantize read: of a data set
// of that name, in chunks of size tokens.
func (c *Collector) File(dataset string, chunks, size int) (gguf.Metadata, []gguf.Tensor, error) {
	meta := gguf.Metadata{
		"general.type": "imatrix", keyDatasets: []string{dataset}, keyChunks: uint32(chunks), keyChunkSize: uint32(size),
	}
	var tensors []gguf.Tensor
	for _, name := range slices.Sorted(maps.Keys(c.tensors)) {
		t := c.tensors[name]
		n := len(t.counts)
		for _, part := range []struct {
			suffix string
			v      []float64
		}{{sumsOf, t.sums}, {countsOf, t.counts}} {
			raw := make([]byte, 4*len(part.v))
			narrow := make([]float32, len(part.v))
			for i, x := range part.v {
				narrow[i] = float32(x)
			}
			if err := Encode(gguf.F32, raw, narrow, nil); err != nil {
				return nil, nil, fmt.Errorf("tensor %q: %w", name+part.suffix, err)
			}
			tensors = append(tensors, gguf.Tensor{Name: name + part.suffix, Type: gguf.F32, Dims: []int{len(part.v) / n, n}, Data: raw})
		}
	}
	return meta, tensors, nil
}
