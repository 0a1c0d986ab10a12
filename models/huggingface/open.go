package huggingface

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lutra-lm/lutra/models/disk"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/safetensors"
)

// ErrUnsupported says that a directory may be a model, but of a kind that is not read.
var ErrUnsupported = errors.New("unsupported")

// The files of a directory, besides the weights.
const (
	fileConfig     = "config.json"
	fileGeneration = "generation_config.json"
	fileTokenizer  = "tokenizer.json"
	fileTokens     = "tokenizer_config.json"
	fileTemplate   = "chat_template.jinja"
	fileModelOpt   = "hf_quant_config.json"
)

// The bounds of these files, in bytes. tokenizer.json of 260,000 tokens has 35 MB.
const (
	maxText      = 4 << 20
	maxTokenizer = 128 << 20
)

// Is tells whether a path is a directory that Open may read.
func Is(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, fileConfig))
	return err == nil && info.Mode().IsRegular()
}

// Name returns what the model in a directory is called: as the directory is, or in the hub's
// cache (models--OWNER--REPO/snapshots/COMMIT) as its repository.
func Name(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	above, within := filepath.Split(filepath.Dir(dir))
	if words := strings.Split(filepath.Base(above), "--"); within == "snapshots" && len(words) == 3 && words[0] == "models" {
		return words[2]
	}
	return filepath.Base(dir)
}

// Open opens the model in a directory. Its weights stay in their files, which are open until
// the File is closed.
func Open(dir string) (*gguf.File, error) {
	b := newBuilder(dir)
	f, err := b.build()
	if err != nil {
		for _, s := range b.files {
			err = errors.Join(err, s.Close())
		}
		return nil, fmt.Errorf("huggingface: %w", err)
	}
	return f, nil
}

// builder makes a File: it places the tensors, and has the rest made by the owners that it embeds.
type builder struct {
	*folder
	*output
	keys
	packer
	turn *transposer // of all tensors that are turned
}

// output gathers the tensors of the File.
type output struct {
	tensors []gguf.Tensor
}

// keys makes the metadata of config.json and the files beside it.
type keys struct {
	*folder
	*output
	arch   architecture
	config values
	md     gguf.Metadata
	dense  []string // modules that make a vector of a pooled hidden state, by their folders
}

// packer makes the tensors of weights in fewer bits.
type packer struct {
	*folder
	*output
	weights *safetensors.Model
	quant   quantised
	reorder func(name string, dims []int) func(int) int // of rows: see keys.order
}

// newBuilder returns the builder of a directory.
func newBuilder(dir string) *builder {
	d, out := &folder{dir: dir}, &output{}
	b := &builder{folder: d, output: out, turn: new(transposer), keys: keys{folder: d, output: out, md: gguf.Metadata{}}, packer: packer{folder: d, output: out}}
	b.reorder = b.order
	return b
}

// folder reads the files of a directory. The first failure sticks.
type folder struct {
	dir   string
	files []*disk.Source // all that the File is made of
	err   error
}

func (b *builder) build() (*gguf.File, error) {
	b.config = b.read(fileConfig, true)
	b.architecture()
	if b.err != nil {
		return nil, b.err
	}
	if b.weights, b.err = safetensors.Open(b.dir); b.err != nil {
		return nil, b.explained(b.err)
	}
	b.files = append(b.files, b.weights.Files...)
	b.parameters()
	b.quantisation()
	b.heads()
	b.allTensors()
	b.projection()
	b.tokenizer()
	if b.err != nil {
		return nil, b.err
	}
	return gguf.Assemble(b.md, b.tensors, b.files)
}

// explained tells what lies in a directory without the weights that are read.
func (d *folder) explained(err error) error {
	if _, there := os.Stat(filepath.Join(d.dir, safetensors.Index)); there == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, other := range []string{"*.bin", "*.pth", "*.pt"} {
		if found, _ := filepath.Glob(filepath.Join(d.dir, other)); len(found) > 0 { // an error: a name of odd characters
			return fmt.Errorf("%w: %s is a PyTorch checkpoint: weights are read from %s or the files of %s", ErrUnsupported, filepath.Base(found[0]), safetensors.Single, safetensors.Index)
		}
	}
	return fmt.Errorf("neither %s nor %s is there: %w", safetensors.Single, safetensors.Index, err)
}

// fail makes this the failure, if it is the first.
func (d *folder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// text reads a file whole; false: it is not there, or after a failure.
func (d *folder) text(name string, most int64) (text []byte, ok bool) {
	if d.err != nil {
		return nil, false
	}
	s, err := disk.Open(filepath.Join(d.dir, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if err == nil {
		if s.Size() > most {
			err = fmt.Errorf("%s: %d bytes, at most %d are read", name, s.Size(), most)
		} else {
			text, err = io.ReadAll(io.NewSectionReader(s, 0, s.Size()))
		}
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		d.fail("%w", err)
		return nil, false
	}
	d.files = append(d.files, disk.InMemory(text))
	return text, true
}

// read reads a file that holds a JSON object; one that need not be there is empty.
func (d *folder) read(name string, required bool) values {
	v := values{folder: d, file: name}
	text, ok := d.text(name, maxText)
	switch {
	case !ok && required:
		d.fail("%s is missing", name)
	case ok:
		v.parse(text)
	}
	return v
}
