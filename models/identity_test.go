package models

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"testing"
	"testing/synctest"

	"github.com/lutra-lm/lutra/models/gguf"
)

// identified returns the identity of a file of three pieces, and its digest.
func identified(t *testing.T) (id *Identity, digest string) {
	t.Helper()
	data, err := os.ReadFile("embedded/lutra-tiny-moe.gguf")
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return newIdentity(f, nil, nil, ""), hex.EncodeToString(sum[:])
}

// turns hand out one place, which a test gives.
type turns struct{ place chan struct{} }

func (t turns) wait(ctx context.Context) (end func(), err error) {
	select {
	case <-t.place:
		return func() {}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

type asked struct {
	digest string
	err    error
}

// ask asks for a digest on a goroutine of its own.
func (id *Identity) ask(ctx context.Context, turns turns) <-chan asked {
	answer := make(chan asked, 1)
	go func() {
		digest, err := id.Digest(ctx, turns.wait)
		answer <- asked{digest, err}
	}()
	synctest.Wait()
	return answer
}

func TestADigestIsReadOnceForAllWhoAskWhoeverLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id, want := identified(t)
		turns := turns{make(chan struct{})}
		gone, leave := context.WithCancel(t.Context())
		first := id.ask(gone, turns)
		second, third := id.ask(t.Context(), turns), id.ask(t.Context(), turns)
		turns.place <- struct{}{}
		leave()
		if got := <-first; !errors.Is(got.err, context.Canceled) {
			t.Errorf("whoever left gets %v", got)
		}
		pieces := 1
		for range 2 {
			turns.place <- struct{}{}
			pieces++
		}
		for _, answer := range []<-chan asked{second, third} {
			if got := <-answer; got.digest != want || got.err != nil {
				t.Errorf("who began it has left, and others get %v, want %s after %d pieces", got, want, pieces)
			}
		}
		if got := <-id.ask(t.Context(), turns); got.digest != want {
			t.Errorf("a digest that is known: %v", got)
		}
	})
}

func TestTheLastWhoLeavesEndsTheReadingOfAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id, want := identified(t)
		turns := turns{make(chan struct{})}
		gone, leave := context.WithCancel(t.Context())
		first, second := id.ask(gone, turns), id.ask(gone, turns)
		leave()
		synctest.Wait()
		for _, answer := range []<-chan asked{first, second} {
			if got := <-answer; !errors.Is(got.err, context.Canceled) {
				t.Errorf("whoever left gets %v", got)
			}
		}
		select {
		case turns.place <- struct{}{}:
			t.Error("a file is read that nobody waits for")
		default:
		}
		again := id.ask(t.Context(), turns)
		for range 3 {
			turns.place <- struct{}{}
		}
		if got := <-again; got.digest != want || got.err != nil {
			t.Errorf("the next who asks gets %v, want %s", got, want)
		}
	})
}
