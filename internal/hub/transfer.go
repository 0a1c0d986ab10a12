package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// A file comes in parts of partSize bytes, over this many connections. One stream is as fast where
// nothing delays it. With a round trip of 20 ms, 1 GB took it 19 s for 11. Where at most half a MiB is
// under way, as on lines that lose packets, it took more than 90 s for 30.
const (
	partSize    = 32 << 20
	connections = 4
)

// Progress is told how many bytes of a model there are, and of how many; by one
// goroutine at a time. The number falls where a server makes a transfer begin again.
type Progress func(done, total int64)

// ofAll gives the progress of each file of a model, those before it being there.
func (tell Progress) ofAll(model []remote) func(file int) Progress {
	before, total := make([]int64, len(model)), int64(0)
	for i := range model {
		before[i] = total
		total += model[i].size
	}
	return func(file int) Progress {
		if tell == nil {
			return nil
		}
		return func(done, _ int64) { tell(before[file]+done, total) }
	}
}

// transfer brings a file.
type transfer struct {
	c    *client
	r    *remote
	f    *os.File
	j    *journal
	mu   sync.Mutex // of tell
	tell Progress
}

// run brings what is missing. Whatever ends it, the journal says what is there.
func (t *transfer) run(ctx context.Context) (err error) {
	defer func() {
		if saved := t.j.save(); err == nil {
			err = saved
		}
	}()
	t.report()
	err = t.parts(ctx)
	if errors.Is(err, errNoRanges) {
		err = t.whole(ctx)
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("the disk of %s is full; what has come is kept, and the next pull goes on from there: %w", t.f.Name(), err)
	}
	return err
}

// parts brings the parts, some at a time.
func (t *transfer) parts(ctx context.Context) error {
	g, both := errgroup.WithContext(ctx)
	g.SetLimit(connections)
	for i := range t.j.Have {
		if lo, hi := t.j.bounds(i); t.j.have(i) == hi-lo {
			continue
		}
		if both.Err() != nil {
			break
		}
		g.Go(func() error { return t.part(both, i) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// part brings one, in as many attempts as it takes. Those that bring something
// are no failures.
func (t *transfer) part(ctx context.Context, i int) error {
	var p retries
	lo, hi := t.j.bounds(i)
	for {
		from := lo + t.j.have(i)
		if from == hi {
			return nil
		}
		err := t.fetch(ctx, from, hi, false, func(n int64) error { return t.j.came(i, n) })
		if t.j.have(i) > from-lo {
			p = retries{}
		}
		if err != nil {
			if err := p.failed(ctx, t.c, err); err != nil {
				return err
			}
		}
	}
}

// whole brings a file from a server that cannot begin in its midst.
func (t *transfer) whole(ctx context.Context) error {
	return t.c.retry(ctx, func() error {
		t.j.begin(0)
		t.j.forget()
		t.report()
		at := int64(0)
		return t.fetch(ctx, 0, t.r.size, true, func(n int64) error {
			at += n
			t.j.begin(at)
			return nil
		})
	})
}

// fetch writes bytes lo to hi of the file. came is told of bytes that are written.
func (t *transfer) fetch(ctx context.Context, lo, hi int64, whole bool, came func(int64) error) error {
	validator := t.j.valid("")
	a, err := t.c.open(ctx, t.r, lo, hi, whole, validator)
	if errors.Is(err, errNoRanges) && validator != "" && t.r.hashed() {
		t.j.forget() // another server of the same file, perhaps; the hash will tell
		return temporary{errors.New("the server's version of the file has changed")}
	}
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if tag := a.Header.Get("ETag"); tag != "" && tag[0] == '"' && !whole { // a strong one
		t.j.valid(tag)
	}
	buf := make([]byte, 256<<10)
	for lo < hi {
		n, err := a.Body.Read(buf[:min(int64(len(buf)), hi-lo)])
		if n > 0 {
			if _, err := t.f.WriteAt(buf[:n], lo); err != nil {
				return err
			}
			lo += int64(n)
			if err := came(int64(n)); err != nil {
				return err
			}
			t.report()
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case lo == hi:
		case errors.Is(err, io.EOF):
			if whole {
				return temporary{fmt.Errorf("%s ends after %d of %d bytes", t.r.ref, lo, hi)}
			}
			return temporary{fmt.Errorf("%s breaks off", a.Request.URL.Host)}
		case err != nil:
			return temporary{fmt.Errorf("%s: %w", a.Request.URL.Host, withoutURL(err))}
		}
	}
	if n, _ := io.ReadFull(a.Body, buf[:1]); whole && n > 0 {
		return fmt.Errorf("%s is longer than the %d bytes that the hub says", t.r.ref, t.r.size)
	}
	return nil
}

func (t *transfer) report() {
	if t.tell == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tell(t.j.done(), t.r.size)
}
