package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/tts"
)

func TestOptionsThatMakeNoSenseAreRefusedByName(t *testing.T) {
	for _, c := range []struct {
		key    string
		change func(o *Options)
	}{
		{"workers[0]", func(o *Options) { o.Workers = []string{"10.0.0.5:8080"} }},
		{"workers[0]", func(o *Options) { o.Workers = []string{"ftp://10.0.0.5:8080"} }},
		{"workers[0]", func(o *Options) { o.Workers = []string{"http://"} }},
		{"workers[0]", func(o *Options) { o.Workers = []string{"http://:8080"} }},
		{"workers[1]", func(o *Options) { o.Workers = []string{"http://a:1", "http://a:1/v1"} }},
		{"workers[0]", func(o *Options) { o.Workers = []string{"http://a:1?b"} }},
		{"workers[0]", func(o *Options) { o.Workers = []string{"http://me:sesame@a:1"} }},
		{"workers[0]", func(o *Options) { o.Workers = []string{"dns+http://10.0.0.5:1"} }},
		{"workers[0]", func(o *Options) { o.Workers = []string{"dns+http://[::1]:1"} }},
		{"workers[1]", func(o *Options) { o.Workers = []string{"http://a:1", "http://a:1"} }},
		{"workers", func(o *Options) { o.Workers = slices.Repeat([]string{"http://a:1"}, mostWorkers+1) }},
		{"worker_key", func(o *Options) { o.Key = "a\nb" }},
		{"worker_timeout", func(o *Options) { o.Timeout = 0 }},
		{"worker_timeout", func(o *Options) { o.Timeout = longest + 1 }},
		{"worker_hedge", func(o *Options) { o.Hedge = -1 }},
		{"worker_check", func(o *Options) { o.Check = 1.1 }},
	} {
		o := DefaultOptions()
		c.change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), c.key+": ") || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%+v: %v, want a fault of %s", o, err, c.key)
		}
	}
	o := DefaultOptions()
	o.Workers = []string{"http://10.0.0.5:8080", "https://two.example", "http://[::1]:80/", "dns+https://lutra.example:8443"}
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
}

// names returns the names of workers.
func names(list []*worker) (out []string) {
	for _, w := range list {
		out = append(out, w.name)
	}
	return out
}

func TestAServerIsNoWorkerOfItsOwn(t *testing.T) {
	o := DefaultOptions()
	o.Workers = []string{"http://127.0.0.1:8080", "http://127.0.0.1:8081", "dns+http://lutra.example:8080"}
	for listening, want := range map[string][]string{
		"127.0.0.1:8080": {"http://127.0.0.1:8081", "http://10.9.8.7:8080"},
		"0.0.0.0:8080":   {"http://127.0.0.1:8081", "http://10.9.8.7:8080"}, // as every machine has the address
		"127.0.0.1:8081": {"http://127.0.0.1:8080", "http://10.9.8.7:8080", "http://127.0.0.1:8080"},
	} {
		p := New(o, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(listening)), zerolog.Nop())
		p.lookup = func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.9.8.7"), netip.MustParseAddr("10.9.8.7")}, nil
		}
		if got := names(p.workers()); !slices.Equal(got, want) {
			t.Errorf("a server at %s asks %q, want %q", listening, got, want)
		}
		p.Close()
	}
}

func TestAddressesOfANameComeAndGoWithWhatIsKnownOfThem(t *testing.T) {
	at, err := parsePlace("dns+http://lutra.example:8080")
	if err != nil {
		t.Fatal(err)
	}
	m := &members{place: at, make: func(host string) *worker { return newWorker(host, at.url(), at.address(host), "") }}
	var there []netip.Addr
	var fails error
	asked := 0
	lookup := func(_ context.Context, host string) ([]netip.Addr, error) {
		if asked++; host != "lutra.example" {
			t.Errorf("%s is looked up", host)
		}
		return slices.Clone(there), fails
	}
	now := time.Unix(1e9, 0)
	list := func() []string {
		all, err := m.workers(now, lookup)
		if (err != nil) != (fails != nil) && asked > 0 {
			t.Errorf("error %v, want %v", err, fails)
		}
		return names(all)
	}
	a, b, c := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("::ffff:10.0.0.3")
	there = []netip.Addr{b, a}
	if got := list(); !slices.Equal(got, []string{"10.0.0.1", "10.0.0.2"}) {
		t.Errorf("workers are %v", got)
	}
	first := m.byHost["10.0.0.2"]
	there = []netip.Addr{c, b}
	if got := list(); asked != 1 || len(got) != 2 {
		t.Errorf("%d look-ups at once, workers %v", asked, got)
	}
	now = now.Add(lookupAge)
	if got := list(); asked != 2 || !slices.Equal(got, []string{"10.0.0.2", "10.0.0.3"}) || m.byHost["10.0.0.2"] != first {
		t.Errorf("after %d look-ups workers are %v", asked, got)
	}
	now, fails = now.Add(lookupAge), errors.New("no such host")
	if got, err := m.workers(now, lookup); err == nil || len(got) != 2 {
		t.Errorf("a look-up that fails leaves %v, %v", names(got), err)
	}
	now, fails, there = now.Add(lookupAge), nil, nil
	for i := range 200 {
		there = append(there, netip.AddrFrom4([4]byte{10, 1, 0, byte(i)}))
	}
	if got := list(); len(got) != mostWorkers {
		t.Errorf("%d workers of one name, want %d", len(got), mostWorkers)
	}
}

func TestAWorkerOfANameIsCalledByTheNameAtItsAddress(t *testing.T) {
	var host atomic.Value
	live := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		host.Store(r.Host + " " + r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusTeapot)
	}))
	defer live.Close()
	_, port, err := net.SplitHostPort(live.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions()
	o.Workers, o.Key = []string{"dns+http://lutra.invalid:" + port}, "sesame"
	p := New(o, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, zerolog.Nop())
	defer p.Close()
	p.lookup = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	w := &tts.Work{Prompt: []int32{1}, Limit: 100, Jobs: []tts.Job{{MaxTokens: 4}}}
	given := 0
	p.Source("m", "fp", 10).Generate(t.Context(), w, func(_ int, runs []tts.Run) { given += 1 + len(runs) })
	if want := "lutra.invalid:" + port + " Bearer sesame"; host.Load() != want || given != 1 {
		t.Errorf("asked as %q, want %q; %d", host.Load(), want, given)
	}
	if c := p.Stats()["http://127.0.0.1:"+port]; c.Requests[Refused] != 1 || !c.Resting {
		t.Errorf("it is counted as %+v", c)
	}
}

func FuzzAnswersOfWorkers(f *testing.F) {
	f.Add([]byte("data: {\"system_fingerprint\":\"fp\",\"choices\":[{\"index\":0,\"tokens\":[3],\"logprobs\":{\"token_logprobs\":[-1],\"certainty\":[2]},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n"))
	f.Add([]byte("data: {\"choices\":[{\"index\":-1}]}\n\n"))
	f.Add([]byte("data: {\"error\":{\"message\":\"no\"}}\n\n"))
	f.Add([]byte(fmt.Sprintf("data: {\"system_fingerprint\":\"fp\",\"choices\":[%s]}\n\n", strings.Repeat(`{"index":1,"tokens":[1,2,3],"logprobs":{"token_logprobs":[0,0,0],"certainty":[0,0,0]}},`, 3)+`{}`)))
	f.Fuzz(func(t *testing.T, answer []byte) {
		w := &tts.Work{Prompt: []int32{1}, Until: []int32{9}, Limit: 12, Jobs: []tts.Job{{MaxTokens: 4}, {Begun: []int32{5}, MaxTokens: 8}}}
		delivered := [2]int{}
		p := New(DefaultOptions(), &net.TCPAddr{}, zerolog.Nop())
		r := &round{source: &source{pool: p, print: "fp", vocab: 10}, work: w, jobs: make([]progress, 2), done: func(j int, runs []tts.Run) {
			delivered[j]++
			n := 0
			for _, run := range runs {
				for _, tok := range run.Tokens {
					if n++; tok.ID < 0 || tok.ID >= 10 || w.Ends(&w.Jobs[j], tok.ID, n) && n < count(runs) {
						t.Fatalf("job %d has the token %d at %d of %d", j, tok.ID, n, count(runs))
					}
				}
			}
		}}
		a := r.attempt(newWorker("w", "", "", ""), []int{0, 1}, func() {})
		_ = readEvents(strings.NewReader(string(answer)), 1<<20, func(e *event) error {
			_, err := a.take(e, 8)
			return err
		})
		if delivered[0] > 1 || delivered[1] > 1 {
			t.Fatalf("jobs are delivered %v times", delivered)
		}
	})
}
