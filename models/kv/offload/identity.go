package offload

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"os"
	"sync"

	"github.com/lutra-lm/lutra/models/disk"
	"github.com/lutra-lm/lutra/models/kv"
)

// identity is all that the numbers of a cache depend on, once it is known.
type identity struct {
	sources Sources
	begin   context.Context // of whoever finds it out
	giveUp  context.CancelFunc

	ready chan struct{} // closed once model, dir and err are there
	model Hash
	dir   string
	err   error

	mu    sync.Mutex // guards roots
	roots map[*kv.Root]Hash
}

// mostRoots bounds the variants that are remembered.
const mostRoots = 1 << 10

func newIdentity(s Sources) (d *identity) {
	d = &identity{sources: s, ready: make(chan struct{}), roots: map[*kv.Root]Hash{}}
	d.begin, d.giveUp = context.WithCancel(context.Background())
	return d
}

// find hashes all that the numbers of a cache depend on.
func (d *identity) find(folder *Folder, cache *kv.Cache) error {
	digest, err := folder.digest(d.sources.State, func() (string, error) { return d.sources.Digest(d.begin) })
	if err != nil {
		return err
	}
	program, err := programDigest(folder)
	if err != nil {
		return err
	}
	d.sources.SHA256, d.sources.Build = digest, program[:12]
	shape := cache.Shape()
	text, err := json.Marshal([]any{magic, digest, program, d.sources.Options, d.sources.Kernels, cache.Type().String(), cache.BlockLen(), shape})
	if err != nil {
		return err
	}
	d.model = sha256.Sum256(text)
	d.dir = folder.dirOf(d.model)
	return nil
}

// programDigest hashes the program that runs: another one may round otherwise.
func programDigest(folder *Folder) (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	s, err := disk.Open(path)
	if err != nil {
		return "", err
	}
	defer s.Close() //nolint:errcheck // only read
	return folder.digest(s.State(), func() (string, error) { return digestOf(io.NewSectionReader(s, 0, s.Size())) })
}

// rootOf returns the hash that the prefixes of a variant begin with.
func (d *identity) rootOf(ctx context.Context, root *kv.Root) (Hash, error) {
	select {
	case <-d.ready: // also when ctx has ended
	default:
		select {
		case <-d.ready:
		case <-ctx.Done():
			return Hash{}, ctx.Err()
		}
	}
	if root == nil || d.err != nil {
		return d.model, d.err
	}
	d.mu.Lock()
	h, ok := d.roots[root]
	d.mu.Unlock()
	if ok {
		return h, nil
	}
	digest, err := root.Digest(ctx)
	if err != nil {
		return h, err
	}
	h = sha256.Sum256(append(d.model[:], digest...))
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.roots) == mostRoots {
		clear(d.roots)
	}
	d.roots[root] = h
	return h, nil
}
