package hub

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"

	"github.com/lutra-lm/lutra/models/gguf/parts"
)

const (
	maxListing = 16 << 20 // bytes of a repository's list of files
	maxFiles   = 20_000   // in it
	maxSize    = 1 << 40  // bytes of a file
)

var (
	commitHash = regexp.MustCompile(`^[0-9a-f]{40}$`)
	sha256Hash = regexp.MustCompile(`^[0-9a-f]{64}$`)
	etagName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`) // of a blob
)

// listing is the hub's description of a repository.
type listing struct {
	Commit string    `json:"sha"`
	Files  []sibling `json:"siblings"`
}

// sibling is a file of a listing.
type sibling struct {
	Name string `json:"rfilename"`
	LFS  *struct {
		SHA256 string `json:"sha256"`
		Size   int64  `json:"size"`
	} `json:"lfs"` // of large files
}

// list asks for the files of a repository's newest commit.
func (c *client) list(ctx context.Context, ref Ref) (l listing, err error) {
	u := c.at("api/models", ref.Owner, ref.Repo, "revision", mainRevision)
	u.RawQuery = "blobs=true"
	text, err := c.text(ctx, ref, u, nil, "the list of files of "+ref.ID(), maxListing)
	if err != nil {
		return l, err
	}
	switch err := json.Unmarshal(text, &l); {
	case err != nil:
		return l, fmt.Errorf("what the hub says of %s is no JSON that could be read: %w", ref.ID(), err)
	case !commitHash.MatchString(l.Commit):
		return l, fmt.Errorf("the hub names no commit of %s", ref.ID())
	case len(l.Files) > maxFiles:
		return l, fmt.Errorf("%s has more than %d files", ref.ID(), maxFiles)
	}
	return l, nil
}

// text asks for a text of at most limit bytes about ref; what names it in errors.
func (c *client) text(ctx context.Context, ref Ref, u *url.URL, header http.Header, what string, limit int64) (text []byte, err error) {
	err = c.retry(ctx, func() error {
		ctx, cancel := context.WithTimeoutCause(ctx, listTimeout, fmt.Errorf("%w: %s takes longer than %v", ErrUnreachable, what, listTimeout))
		defer cancel()
		a, err := c.send(ctx, http.MethodGet, u, header, true)
		if err != nil {
			return firstContact(err)
		}
		defer a.Body.Close()
		if a.StatusCode != http.StatusOK {
			return c.refusal(ref, a)
		}
		text, err = a.read(ctx, what, limit)
		return err
	})
	return text, err
}

// firstContact makes an error final if there was no connection, or none that can
// be trusted: before anything has come, a person would rather hear of it than wait.
func firstContact(err error) error {
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	var t temporary
	none := errors.As(err, &op) && op.Op == "dial" || errors.As(err, &certificate)
	if none && errors.As(err, &t) {
		return t.error
	}
	return err
}

// read takes a body of at most limit bytes; what names it in errors.
func (a *answer) read(ctx context.Context, what string, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(a.Body, limit+1))
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, temporary{fmt.Errorf("%w at %s: %s: %w", ErrUnreachable, a.Request.URL.Host, what, err)}
	case int64(len(text)) > limit:
		return nil, fmt.Errorf("%s has more than %d bytes", what, limit)
	}
	return text, nil
}

// remote is a file of the hub.
type remote struct {
	ref    Ref // with its File
	commit string
	etag   string // its name among the blobs: the SHA-256 of LFS files
	size   int64
	url    *url.URL
}

// hashed tells whether the ETag says what the contents are.
func (r *remote) hashed() bool {
	return sha256Hash.MatchString(r.etag) || commitHash.MatchString(r.etag)
}

// room returns the memory that a choice among the files is made for.
func (l *listing) room(memory func() int64) room {
	if memory == nil {
		return room{}
	}
	sizes := map[string]int64{} // of models, by the first part
	for _, f := range l.Files {
		if f.LFS != nil && f.LFS.Size > 0 {
			sizes[parts.First(f.Name)] += min(f.LFS.Size, maxSize)
		}
	}
	return room{free: memory(), needs: func(file string) int64 { return sizes[parts.First(file)] }}
}

// find chooses a model and asks what its files are.
func (c *client) find(ctx context.Context, ref Ref) ([]remote, error) {
	if ref.Tag != "" {
		return c.findOllama(ctx, ref)
	}
	l, err := c.list(ctx, ref)
	if err != nil {
		return nil, err
	}
	all := make([]string, 0, len(l.Files))
	for _, f := range l.Files {
		if isGGUF(f.Name) || ofCheckpoint(f.Name) {
			if err := validFile(f.Name); err != nil {
				return nil, fmt.Errorf("%s: %w", ref.ID(), err)
			}
			all = append(all, f.Name)
		}
	}
	files, why, err := chosen(ref, all, l.room(c.memory))
	if err != nil {
		return nil, err
	}
	if why != "" && c.chose != nil {
		c.chose(files[0], why)
	}
	model := make([]remote, len(files))
	for i, file := range files {
		if model[i], err = c.describe(ctx, ref, file, &l); err != nil {
			return nil, err
		}
	}
	return model, nil
}

// describe asks what a file is that a repository lists.
func (c *client) describe(ctx context.Context, ref Ref, file string, l *listing) (remote, error) {
	r := remote{ref: Ref{Owner: ref.Owner, Repo: ref.Repo, File: file}, commit: l.Commit, url: c.at(ref.Owner, ref.Repo, "resolve", l.Commit, file)}
	if err := c.retry(ctx, func() error { return c.head(ctx, &r) }); err != nil {
		return remote{}, err
	}
	for _, f := range l.Files {
		if f.Name == file && f.LFS != nil && (f.LFS.SHA256 != r.etag || f.LFS.Size != r.size) {
			return remote{}, fmt.Errorf("the hub contradicts itself about %s: %d bytes with SHA-256 %s in the list, %d bytes with ETag %s at the file",
				r.ref, f.LFS.Size, brief(f.LFS.SHA256), r.size, r.etag)
		}
	}
	return r, nil
}

// head asks for size and ETag.
func (c *client) head(ctx context.Context, r *remote) error {
	a, err := c.send(ctx, http.MethodHead, r.url, nil, true)
	if err != nil {
		return err
	}
	a.Body.Close()
	if a.StatusCode >= 400 {
		return c.refusal(r.ref, a)
	}
	if a.etag == "" {
		a.etag = unquoted(a.Header.Get("ETag"))
	}
	if a.size < 0 && a.StatusCode == http.StatusOK {
		a.size = a.ContentLength
	}
	switch {
	case !etagName.MatchString(a.etag):
		return fmt.Errorf("the hub gives %s the ETag %q, which is refused", r.ref, brief(a.etag))
	case a.size < 0:
		return fmt.Errorf("the hub does not say how large %s is", r.ref)
	case a.size > maxSize:
		return fmt.Errorf("%s has %d bytes, which is refused", r.ref, a.size)
	case a.commit != "" && a.commit != r.commit:
		return fmt.Errorf("the hub gives %s of another commit than was asked for", r.ref)
	}
	r.etag, r.size = a.etag, a.size
	return nil
}

// errNoRanges says that a server sends files whole.
var errNoRanges = errors.New("the server sends no ranges")

// open asks for the bytes of a file from lo on: up to hi, or all with whole.
// validator, where the server gave one, makes sure that parts are of one file.
func (c *client) open(ctx context.Context, r *remote, lo, hi int64, whole bool, validator string) (*answer, error) {
	h := http.Header{}
	if !whole {
		h.Set("Range", fmt.Sprintf("bytes=%d-%d", lo, hi-1))
		if validator != "" {
			h.Set("If-Range", validator)
		}
	}
	a, err := c.send(ctx, http.MethodGet, r.url, h, false)
	if err != nil {
		return nil, err
	}
	if err := c.checkPart(r, a, lo, hi, whole); err != nil {
		a.Body.Close()
		return nil, err
	}
	return a, nil
}

// checkPart holds a response against what was asked for.
func (c *client) checkPart(r *remote, a *answer, lo, hi int64, whole bool) error {
	if a.etag != "" && a.etag != r.etag {
		return fmt.Errorf("%s has changed on the hub while it was fetched", r.ref)
	}
	if e := a.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return fmt.Errorf("%s comes with the encoding %q, which was not asked for", r.ref, brief(e))
	}
	switch {
	case a.StatusCode == http.StatusPartialContent && !whole:
		var first, last, size int64
		if n, err := fmt.Sscanf(a.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size); n != 3 || err != nil || first != lo || last < first || last >= hi {
			return fmt.Errorf("bytes %d to %d of %s were asked for, and %q comes", lo, hi-1, r.ref, brief(a.Header.Get("Content-Range")))
		} else if size != r.size {
			return sizeError(r, size)
		}
		return nil
	case a.StatusCode == http.StatusOK && whole:
		if a.ContentLength >= 0 && a.ContentLength != r.size {
			return sizeError(r, a.ContentLength)
		}
		return nil
	case a.StatusCode == http.StatusOK, a.StatusCode == http.StatusRequestedRangeNotSatisfiable && !whole:
		return errNoRanges
	case a.StatusCode < 400:
		return fmt.Errorf("the server of %s answers %s", r.ref, a.Status)
	}
	return c.refusal(r.ref, a)
}

func sizeError(r *remote, size int64) error {
	return fmt.Errorf("the hub says that %s has %d bytes, its server has %d", r.ref, r.size, size)
}
