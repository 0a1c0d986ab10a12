package models

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"

	"golang.org/x/sync/semaphore"

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

	one    *semaphore.Weighted // computes digest
	digest string
}

// ErrNoIdentity says that a model was made without a file.
var ErrNoIdentity = errors.New("models: the model has no file")

func newIdentity(file *gguf.File, device func() kernels.Backend, given gguf.Metadata, packings string) *Identity {
	return &Identity{file: file, device: device, metadata: given, packings: packings, one: semaphore.NewWeighted(1)}
}

// Digest returns the gguf.File.Digest, computed when it is first asked for: reading a file takes
// seconds for gigabytes. Others wait for the one that computes; if ctx ends its work, the
// next begins again. pause is called now and then, and gets the turn of others.
func (id *Identity) Digest(ctx context.Context, pause func(context.Context) error) (string, error) {
	if id == nil {
		return "", ErrNoIdentity
	}
	if err := id.one.Acquire(ctx, 1); err != nil {
		return "", context.Cause(ctx)
	}
	defer id.one.Release(1)
	if id.digest != "" {
		return id.digest, nil
	}
	var err error
	id.digest, err = id.file.Digest(func() error { return pause(ctx) })
	return id.digest, err
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
