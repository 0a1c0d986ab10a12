package models

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/weights"
)

// ErrModel says that a file is a well-formed GGUF but no model this package
// can run. What is wrapped around it names the key or tensor.
var ErrModel = errors.New("models: cannot run this model")

// LoadOptions says what a model runs on, and how.
type LoadOptions struct {
	Pool    *pool.Pool      // threads of the model graph; required
	Backend kernels.Backend // where matrices and, if it is an AttentionBackend, attention go first; nil: the CPU
	Spare   bool            // the CPU takes over from a backend that has failed
	Packing string          // run-time packing of ternary matrices: one of weights.Packings; "": PackingAuto
	Context int             // tokens that a sequence may have at most, no more than the model was made for; 0: as many
	Exact   bool            // widen all weights to float32 and keep float32 activations: slow, for reference with a kv.F32 cache

	// ExpertMemory is how many bytes the experts of mixtures may take. If they need more,
	// they stay in the file, each is packed when it is first wanted, and the least used
	// ones give way: answers are the same, bit for bit. 0: what the other weights leave of
	// WeightMemory, or if that is 0 too, all are in memory.
	ExpertMemory, WeightMemory int64

	// Metadata replaces, key by key, what the file says of itself.
	Metadata gguf.Metadata

	// Progress, if any, is told how many bytes of the tensors have been read, of
	// how many, now and then while the file loads, by the loading goroutine.
	Progress func(done, total int64)

	// Interrupt, if any, is asked now and then while the file loads, by the same
	// goroutine. Its error ends the loading and is wrapped in that of Load.
	Interrupt func() error

	// Routed, if any, sees in each step and layer which experts the rows of the batch
	// chose, [rows][Config.ExpertsUsed], the best first, and with what weights. It must
	// not change or keep them.
	Routed func(layer int, experts []int32, weights []float32)
}

// Bundle is a model with its tokenizer and template: all that it takes to turn
// text into tokens, tokens into logits and tokens into text.
type Bundle struct {
	Name      string // gguf.ModelName of the file, or general.name
	Model     Model
	Tokenizer *tokenizer.Tokenizer
	Template  *template.Template // how conversations are written; nil: see TemplateErr
	Stops     []string           // texts that end an answer in such a conversation, besides the tokens that do
	MaxTurns  int                // latest exchanges of a conversation that the model reads well; 0: all
	// TemplateErr says why the file's template cannot be used. The model still
	// completes plain text.
	TemplateErr error
	// Warnings says what the file lacks or what is odd in it, and what is done instead.
	Warnings []string
	Verifier Verifier // how a reward model wants to be read, as far as the file says
	// Rerank is what a reranker reads, with {query} and {document}; empty, and with a
	// Classifier: the two texts with separators.
	Rerank     string
	Classifier *Classifier // of a reranker that has its scores of hidden states; nil otherwise

	Identity *Identity // nil: the model was not loaded from a file

	file    *gguf.File
	decoder *decoder
}

// Load reads the GGUF file at path.
func Load(path string, opt LoadOptions) (*Bundle, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := LoadFile(f, opt)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	b.Name = gguf.ModelName(path)
	return b, nil
}

// LoadFile builds the model that a file holds. On success the file and the backend
// belong to the bundle: rows of the embedding are read from the one, the other has
// the matrices.
func LoadFile(f *gguf.File, opt LoadOptions) (*Bundle, error) {
	if len(opt.Metadata) > 0 {
		f.Metadata = maps.Clone(f.Metadata)
		maps.Copy(f.Metadata, opt.Metadata)
	}
	m, err := loadModel(f, opt)
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.New(f.Metadata)
	if err == nil {
		err = f.Unchanged()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrModel, err), m.close())
	}
	b := &Bundle{Name: m.Config().Name, Model: m, Tokenizer: t, Verifier: readVerifier(f.Metadata), file: f, decoder: m}
	b.Warnings = append(m.warnings, t.Warnings()...)
	if c := m.Config(); c.Generates() && len(t.EOGs()) == 0 {
		b.Warnings = append(b.Warnings, "no token ends an answer: each goes on to max_tokens or the end of the context")
	}
	arch := m.Config().Arch
	if n, ok := f.Metadata.Int(arch + ".attention.sliding_window"); ok && n > 0 && n < m.Config().Context && architectures[arch].attention.globalEvery == 0 {
		b.Warnings = append(b.Warnings, fmt.Sprintf("the sliding window of %d tokens is not applied: attention sees the whole context", n))
	}
	b.converse(f.Metadata)
	b.Rerank, _ = f.Metadata.String("tokenizer.chat_template.rerank") // as llama.cpp's converter writes it
	if b.Classifier = m.ranks; b.Classifier != nil && b.Rerank == "" && m.enc == nil {
		b.Rerank = qwenRerank
	}
	if m.enc != nil {
		m.enc.separator, _ = t.Separator()
	}
	if n, ok := f.Metadata.Uint("lutra.chat.max_turns"); ok {
		b.MaxTurns = int(min(n, math.MaxInt32))
	}
	b.Identity = newIdentity(b, opt.Metadata)
	return b, nil
}

// Close gives back the weights, the file and the backend. The model must not be used
// afterwards.
func (b *Bundle) Close() error {
	err := errors.Join(b.decoder.close(), b.file.Close())
	if d := b.Backend(); d != nil {
		err = errors.Join(err, d.Close())
	}
	return err
}

// Backend is where the matrices are, nil for the CPU.
func (b *Bundle) Backend() kernels.Backend {
	if b.decoder == nil {
		return nil
	}
	return b.decoder.exec.device.backend
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
func loadModel(file *gguf.File, opt LoadOptions) (*decoder, error) {
	name, ok := file.Metadata.String("general.architecture")
	if !ok {
		return nil, fmt.Errorf("%w: general.architecture is missing", ErrModel)
	}
	arch, ok := architectures[name]
	if !ok {
		return nil, fmt.Errorf("%w: architecture %q is not supported (have %s)", ErrModel, name, strings.Join(architectureNames(), ", "))
	}
	if opt.Pool == nil {
		return nil, errors.New("models: LoadOptions without a Pool")
	}
	l := &loader{file: file, opt: opt, archName: name, arch: arch, Loader: weights.NewLoader(file, weights.Options{
		Pool: opt.Pool, Backend: opt.Backend, Spare: opt.Spare, Packing: opt.Packing, Exact: opt.Exact, Scales: arch.matrixFactors, Progress: opt.Progress, Interrupt: opt.Interrupt,
	})}
	m := newDecoder(l)
	l.finish()
	if err := l.Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrModel, err), l.Memory().Free())
	}
	l.warnOfZeros()
	m.warnings = l.warnings
	return m, nil
}
