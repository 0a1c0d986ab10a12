package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// The kinds of errors of Find and Pull, besides ErrChoice, ErrCorrupt and
// ErrUnreachable.
var (
	ErrAbsent  = errors.New("is not on this machine")
	ErrOffline = errors.New("offline: nothing is downloaded")
	ErrRoom    = errors.New("not enough room")
)

// Hub is a hub with its cache. Its methods may be called at once, and by several
// processes.
type Hub struct {
	o      Options
	c      *client
	ollama *client                         // of Ollama's registry
	free   func(dir string) (int64, error) // bytes that can be written to a folder's disk
	part   int64
}

// New does not ask the hub anything.
func New(o Options) (*Hub, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	other := o
	other.Endpoint, other.Token = cmp.Or(o.Registry, defaultRegistry), ""
	ollama, err := newClient(other)
	if err != nil {
		return nil, err
	}
	return &Hub{o: o, c: c, ollama: ollama, free: freeSpace, part: partSize}, nil
}

// Offline tells whether Pull is refused.
func (h *Hub) Offline() bool { return h.o.Offline }

// Cache returns the folder of the cache.
func (h *Hub) Cache() string { return h.o.Cache }

// Find returns the path of a model in the cache, or ErrAbsent. The path is its first file's, if it has
// several parts, which are all there, or the directory of a checkpoint. The hub is not asked, so newer
// versions are not seen.
func (h *Hub) Find(ref Ref) (string, error) {
	d := h.folder(ref)
	commits, err := d.snapshots()
	if err != nil {
		return "", err
	}
	for _, commit := range commits {
		files, err := d.models(commit)
		if err != nil {
			return "", err
		}
		if wantsCheckpoint(ref, files) {
			if checkpoint(files) != nil {
				return d.modelPath(commit, configFile), nil
			}
			continue
		}
		file, err := choose(ref, files)
		if err == nil {
			_, err = together(ref, file, files)
		}
		if err == nil {
			return d.pointer(commit, file), nil
		}
		if errors.Is(err, errSeveral) && h.o.Offline {
			return "", err
		}
	}
	return "", fmt.Errorf("%s %w", ref, ErrAbsent)
}

// Pull brings the newest version of a model into the cache and returns the path of
// its file, of several parts the first, or of the directory of a checkpoint. What is there already is not fetched again.
func (h *Hub) Pull(ctx context.Context, ref Ref, tell Progress) (string, error) {
	if h.o.Offline {
		return "", ErrOffline
	}
	model, err := h.client(ref).find(ctx, ref)
	if err != nil {
		return "", err
	}
	d := h.folder(ref)
	if _, err := d.main(); err != nil { // before all the bytes come
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(d.blob(model[0].etag)), 0o777); err != nil {
		return "", err
	}
	if err := h.checkRoomForAll(d, model); err != nil {
		return "", err
	}
	sum := tell.ofAll(model)
	for i := range model {
		if err := h.bring(ctx, d, &model[i], sum(i)); err != nil {
			return "", err
		}
	}
	return d.modelPath(model[0].commit, model[0].ref.File), d.setMain(model[0].commit)
}

// client returns the client of the server that has a model.
func (h *Hub) client(ref Ref) *client {
	if ref.Tag != "" {
		return h.ollama
	}
	return h.c
}

// bring makes sure that a file is in its snapshot.
func (h *Hub) bring(ctx context.Context, d repoFolder, r *remote, tell Progress) error {
	unlock, err := h.lock(ctx, d, r.etag)
	if err != nil {
		return err
	}
	defer unlock()
	pointer, blob := d.pointer(r.commit, r.ref.File), d.blob(r.etag)
	if isFile(pointer, r.size) {
		return nil
	}
	isNew := !isFile(blob, r.size)
	if isNew {
		if err := h.download(ctx, d, r, tell); err != nil {
			return err
		}
	}
	return h.link(blob, pointer, isNew)
}

// isFile tells whether path is a file, or a link to one, of size bytes.
func isFile(path string, size int64) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == size
}

// lock waits until no other process fetches the blob: not even huggingface_hub,
// which locks the same files in the same way.
func (h *Hub) lock(ctx context.Context, d repoFolder, etag string) (unlock func(), err error) {
	const lookEvery = 250 * time.Millisecond
	if err := os.MkdirAll(d.locks, 0o777); err != nil {
		return nil, err
	}
	if err := checkPlain(d.lock(etag)); err != nil {
		return nil, err
	}
	l := flock.New(d.lock(etag))
	free, err := l.TryLock()
	if err == nil && !free {
		if h.o.Waiting != nil {
			h.o.Waiting()
		}
		_, err = l.TryLockContext(ctx, lookEvery)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%s: %w", l.Path(), err)
	}
	return func() { _ = l.Close() }, nil // the system gives it back with the process anyway
}

// download brings a blob. The caller has its lock.
func (h *Hub) download(ctx context.Context, d repoFolder, r *remote, tell Progress) error {
	blob := d.blob(r.etag)
	part := blob + incomplete
	f, fresh, err := openPartial(blob)
	if err != nil {
		return err
	}
	defer f.Close()
	t := &transfer{c: h.client(r.ref), r: r, f: f, tell: tell, j: readJournal(part+".json", r.ref.File, r.size, h.part)}
	if fresh >= 0 {
		t.j.begin(fresh)
	}
	if err := h.checkRoom(d, r, r.size-max(t.j.done(), allocated(f))); err != nil {
		return err
	}
	if err := f.Truncate(r.size); err != nil {
		return err
	}
	if err := t.run(ctx); err != nil {
		return err
	}
	err = errors.Join(f.Sync(), f.Close())
	if err == nil {
		err = verifyFile(ctx, part, r)
	}
	if errors.Is(err, ErrCorrupt) {
		err = errors.Join(fmt.Errorf("%s: %w; it was deleted", r.ref, err), os.Remove(part), os.Remove(t.j.path))
	}
	if err != nil {
		return err
	}
	if err := os.Rename(part, blob); err != nil {
		return err
	}
	return os.Remove(t.j.path)
}

// openPartial opens the part of a blob that has arrived. fresh counts its bytes that are there without
// a journal: 0 for a new file, all for a file that an older huggingface_hub has left. -1 means that
// the journal says so.
func openPartial(blob string) (f *os.File, fresh int64, err error) {
	part := blob + incomplete
	fresh = -1
	if _, err := os.Stat(part); errors.Is(err, fs.ErrNotExist) {
		fresh = 0
		if info, err := os.Stat(blob + foreign); err == nil && info.Mode().IsRegular() && os.Rename(blob+foreign, part) == nil {
			fresh = info.Size()
		}
	}
	f, err = openPlain(part, os.O_RDWR|os.O_CREATE)
	return f, fresh, err
}

func verifyFile(ctx context.Context, path string, r *remote) error {
	f, err := openPlain(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	return verify(ctx, f, r.etag, r.size)
}

// checkRoom refuses what cannot fit.
func (h *Hub) checkRoom(d repoFolder, r *remote, missing int64) error {
	free, err := h.free(d.path)
	if err != nil {
		free = math.MaxInt64 // the disk itself will say
	}
	if missing > free {
		return fmt.Errorf("%w for %s: it wants %d MB, and %s has %d MB free", ErrRoom, r.ref, missing/1e6, d.path, free/1e6)
	}
	return nil
}

// checkRoomForAll does as checkRoom for what is missing of all parts of a model, before
// the first of them fills the disk.
func (h *Hub) checkRoomForAll(d repoFolder, model []remote) error {
	if len(model) == 1 {
		return nil // download knows better what has come of it
	}
	missing := int64(0)
	for i := range model {
		r := &model[i]
		if isFile(d.pointer(r.commit, r.ref.File), r.size) || isFile(d.blob(r.etag), r.size) {
			continue
		}
		missing += r.size - min(h.there(d.blob(r.etag)+incomplete, r), r.size)
	}
	return h.checkRoom(d, &model[0], missing)
}

// there returns the number of bytes of a file that need no more room. The journal names them, or the
// system has allocated them, which is more if a disk filled up before the journal was written.
func (h *Hub) there(part string, r *remote) int64 {
	n := readJournal(part+".json", r.ref.File, r.size, h.part).done()
	if f, err := openPlain(part, os.O_RDONLY); err == nil {
		n = max(n, allocated(f))
		f.Close()
	}
	return n
}

// Resolve reads a name of the hub, of Ollama's registry or of the catalogue; false: it is none.
func Resolve(name string) (Ref, bool, error) {
	if IsName(name) {
		r, err := Parse(name)
		return r, true, err
	}
	if e, ok := Lookup(name); ok {
		return e.Ref, true, nil
	}
	return Ref{}, false, nil
}
