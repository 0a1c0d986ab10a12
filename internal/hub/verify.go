package hub

import (
	"context"
	"crypto/sha1" //nolint:gosec // git's name of a blob
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
)

// ErrCorrupt says that what came is not what the hub has.
var ErrCorrupt = errors.New("the download is damaged")

// verify holds contents against their ETag: the SHA-256 of LFS files, git's
// hash of others. Other ETags say nothing about the contents.
func verify(ctx context.Context, contents io.Reader, etag string, size int64) error {
	var h hash.Hash
	kind := "SHA-256"
	switch want := strings.ToLower(etag); {
	case sha256Hash.MatchString(want):
		h = sha256.New()
	case commitHash.MatchString(want):
		h, kind = sha1.New(), "git hash"
		fmt.Fprintf(h, "blob %d\x00", size)
	default:
		return nil
	}
	n, err := io.Copy(h, interruptible{ctx, contents})
	switch {
	case err != nil:
		return err
	case n != size:
		return fmt.Errorf("%w: it has %d bytes for %d", ErrCorrupt, n, size)
	}
	if got := hex.EncodeToString(h.Sum(nil)); !strings.EqualFold(got, etag) {
		return fmt.Errorf("%w: its %s is %s, the hub says %s", ErrCorrupt, kind, got, etag)
	}
	return nil
}

// interruptible reads until its context ends.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i interruptible) Read(p []byte) (int, error) {
	if i.ctx.Err() != nil {
		return 0, context.Cause(i.ctx)
	}
	return i.r.Read(p)
}
