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

// exchange carries what the caller of a sequence and the step loop tell each other: tokens and
// requests one way, tokens the other.
type exchange struct {
	host *host
	post func() // asks the step loop to look

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
func (x *exchange) end(err error) {
	x.mu.Lock()
	done := x.err != nil
	if !done {
		x.err, x.content.unread = err, nil
		x.epoch++
		x.cond.Broadcast()
	}
	x.mu.Unlock()
	if !done {
		x.post()
	}
}

// add adds tokens as Append does, or generated ones as Adopt does.
func (x *exchange) add(tokens []int32, generated bool) {
	x.mu.Lock()
	if x.bad == nil {
		x.bad = x.host.bounds.checkTokens(x.content.known, tokens)
	}
	news := false
	if x.bad == nil && len(tokens) > 0 {
		news = x.cancel()
		x.content.tokens = append(x.content.tokens, tokens...)
		x.content.known = len(x.content.tokens)
		switch {
		case generated:
			x.content.generated = true
			x.timing.LastToken = x.host.opt.Now()
			if x.timing.FirstToken.IsZero() {
				x.timing.FirstToken = x.timing.LastToken
			}
		case !x.content.generated:
			x.content.prompt = x.content.known
		}
	}
	x.mu.Unlock()
	if news {
		x.post()
	}
}

// cancel withdraws the request and forgets what was sampled beyond the reader. It
// reports whether the caller must post. Locked.
func (x *exchange) cancel() bool {
	news := x.request.kind != nothing
	if len(x.content.tokens) > x.content.known {
		x.content.tokens = x.content.tokens[:x.content.known]
		x.content.cutAt = min(x.content.cutAt, x.content.known)
		x.content.unread = x.content.unread[:0]
		news = true
	}
	x.request.kind, x.stalled = nothing, false
	if news {
		x.epoch++
	}
	return news
}

// submit gives the loop a new request. Locked.
func (x *exchange) submit(o request) {
	x.setRequest(o)
	x.post()
}

// setRequest changes the request; the caller must post. Locked.
func (x *exchange) setRequest(o request) {
	x.cancel()
	x.request = o
	x.epoch++
}

// ready tells why a request that needs room for more tokens cannot be made. Locked.
func (x *exchange) ready(room int) error {
	switch {
	case x.err != nil:
		return x.err
	case x.bad != nil:
		return x.bad
	case x.content.known == 0:
		return fmt.Errorf("%w: the sequence is empty", ErrToken)
	case x.content.known+room > x.host.bounds.limit:
		return fmt.Errorf("%w: %d tokens, room for %d", ErrTooLong, x.content.known+room, x.host.bounds.limit)
	}
	return nil
}

// wait returns when done does, or with an error.
func (x *exchange) wait(ctx context.Context, done func() bool) error {
	defer x.watch(ctx)()
	x.mu.Lock()
	defer x.mu.Unlock()
	for !done() {
		if x.err != nil {
			return x.err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		x.cond.Wait()
	}
	return nil
}

// await makes a request and waits for it.
func (x *exchange) await(ctx context.Context, o request) (request, error) {
	x.mu.Lock()
	err := x.ready(0)
	if err == nil {
		x.submit(o)
	}
	x.mu.Unlock()
	if err != nil {
		return o, err
	}
	err = x.wait(ctx, func() bool { return x.request.kind == nothing })
	x.mu.Lock()
	defer x.mu.Unlock()
	if err != nil && x.cancel() {
		x.post()
	}
	return x.request, err
}

// watch wakes whoever waits when ctx ends, until the result is called.
func (x *exchange) watch(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		x.mu.Lock()
		x.cond.Broadcast()
		x.mu.Unlock()
	})
}

// next waits for the next token of run.
func (x *exchange) next(ctx context.Context, run *generation) (sampling.Token, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			return sampling.Token{}, err
		}
		if len(x.content.unread) > 0 {
			return x.read(run), nil
		}
		if x.request.kind != wantTokens || x.request.run != run {
			if err := x.ready(1); err != nil {
				return sampling.Token{}, err
			}
			x.submit(request{kind: wantTokens, run: run, params: run.params, left: run.left})
		} else if x.err != nil {
			return sampling.Token{}, x.err
		}
		x.cond.Wait()
	}
}

// read takes the oldest unread token. Locked.
func (x *exchange) read(run *generation) sampling.Token {
	tok := x.content.unread[0]
	x.content.unread = slices.Delete(x.content.unread, 0, 1)
	x.content.known++
	x.content.generated = true
	run.left--
	if x.stalled && len(x.content.unread) <= x.host.opt.Unread/2 {
		x.stalled = false
		x.post()
	}
	return tok
}

// pause withdraws run's request, if it is still the current one.
func (x *exchange) pause(run *generation) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.request.run == run && x.cancel() {
		x.post()
	}
}

// meet tells the caller that its request has been met. Locked.
func (x *exchange) meet() {
	x.request.kind = nothing
	x.cond.Broadcast()
}
