package admission

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestTokensAreChargedWhenTheyAreKnownAndPaidBackByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewKeys(nil, 0, 60).Of("")
		if w := k.wait(time.Now()); w != 0 {
			t.Fatalf("wait() = %v before anything was spent", w)
		}
		k.Spend(time.Now(), 180) // two minutes of debt
		w := k.wait(time.Now())
		if w < 120*time.Second || w > 122*time.Second {
			t.Errorf("wait() = %v in debt of 120 tokens, want two minutes and the next token's second", w)
		}
		time.Sleep(w)
		if w := k.wait(time.Now()); w != 0 {
			t.Errorf("wait() = %v after having waited, want 0", w)
		}
	})
}

func TestARequestThatWasSentAwayCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewKeys(nil, 1, 0).Of("")
		if k.wait(time.Now()) != 0 {
			t.Fatal("the first request has to wait")
		}
		for range 5 {
			if w := k.wait(time.Now()); w != time.Minute {
				t.Fatalf("wait() = %v, want a minute every time", w)
			}
		}
	})
}
