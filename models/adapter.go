package models

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/huggingface"
	"github.com/lutra-lm/lutra/models/load"
	"github.com/lutra-lm/lutra/models/weights"
)

// ErrAdapter says that a file is no adapter of a model. What is wrapped around it names the key
// or tensor.
var ErrAdapter = errors.New("models: cannot adapt this model")

// Adapter is a LoRA of a loaded model (Hu et al., "LoRA: Low-Rank Adaptation of Large Language
// Models", 2021). For some of the model's matrices W it has two of low rank that add to the products:
//
//	y = W·x + scale · alpha/rank · B·(A·x)
//
// Any number of sequences may use it at once.
type Adapter struct {
	ID       int32 // from 1, in the order in which the model's were loaded
	Name     string
	Path     string
	Scale    float32   // that Name alone stands for: 1 unless the owner changes it before its use
	Rank     int       // the largest
	Bytes    int64     // in memory
	Identity *Identity // what its file is
	Sketch   string    // of the file, as Identity has it

	graph  *decoder
	on     map[*adapterSite][]*lowRank // one a matrix of the target, nil: nothing; nil: of none
	file   *gguf.File
	memory *cpu.Arena
}

// lowRank is an adapter's matrices of one target.
type lowRank struct {
	down load.Stacked // all A that read the target's rows, [ranks][cols]
	up   []upProduct
}

// upProduct adds to some of a target's outputs.
type upProduct struct {
	b        load.Stacked // [n][rank]
	from     int          // of down's outputs, the first that it reads
	rank     int
	to, n    int // of the target's outputs
	strength float32
}

// MaxRank bounds the rank of an adapter's matrices.
const MaxRank = 512

// The keys of adapters, as llama.cpp has them, and one for PEFT's rank-stabilised LoRA.
const (
	keyType        = "general.type"
	keyAdapterType = "adapter.type"
	keyAlpha       = "adapter.lora.alpha"
	keyInvocation  = "adapter.alora.invocation_tokens"
	keyRootRank    = huggingface.KeyRootRank // alpha is divided by the root of the rank
)

// What the names of an adapter's tensors end with.
const (
	downName = ".lora_a"
	upName   = ".lora_b"
)

// LoadAdapter reads an adapter of b: a GGUF file as llama.cpp converts them, or a directory as
// PEFT saves it. interrupt, unless it is nil, is asked now and then; its error ends the
// loading. The caller closes the adapter. Errors: ErrAdapter, and of reading.
func (b *Bundle) LoadAdapter(name, path string, interrupt func() error) (*Adapter, error) {
	if b.exec == nil || b.Backend() != nil {
		return nil, fmt.Errorf("%s: %w: only models on the CPU take adapters", path, ErrAdapter)
	}
	file, err := openAdapter(path, b.file)
	if err != nil {
		return nil, panicked(err, path)
	}
	a, err := loadAdapter(file, b.exec, interrupt)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w: %w", path, ErrAdapter, err), file.Close())
	}
	a.ID, a.Name, a.Path = b.exec.adapters.Add(1), name, path
	return a, nil
}

// openAdapter opens what LoadAdapter reads, for a model of that file.
func openAdapter(path string, model *gguf.File) (f *gguf.File, err error) {
	err = parallel.Try(func() (err error) {
		if isDirectory(path) {
			f, err = huggingface.OpenAdapter(path, model)
		} else {
			f, err = gguf.Open(path)
		}
		return err
	})
	return f, err
}

// loadAdapter reads the adapter of a model that a file holds.
func loadAdapter(file *gguf.File, model *executor, interrupt func() error) (*Adapter, error) {
	graph := model.graph
	strength, err := adapterStrength(file.Metadata, graph.spec.Arch)
	if err != nil {
		return nil, err
	}
	exact := false
	for i := range file.Tensors {
		switch t := &file.Tensors[i]; t.Type {
		case gguf.F32, gguf.F16, gguf.BF16:
		case gguf.Q8_0:
			exact = true // activations stay as they are
		default:
			return nil, fmt.Errorf("tensor %s has storage type %v, want F32, F16, BF16 or Q8_0", t.Name, t.Type)
		}
	}
	form := weights.Form{Packing: weights.PackingStored, Exact: exact}
	l := &adapterLoader{Tensors: load.NewTensors(file, new(load.Report), load.Options{Form: form, Pool: model.pool, Interrupt: interrupt}), strength: strength, common: map[piece]load.Stacked{}}
	a := &Adapter{Scale: 1, graph: graph, on: map[*adapterSite][]*lowRank{}, file: file, memory: l.Memory()}
	err = parallel.Try(func() error {
		for _, t := range graph.targets {
			if low := l.lowRanks(t); low != nil {
				a.on[t] = low
			}
		}
		for _, name := range l.Finish() {
			l.refuse(name, graph.file)
		}
		if len(a.on) == 0 {
			l.Fail("it has no tensors")
		}
		return l.Err()
	})
	if err = panicked(err, "tensor "+l.Latest()); err != nil {
		return nil, errors.Join(err, l.Memory().Free())
	}
	a.Rank, a.Bytes = l.rank, l.Bytes
	a.Identity = newIdentity(file, nil, nil, "")
	if a.Sketch, err = a.Identity.Sketch(); err != nil {
		return nil, errors.Join(err, l.Memory().Free())
	}
	return a, nil
}

// adapterStrength checks the metadata of an adapter against the model's architecture arch. It returns the
// factor of products by their rank and by the tensor that they add to.
func adapterStrength(md gguf.Metadata, arch string) (func(tensor string, rank int) float32, error) {
	for _, want := range [][2]string{{keyType, "adapter"}, {keyAdapterType, "lora"}, {"general.architecture", arch}} {
		if got, _ := md.String(want[0]); got != want[1] {
			return nil, fmt.Errorf("%s is %.64q, want %q", want[0], got, want[1])
		}
	}
	if md[keyInvocation] != nil {
		return nil, fmt.Errorf("%s: adapters that tokens invoke (aLoRA) are not supported", keyInvocation)
	}
	alpha, ok := md.Float(keyAlpha)
	if !ok || alpha-alpha != 0 || math.Abs(alpha) > math.MaxFloat32/MaxRank {
		return nil, fmt.Errorf("%s is %v, want a finite number", keyAlpha, md[keyAlpha])
	}
	root, _ := md.Bool(keyRootRank)
	return func(tensor string, rank int) float32 {
		alpha := alpha
		if own, ok := md.Float(huggingface.KeyAlphaOf + tensor); ok && math.Abs(own) <= math.MaxFloat32/MaxRank {
			alpha = own
		}
		switch {
		case alpha == 0: // as llama.cpp has it
			return 1
		case root:
			return float32(alpha / math.Sqrt(float64(rank)))
		}
		return float32(alpha / float64(rank))
	}, nil
}

// Close gives back the memory and the file. No sequence may use the adapter afterwards.
func (a *Adapter) Close() error { return errors.Join(a.memory.Free(), a.file.Close()) }

// checkScales reports adapters that are not the graph's, twice there, or at a scale that is no
// finite number.
func checkScales(graph *decoder, uses []Use) error {
	for i, u := range uses {
		switch {
		case u.Adapter.graph != graph:
			return fmt.Errorf("%w: %q is an adapter of another", ErrAdapter, u.Adapter.Name)
		case u.Scale-u.Scale != 0:
			return fmt.Errorf("%w: %q has scale %v", ErrAdapter, u.Adapter.Name, u.Scale)
		case slices.ContainsFunc(uses[:i], func(v Use) bool { return v.Adapter == u.Adapter }):
			return fmt.Errorf("%w: %q is there twice", ErrAdapter, u.Adapter.Name)
		}
	}
	return nil
}

// adapterSite is a product that adapters may add to: matrices that read the same rows, whose
// outputs stand side by side. Of experts and heads it is all of a layer's, which read rows of their
// own each.
type adapterSite struct {
	cols     int         // numbers of a row that they read
	width    int         // of what they make of it
	rows     []load.Rows // of the first
	matrices int         // that a tensor is made of, one after the other: 1, or the experts or heads
	alone    []string    // the name in adapters for the tensors of number %d, besides; nil: none
}

// among returns how many matrices a tensor has one of: one, if it is alone.
func (t *adapterSite) among(alone bool) int {
	if alone {
		return 1
	}
	return t.matrices
}

// outputTensor is the name of the matrix that makes logits, though a file may have the
// embedding alone.
const outputTensor = "output.weight"
