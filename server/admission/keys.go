package admission

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Credential is a key that clients may show, and what it is good for.
type Credential struct {
	Name string            // for logs and metrics; empty: the beginning of Hash
	Hash [sha256.Size]byte // of the key
	Limits
	Plain bool // its file shows the key itself
	Admin bool // it may ask about other keys and their requests, and change what others get
}

// Keys are the clients that the server knows.
type Keys struct {
	known  atomic.Pointer[[]*Key]
	anyone *Key // set when no keys are configured: all clients share it
	since  time.Time
	change sync.Mutex // held by Replace
}

// Key is one client with its remaining limits. After a Replace, a key of the same name goes on with them.
type Key struct {
	Credential // its name is not empty unless no keys are configured
	allowance  *allowance
	counts     *counts
}

// Owner identifies the key by its whole hash: what it stores is for it alone.
func (k *Key) Owner() string { return string(k.Hash[:]) }

// May tells whether the key may use a model that has these names.
func (k *Key) May(names ...string) bool {
	return k == nil || k.Models == nil || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(k.Models, n) })
}

// Rules tells whether the key may change other clients' service: an admin's key, or everybody's if no keys
// are configured.
func (k *Key) Rules() bool { return k == nil || k.Admin || k.Hash == [sha256.Size]byte{} }

// NewKeys accepts these credentials; with none, all clients share one key with these limits.
func NewKeys(credentials []Credential, standard Limits) *Keys {
	ks := &Keys{since: time.Now()}
	if len(credentials) == 0 {
		ks.anyone = newKey(Credential{Limits: standard}, nil)
	}
	ks.Replace(credentials)
	return ks
}

// newKey makes a key that takes over what the former one of its name has spent.
func newKey(c Credential, former *Key) *Key {
	k := &Key{Credential: c}
	if former != nil {
		k.allowance, k.counts = former.allowance, former.counts
	} else {
		k.allowance, k.counts = &allowance{}, &counts{}
	}
	k.allowance.limit(time.Now(), c.Limits)
	return k
}

// Replace accepts these credentials in place of the former ones; of equal keys the first counts.
// Requests that have been let in go on.
func (ks *Keys) Replace(credentials []Credential) {
	ks.change.Lock()
	defer ks.change.Unlock()
	former := map[string]*Key{}
	for _, k := range ks.all() {
		former[k.Name] = k
	}
	known := make([]*Key, 0, len(credentials))
	hashes, names := map[[sha256.Size]byte]bool{}, map[string]bool{}
	for _, c := range credentials {
		if hashes[c.Hash] {
			continue
		}
		hash := hex.EncodeToString(c.Hash[:])
		if c.Name = cmp.Or(c.Name, hash[:8]); names[c.Name] {
			c.Name = hash
		}
		hashes[c.Hash], names[c.Name] = true, true
		known = append(known, newKey(c, former[c.Name]))
	}
	ks.known.Store(&known)
}

// all returns the keys that are configured.
func (ks *Keys) all() []*Key {
	if known := ks.known.Load(); known != nil {
		return *known
	}
	return nil
}

// Of returns the key of an Authorization header, nil for none of ours.
func (ks *Keys) Of(authorization string) *Key {
	if ks.anyone != nil {
		return ks.anyone
	}
	scheme, secret, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "bearer") {
		return nil
	}
	return ks.find(strings.TrimSpace(secret))
}

// Owned returns the key whose Owner that is, nil for none of ours.
func (ks *Keys) Owned(owner string) *Key {
	if ks.anyone != nil && ks.anyone.Owner() == owner {
		return ks.anyone
	}
	for _, k := range ks.all() {
		if k.Owner() == owner {
			return k
		}
	}
	return nil
}

// find returns the key that a client has shown, nil for none of ours. It
// compares hashes, and all of them, so that its time reveals nothing.
func (ks *Keys) find(secret string) *Key {
	hash := sha256.Sum256([]byte(secret))
	var found *Key
	for _, k := range ks.all() {
		if subtle.ConstantTimeCompare(hash[:], k.Hash[:]) == 1 {
			found = k
		}
	}
	return found
}

// Admit takes one request from the allowance, or returns a *RateError.
func (k *Key) Admit(now time.Time) error { return k.refused(k.allowance.admit(now)) }

// Enter counts a request as under way until leave is called, or returns a *RateError.
func (k *Key) Enter() (leave func(), err error) {
	return k.allowance.leave, k.refused(k.allowance.enter())
}

// Reserve sets tokens of the allowance aside until settle is called with what was spent, or
// returns a *RateError.
func (k *Key) Reserve(tokens int) (settle func(spent int), err error) {
	n, err := k.allowance.reserve(time.Now(), tokens)
	return func(spent int) { k.allowance.settle(time.Now(), n, spent) }, k.refused(err)
}

// Rates returns where the key stands with its requests and its tokens a minute; nil: no limit.
func (k *Key) Rates() (requests, tokens *Rate) { return k.allowance.rates(time.Now()) }
