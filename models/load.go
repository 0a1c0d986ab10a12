package models

import (
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/huggingface"
	"github.com/lutra-lm/lutra/models/load"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/weights"
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

// Bundle is a model with its tokenizer and template: all that it takes to turn
// text into tokens, tokens into logits and tokens into text.
type Bundle struct {
	Name      string // NameOf the file, or general.name
	Model     Model
	Predictor Model // predicts one token further ahead, of hidden states too; nil: the file has no such layer
	Tokenizer *tokenizer.Tokenizer
	Template  *template.Template // how conversations are written; nil: see TemplateErr
	Stops     []string           // texts that end an answer in such a conversation, besides the tokens that do
	MaxTurns  int                // latest exchanges of a conversation that the model reads well; 0: all
	// TemplateErr says why the file's template cannot be used. The model still
	// completes plain text.
	TemplateErr error
	// Warnings says what the file lacks or what is odd in it, and what is done instead.
	Warnings []string
	// Sampling has the keys after gguf.SamplingPrefix: how the author wants answers to be sampled.
	Sampling gguf.Metadata
	Verifier Verifier // how a reward model wants to be read, as far as the file says
	// Rerank is a reranker's prompt, with {query} and {document}; empty, and with a Classifier: the two texts
	// with separators.
	Rerank     string
	Classifier *Classifier // of a reranker that has its scores of hidden states; nil otherwise
	Projection Projection  // of a model that embeds

	Identity *Identity // nil: the model was not loaded from a file

	file *gguf.File
	exec *executor
}

// Load reads the model at path, as Open opens it.
func Load(path string, opt LoadOptions) (*Bundle, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	b, err := LoadFile(f, opt)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	b.Name = NameOf(path)
	return b, nil
}

// LoadFile builds the model that a file holds. On success the file and the backend
// belong to the bundle: rows of the embedding are read from the one, the other has
// the matrices.
func LoadFile(f *gguf.File, opt LoadOptions) (b *Bundle, err error) {
	m, err := loadModel(f, opt)
	if err != nil {
		return nil, err
	}
	err = parallel.Try(func() (err error) {
		if b, err = newBundle(f, m, opt.Metadata); err == nil {
			err = f.Unchanged()
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrModel, err), m.close())
	}
	return b, nil
}

// newBundle makes what the metadata of a file says of its model.
func newBundle(f *gguf.File, m *executor, own gguf.Metadata) (*Bundle, error) {
	t, err := tokenizer.New(f.Metadata)
	if err != nil {
		return nil, err
	}
	b := &Bundle{Name: m.Config().Name, Model: m, Tokenizer: t, Verifier: readVerifier(f.Metadata), file: f, exec: m}
	b.Warnings = append(m.graph.warnings, t.Warnings()...)
	if m.ahead != nil {
		b.Predictor = m.ahead
	}
	if c := m.Config(); c.Generates() && len(t.EOGs()) == 0 {
		b.Warnings = append(b.Warnings, "no token ends an answer: each goes on to max_tokens or the end of the context")
	}
	arch := m.Config().Arch
	if n, ok := f.Metadata.Int(arch + ".attention.sliding_window"); ok && n > 0 && n < m.Config().Context && architectures[arch].windows.globalEvery == 0 {
		b.Warnings = append(b.Warnings, fmt.Sprintf("the sliding window of %d tokens is not applied: attention sees the whole context", n))
	}
	b.converse(f.Metadata)
	if c := m.Config(); c.Generates() {
		b.Sampling = f.Metadata.Under(gguf.SamplingPrefix)
	}
	b.Rerank, _ = f.Metadata.String("tokenizer.chat_template.rerank") // as llama.cpp's converter writes it
	if b.Classifier = m.graph.ranks; b.Classifier != nil && b.Rerank == "" && m.graph.enc == nil {
		b.Rerank = qwenRerank
	}
	b.Projection = m.graph.pooled
	if m.graph.enc != nil {
		m.graph.enc.separator, _ = t.Separator()
	}
	if n, ok := f.Metadata.Uint("lutra.chat.max_turns"); ok {
		b.MaxTurns = int(min(n, math.MaxInt32))
	}
	b.Identity = newIdentity(f, b.Backend, own, m.Config().Packings)
	return b, nil
}

// Task is the purpose of a model.
type Task uint8

// The tasks.
const (
	TaskGenerate Task = iota // text
	TaskEmbed                // vectors of texts, which rank documents too
	TaskRank                 // scores of documents
	TaskReward               // scores of answers, by a format that the file need not name
)

// Task tells what b is made for.
func (b *Bundle) Task() Task {
	switch c := b.Model.Config(); {
	case b.Classifier != nil:
		return TaskRank
	case c.Pooling != PoolingNone:
		return TaskEmbed
	case c.Generates():
		return TaskGenerate
	case b.Rerank != "":
		return TaskRank
	}
	return TaskReward
}

// Close gives back the weights, the file and the backend. The model must not be used
// afterwards.
func (b *Bundle) Close() error {
	err := errors.Join(b.exec.close(), b.file.Close())
	if d := b.Backend(); d != nil {
		err = errors.Join(err, d.Close())
	}
	return err
}

// Backend returns where the matrices are, nil for the CPU.
func (b *Bundle) Backend() kernels.Backend {
	if b.exec == nil {
		return nil
	}
	return b.exec.device.backend
}

// converse chooses how the model's conversations are written.
func (b *Bundle) converse(md gguf.Metadata) {
	var c template.Choice
	if source, ok := md.String("tokenizer.chat_template"); ok {
		c = template.FromFile(source)
	} else {
		c = template.Default(b.isToken, b.addsBOS())
	}
	b.Template, b.TemplateErr, b.Stops = c.Template, c.Err, c.Stops
	if c.Warning != "" && b.Model.Config().Pooling == PoolingNone {
		b.Warnings = append(b.Warnings, c.Warning)
	}
}

// isToken tells whether text is one token.
func (b *Bundle) isToken(text string) bool {
	ids := b.Tokenizer.Encode(nil, text, tokenizer.Options{ParseSpecial: true})
	return len(ids) == 1 && b.Tokenizer.Token(ids[0]) == text
}

// addsBOS tells whether the model's prompts begin with its BOS token.
func (b *Bundle) addsBOS() bool {
	begin := b.Tokenizer.Encode(nil, "", tokenizer.Options{AddSpecial: true})
	bos, ok := b.Tokenizer.BOS()
	return ok && len(begin) > 0 && begin[0] == bos
}

// loadModel builds the model alone. The file must stay open while it is used.
func loadModel(file *gguf.File, opt LoadOptions) (*executor, error) {
	if opt.Pool == nil {
		return nil, errors.New("models: LoadOptions without a Pool")
	}
	h, arch, err := newHeader(file, opt.Metadata)
	if err != nil {
		return nil, err
	}
	t := newTensors(h, arch, &opt)
	var graph *decoder
	err = parallel.Try(func() (err error) {
		graph, err = buildGraph(t, readSpec(h, arch, opt.Context), &opt)
		return err
	})
	if err = panicked(err, "tensor "+t.Latest()); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrModel, err), t.Memory().Free())
	}
	e := newExecutor(&opt, graph, t.Local())
	if graph.ahead != nil {
		graph.ahead.spec.Footprint = graph.spec.Footprint
		e.ahead = newExecutor(&opt, graph.ahead, t.Local())
	}
	return e, nil
}

// newTensors returns what finds the tensors of a file.
func newTensors(h *load.Header, arch architecture, opt *LoadOptions) *tensors {
	t := &tensors{backend: opt.Backend, Tensors: load.NewTensors(h.File, h.Report, load.Options{
		Form: weights.Form{Packing: opt.Packing, Exact: opt.Exact}, Pool: opt.Pool, Backend: opt.Backend, Spare: opt.Spare,
		Scales: arch.matrixFactors, Progress: opt.Progress, Interrupt: opt.Interrupt, Observe: opt.Observe,
	})}
	t.accelerator, _ = opt.Backend.(Accelerator)
	return t
}

// buildGraph builds the graph of a model from all of its tensors. It fails on one that nobody asked for: a bias
// or scale passed over in silence would change every answer.
func buildGraph(t *tensors, m *spec, opt *LoadOptions) (*decoder, error) {
	graph := newDecoder(t, m, opt)
	for _, name := range t.Finish() {
		t.Fail("tensor %s has no meaning for architecture %s", name, m.Arch)
	}
	if err := t.Err(); err != nil {
		return nil, err
	}
	switch names := t.Zeros(); {
	case len(names) == 1:
		t.Warn("tensor %s holds zeros alone: what it multiplies is lost to the answers", names[0])
	case len(names) > 1:
		t.Warn("tensor %s and %d others hold zeros alone: what they multiply is lost to the answers", names[0], len(names)-1)
	}
	graph.warnings = t.Warnings()
	graph.offer(t.accelerator, opt)
	return graph, nil
}

// ExpertStats counts the experts that steps needed, of a model whose experts are not all in memory.
type ExpertStats struct {
	Hits, Misses int64 // experts that a layer of a step found in memory, or had read
	Read         int64 // bytes of the file
	Held, Room   int64 // experts in memory, and how many fit
	Experts      int64 // of all layers
	Bytes        int64 // of the memory they fit into
}

// Experts returns what has become of a model's experts; ok is false where they are all in
// memory. Any goroutine may call it.
func (b *Bundle) Experts() (st ExpertStats, ok bool) {
	if b.exec == nil || b.exec.graph.store == nil {
		return st, false
	}
	s := b.exec.graph.store
	return ExpertStats{
		Hits: s.hits.Load(), Misses: s.misses.Load(), Read: s.read.Load(), Held: s.held.Load(), Room: int64(len(s.slots)),
		Experts: int64(s.from.count * s.mixtures), Bytes: int64(len(s.slots) * len(s.slots[0])),
	}, true
}
