package config

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"github.com/lutra-lm/lutra/models/embedded"
	splits "github.com/lutra-lm/lutra/models/gguf/parts"
)

// blobName matches the names of files in the hub's cache: their SHA-256.
var blobName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Digest returns the SHA-256 of the model's file, all its parts one after the other, in
// hexadecimal.
func (m Model) Digest(ctx context.Context) (string, error) {
	h := sha256.New()
	if m.Embedded != "" {
		data, err := embedded.Data(m.Embedded)
		h.Write(data)
		return hex.EncodeToString(h.Sum(nil)), err
	}
	files := []string{m.Path}
	if n, split := splits.Parse(m.Path); split {
		files = n.All()
	} else if to, err := os.Readlink(m.Path); err == nil && blobName.MatchString(filepath.Base(to)) {
		return filepath.Base(to), nil // it was held against this when it was downloaded
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(h, untilDone{ctx, f})
		f.Close()
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// untilDone reads until a context ends.
type untilDone struct {
	ctx context.Context
	io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.Reader.Read(p)
}
