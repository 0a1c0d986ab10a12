package models

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/models/gguf"
)

// Identity tells what a model's results depend on, beside its input. It may be used by
// many callers at once, until the model is closed.
type Identity struct {
	file     *gguf.File
	device   func() kernels.Backend // nil: the CPU
	metadata gguf.Metadata          // given in place of the file's
	packings string                 // as Config has them

	mu      sync.Mutex // guards what follows
	digest  string
	reading *reading // nil: nobody reads the file
}

// reading is one pass over a file for all who wait for its digest.
type reading struct {
	waiting int // callers; the identity's mutex guards it
	cancel  context.CancelFunc
	done    chan struct{} // closed when digest and err are there
	digest  string
	err     error
}

// ErrNoIdentity says that a model was made without a file.
var ErrNoIdentity = errors.New("models: the model has no file")

func newIdentity(file *gguf.File, device func() kernels.Backend, given gguf.Metadata, packings string) *Identity {
	return &Identity{file: file, device: device, metadata: given, packings: packings}
}

// Digest returns the gguf.File.Digest, computed when it is first asked for: reading a file takes
// seconds for gigabytes. All who ask meanwhile wait for the same reading, which goes on until the
// last of them has left. turn is gguf.File.Digest's, of the first who asks. It gets the
// reading's context; whoever asks has no turn while waiting.
func (id *Identity) Digest(ctx context.Context, turn func(context.Context) (end func(), err error)) (string, error) {
	if id == nil {
		return "", ErrNoIdentity
	}
	r, digest := id.wait(turn)
	if r == nil {
		return digest, nil
	}
	select {
	case <-r.done:
		return r.digest, r.err
	case <-ctx.Done():
		id.giveUp(r)
		return "", context.Cause(ctx)
	}
}

// wait returns the reading that a caller waits for, which it begins if there is none; nil: the
// digest is there.
func (id *Identity) wait(turn func(context.Context) (func(), error)) (r *reading, digest string) {
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.digest != "" {
		return nil, id.digest
	}
	if id.reading == nil {
		ctx, cancel := context.WithCancel(context.Background())
		id.reading = &reading{cancel: cancel, done: make(chan struct{})}
		go id.read(ctx, id.reading, turn)
	}
	id.reading.waiting++
	return id.reading, ""
}

// read reads the file.
func (id *Identity) read(ctx context.Context, r *reading, turn func(context.Context) (func(), error)) {
	defer close(r.done)
	defer r.cancel()
	r.err = parallel.Try(func() (err error) {
		r.digest, err = id.file.Digest(func() (func(), error) { return turn(ctx) })
		return err
	})
	id.mu.Lock()
	defer id.mu.Unlock()
	if r.err == nil {
		id.digest = r.digest
	}
	if id.reading == r {
		id.reading = nil
	}
}

// giveUp takes a caller from those who wait. The last ends the reading, and waits for its end: the
// file may be closed then.
func (id *Identity) giveUp(r *reading) {
	id.mu.Lock()
	r.waiting--
	last := r.waiting == 0
	if last && id.reading == r {
		id.reading = nil
	}
	id.mu.Unlock()
	if last {
		r.cancel()
		<-r.done
	}
}

// State returns the gguf.File.State; empty without a file.
func (id *Identity) State() string {
	if id == nil {
		return ""
	}
	return id.file.State()
}

// Sketch returns a short hash of the file, by gguf.File.Sketch, and of Metadata; empty without
// a file.
func (id *Identity) Sketch() (string, error) {
	if id == nil {
		return "", nil
	}
	s, err := id.file.Sketch()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(s + id.Metadata()))
	return hex.EncodeToString(sum[:8]), nil
}

// Metadata returns a hash of what the configuration gives in place of the file's metadata;
// empty: nothing.
func (id *Identity) Metadata() string {
	if id == nil || len(id.metadata) == 0 {
		return ""
	}
	text, err := json.Marshal(id.metadata) // with sorted keys
	if err != nil {
		panic(err) // numbers, texts and booleans
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Packings returns what the layers' matrices run as, such as "I2". I1 and I2 have the same
// bits, and one name.
func (id *Identity) Packings() string {
	if id == nil {
		return ""
	}
	return strings.ReplaceAll(id.packings, matrix.I1.String(), matrix.I2.String())
}

// Kernels names the family of kernels that compute the model, as cpu.Family does, with
// the device if there is one beside the CPU.
func (id *Identity) Kernels() string {
	if id == nil {
		return cpu.Family()
	}
	name := cpu.Family()
	if d := id.device(); d != nil && d.Err() == nil {
		name += "+" + d.Name()
	}
	return name
}
