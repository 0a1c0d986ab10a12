package admission

import (
	"errors"
	"sync/atomic"
	"time"
)

// counts has the totals of a key's clients.
type counts struct {
	requests, prompt, completion atomic.Int64
	refused                      [4]atomic.Int64 // by limits
}

// The reasons to refuse a request, as counts.refused has them.
var refusals = [...]string{LimitRequests, LimitTokens, LimitAtOnce, settingModels}

// Usage has the totals of a key's clients since the server has known the key.
type Usage struct {
	Key        *Key
	Running    int
	Requests   int64
	Prompt     int64            // tokens
	Completion int64            // tokens
	Refused    map[string]int64 // requests, by the limit; of all of them
}

// Answered counts an answer of a model, with its tokens.
func (k *Key) Answered(prompt, completion int) {
	k.counts.requests.Add(1)
	k.counts.prompt.Add(int64(prompt))
	k.counts.completion.Add(int64(completion))
}

// refused counts what a limit has refused.
func (k *Key) refused(err error) error {
	var r *RateError
	if errors.As(err, &r) {
		k.refuse(r.Limit)
	}
	return err
}

// Forbidden counts a request for a model that the key may not use.
func (k *Key) Forbidden() { k.refuse(settingModels) }

func (k *Key) refuse(limit string) {
	for i, name := range refusals {
		if name == limit {
			k.counts.refused[i].Add(1)
		}
	}
}

// Usage returns what each key that is configured has had, in their order, and since when they
// are counted.
func (ks *Keys) Usage() (list []Usage, since time.Time) {
	for _, k := range ks.all() {
		c := k.counts
		u := Usage{Key: k, Requests: c.requests.Load(), Prompt: c.prompt.Load(), Completion: c.completion.Load(), Refused: map[string]int64{}}
		for i, name := range refusals {
			u.Refused[name] = c.refused[i].Load()
		}
		k.allowance.mu.Lock()
		u.Running = k.allowance.running
		k.allowance.mu.Unlock()
		list = append(list, u)
	}
	return list, ks.since
}
