package batcher

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/lutra-lm/lutra/batcher/sampling"
)

// content holds the tokens of a sequence.
type content struct {
	tokens    []int32          // all, unread ones included
	prompt    int              // tokens before the first generated one
	known     int              // tokens that the caller appended or read
	unread    []sampling.Token // tokens[known:], as sampled
	generated bool             // the caller has read a generated token
	cutAt     int              // the least length that tokens were cut to since the loop last looked
}

// shared carries what the caller of a sequence and the step loop tell each other: tokens and
// requests one way, tokens the other.
type shared struct {
	setup *setup
	post  func() // asks the step loop to look

	// mu guards what follows. Nobody holds two of these locks while waiting, and none
	// while a step computes.
	mu      sync.Mutex
	cond    sync.Cond
	content content
	epoch   uint64 // changes whenever the caller changes tokens or request
	request request
	stalled bool  // request is suspended until the reader catches up
	bad     error // Append was given something unusable
	err     error // closed, or failed
	timing  Timing
}

// end closes the sequence with the error that its caller will get.
func (h *shared) end(err error) {
	h.mu.Lock()
	done := h.err != nil
	if !done {
		h.err, h.content.unread = err, nil
		h.epoch++
		h.cond.Broadcast()
	}
	h.mu.Unlock()
	if !done {
		h.post()
	}
}

// add adds tokens as Append does, or generated ones as Adopt does.
func (h *shared) add(tokens []int32, generated bool) {
	h.mu.Lock()
	if h.bad == nil {
		h.bad = h.setup.bounds.checkTokens(h.content.known, tokens)
	}
	news := false
	if h.bad == nil && len(tokens) > 0 {
		news = h.cancel()
		h.content.tokens = append(h.content.tokens, tokens...)
		h.content.known = len(h.content.tokens)
		switch {
		case generated:
			h.content.generated = true
			h.timing.LastToken = h.setup.opt.Now()
			if h.timing.FirstToken.IsZero() {
				h.timing.FirstToken = h.timing.LastToken
			}
		case !h.content.generated:
			h.content.prompt = h.content.known
		}
	}
	h.mu.Unlock()
	if news {
		h.post()
	}
}

// cancel withdraws the request and forgets what was sampled beyond the reader. It
// reports whether the caller must post. Locked.
func (h *shared) cancel() bool {
	news := h.request.kind != nothing
	if len(h.content.tokens) > h.content.known {
		h.content.tokens = h.content.tokens[:h.content.known]
		h.content.cutAt = min(h.content.cutAt, h.content.known)
		h.content.unread = h.content.unread[:0]
		news = true
	}
	h.request.kind, h.stalled = nothing, false
	if news {
		h.epoch++
	}
	return news
}

// submit gives the loop a new request. Locked.
func (h *shared) submit(o request) {
	h.setRequest(o)
	h.post()
}

// setRequest changes the request; the caller must post. Locked.
func (h *shared) setRequest(o request) {
	h.cancel()
	h.request = o
	h.epoch++
}

// ready tells why a request that needs room for more tokens cannot be made. Locked.
func (h *shared) ready(room int) error {
	switch {
	case h.err != nil:
		return h.err
	case h.bad != nil:
		return h.bad
	case h.content.known == 0:
		return fmt.Errorf("%w: the sequence is empty", ErrToken)
	case h.content.known+room > h.setup.bounds.limit:
		return fmt.Errorf("%w: %d tokens, room for %d", ErrTooLong, h.content.known+room, h.setup.bounds.limit)
	}
	return nil
}

// wait returns when done does, or with an error.
func (h *shared) wait(ctx context.Context, done func() bool) error {
	defer h.watch(ctx)()
	h.mu.Lock()
	defer h.mu.Unlock()
	for !done() {
		if h.err != nil {
			return h.err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		h.cond.Wait()
	}
	return nil
}

// await makes a request and waits for it.
func (h *shared) await(ctx context.Context, o request) (request, error) {
	h.mu.Lock()
	err := h.ready(0)
	if err == nil {
		h.submit(o)
	}
	h.mu.Unlock()
	if err != nil {
		return o, err
	}
	err = h.wait(ctx, func() bool { return h.request.kind == nothing })
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil && h.cancel() {
		h.post()
	}
	return h.request, err
}

// watch wakes whoever waits when ctx ends, until the result is called.
func (h *shared) watch(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		h.mu.Lock()
		h.cond.Broadcast()
		h.mu.Unlock()
	})
}

// next waits for the next token of run.
func (h *shared) next(ctx context.Context, run *generation) (sampling.Token, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			return sampling.Token{}, err
		}
		if len(h.content.unread) > 0 {
			return h.read(run), nil
		}
		if h.request.kind != wantTokens || h.request.run != run {
			if err := h.ready(1); err != nil {
				return sampling.Token{}, err
			}
			h.submit(request{kind: wantTokens, run: run, params: run.params, left: run.left})
		} else if h.err != nil {
			return sampling.Token{}, h.err
		}
		h.cond.Wait()
	}
}

// read takes the oldest unread token. Locked.
func (h *shared) read(run *generation) sampling.Token {
	tok := h.content.unread[0]
	h.content.unread = slices.Delete(h.content.unread, 0, 1)
	h.content.known++
	h.content.generated = true
	run.left--
	if h.stalled && len(h.content.unread) <= h.setup.opt.Unread/2 {
		h.stalled = false
		h.post()
	}
	return tok
}

// pause withdraws run's request, if it is still the current one.
func (h *shared) pause(run *generation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.request.run == run && h.cancel() {
		h.post()
	}
}

// meet tells the caller that its request has been met. Locked.
func (h *shared) meet() {
	h.request.kind = nothing
	h.cond.Broadcast()
}
