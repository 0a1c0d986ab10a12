package bench

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lutra-lm/lutra/internal/usage"
)

// serverPeer is a server under the same load as ours.
type serverPeer struct {
	name     string
	load     LoadOptions
	progress io.Writer
}

func (s *serverPeer) label() (name, command string) { return s.name, s.load.URL }

// measure loads the server once, with new prompts.
func (s *serverPeer) measure(ctx context.Context, _ string) (speeds, error) {
	r, err := loadTest(ctx, s.load, s.progress)
	if err == nil && r.Errors > 0 {
		err = errors.New(r.FirstError)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	s.load.first += s.load.Requests
	results := speeds{
		serverTests[0]: r.TokensPerSecond, serverTests[1]: r.TotalPerSecond,
		serverTests[2]: r.TTFT.P50, serverTests[3]: r.TPOT.P50, serverTests[4]: r.Latency.P90,
	}
	for test, v := range results {
		if v == 0 {
			delete(results, test) // answers of one token have no time per token
		}
	}
	return results, nil
}

var serverTests = []string{"completion tok/s", "total tok/s", "TTFT p50 ms", "TPOT p50 ms", "latency p90 ms"}

// compareServers loads the servers of --url and --compare alternately.
func compareServers(ctx context.Context, o LoadOptions, errOut io.Writer) (Report, error) {
	if o.Rounds < 1 {
		return nil, usage.Errorf("--rounds must be positive")
	}
	peers, err := (&PeerOptions{Compare: o.Compare}).peers()
	if err != nil {
		return nil, err
	}
	ours := &serverPeer{o.URL, o, errOut}
	var others []peer
	for _, p := range peers {
		load := o
		name, url := p.label()
		load.URL = url
		others = append(others, &serverPeer{name, load, errOut})
	}
	return compare(ctx, "", o.Rounds, serverTests, func() (speeds, error) { return ours.measure(ctx, "") }, others, func() {})
}
