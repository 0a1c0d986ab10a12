package admission

import (
	"crypto/sha256"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// wait returns how long a request would have to wait, which takes its place if it does not.
func wait(t *testing.T, err error, limit string) time.Duration {
	t.Helper()
	var r *RateError
	if err == nil {
		return 0
	}
	if !errors.As(err, &r) || r.Limit != limit || r.Wait <= 0 {
		t.Fatalf("refused by %v, want %s", err, limit)
	}
	return r.Wait
}

func TestTokensAreChargedWhenTheyAreKnownAndPaidBackByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewKeys(nil, Limits{Tokens: 60}).Of("")
		settle, err := k.Reserve(0)
		if err != nil || k.Admit(time.Now()) != nil {
			t.Fatalf("refused before anything was spent: %v", err)
		}
		settle(180) // two minutes of debt
		w := wait(t, k.Admit(time.Now()), LimitTokens)
		if w < 120*time.Second || w > 122*time.Second {
			t.Errorf("it takes %v in debt of 120 tokens, want two minutes and the next token's second", w)
		}
		time.Sleep(w)
		if err := k.Admit(time.Now()); err != nil {
			t.Errorf("after having waited: %v", err)
		}
	})
}

func TestARequestThatWasSentAwayCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewKeys(nil, Limits{Requests: 1}).Of("")
		if err := k.Admit(time.Now()); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if w := wait(t, k.Admit(time.Now()), LimitRequests); w != time.Minute {
				t.Fatalf("it takes %v, want a minute every time", w)
			}
		}
	})
}

func TestTokensThatARequestMayTakeAreSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewKeys(nil, Limits{Tokens: 60}).Of("")
		settle, err := k.Reserve(50)
		if err != nil {
			t.Fatal(err)
		}
		if _, tokens := k.Rates(); *tokens != (Rate{60, 10, 50 * time.Second}) {
			t.Errorf("with 50 of 60 tokens set aside: %+v", *tokens)
		}
		_, err = k.Reserve(20)
		if w := wait(t, err, LimitTokens); w != 10*time.Second {
			t.Errorf("for ten tokens more it takes %v, want 10s", w)
		}
		settle(5)
		if _, tokens := k.Rates(); tokens.Remaining != 55 {
			t.Errorf("%d of 60 tokens remain after 5 were spent", tokens.Remaining)
		}
		_, err = k.Reserve(1000)
		if w := wait(t, err, LimitTokens); w != 5*time.Second {
			t.Errorf("what wants more than there ever is takes %v, want 5s: until all is there", w)
		}
		time.Sleep(5 * time.Second)
		if settle, err = k.Reserve(1000); err != nil {
			t.Fatal(err)
		}
		settle(0)
		if _, tokens := k.Rates(); tokens.Remaining != 60 {
			t.Errorf("%d of 60 tokens remain where nothing was spent", tokens.Remaining)
		}
	})
}

func TestAKeyHasSoManyRequestsUnderWay(t *testing.T) {
	k := NewKeys(nil, Limits{AtOnce: 2}).Of("")
	leave, err := k.Enter()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Enter(); err != nil {
		t.Fatal(err)
	}
	_, err = k.Enter()
	wait(t, err, LimitAtOnce)
	leave()
	if _, err := k.Enter(); err != nil {
		t.Errorf("after one has left: %v", err)
	}
}

func TestKeysThatAreReplacedKeepWhatTheirNameHasSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := func(name, key string, l Limits) []Credential {
			return []Credential{{Name: name, Hash: sha256.Sum256([]byte(key)), Limits: l}}
		}
		ks := NewKeys(one("alice", "old", Limits{Requests: 1, AtOnce: 1}), Limits{})
		old := ks.Of("Bearer old")
		leave, err := old.Enter()
		if err != nil || old.Admit(time.Now()) != nil {
			t.Fatal(err)
		}
		ks.Replace(one("alice", "new", Limits{Requests: 1, AtOnce: 1}))
		if ks.Of("Bearer old") != nil {
			t.Error("the former key still opens the server")
		}
		k := ks.Of("Bearer new")
		wait(t, k.Admit(time.Now()), LimitRequests)
		_, err = k.Enter()
		wait(t, err, LimitAtOnce)
		leave()
		old.Answered(3, 4) // of a request that was let in with the former key
		list, _ := ks.Usage()
		if u := list[0]; len(list) != 1 || u.Running != 0 || u.Requests != 1 || u.Prompt != 3 || u.Completion != 4 || u.Refused[LimitRequests] != 1 || u.Refused[LimitAtOnce] != 1 {
			t.Errorf("usage %+v", list)
		}
		ks.Replace(one("bob", "new", Limits{}))
		if list, _ := ks.Usage(); len(list) != 1 || list[0].Requests != 0 {
			t.Errorf("bob begins with %+v", list)
		}
	})
}
