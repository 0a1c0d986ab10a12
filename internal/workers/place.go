package workers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// place is one entry of Options.Workers.
type place struct {
	scheme, host, port string
	many               bool // host is a name whose addresses are workers
}

// byName begins an entry that names many workers.
const byName = "dns+"

// parsePlace reads an entry.
func parsePlace(text string) (place, error) {
	rest, many := strings.CutPrefix(text, byName)
	u, err := url.Parse(rest)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return place{}, fmt.Errorf("%.80q is not of the form http://HOST:PORT or dns+http://NAME:PORT", text)
	}
	if u.User != nil {
		return place{}, errors.New("an address holds no secrets; the key is search.worker_key")
	}
	if u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return place{}, fmt.Errorf("%.80q has more than a host and a port", text)
	}
	p := place{scheme: u.Scheme, host: u.Hostname(), port: u.Port(), many: many}
	if p.port == "" {
		p.port = map[string]string{"http": "80", "https": "443"}[p.scheme]
	}
	if _, err := netip.ParseAddr(p.host); many && err == nil {
		return place{}, fmt.Errorf("%.80q is an address, not a name: leave %s out", text, byName)
	}
	if p.host == "" {
		return place{}, fmt.Errorf("%.80q has no host", text)
	}
	return p, nil
}

// address returns host and port of a worker there.
func (p *place) address(host string) string { return net.JoinHostPort(host, p.port) }

// url returns the address that requests are sent to.
func (p *place) url() string { return p.scheme + "://" + p.address(p.host) + "/v1/completions" }

// self knows by which addresses this server is reached.
type self struct {
	hosts []netip.Addr
	port  string
}

// newSelf describes a server that listens at an address.
func newSelf(listening net.Addr) self {
	host, port, err := net.SplitHostPort(listening.String())
	if err != nil {
		return self{}
	}
	s := self{port: port}
	if ip, err := netip.ParseAddr(host); err == nil && !ip.IsUnspecified() {
		s.hosts = append(s.hosts, ip.Unmap())
		return s
	}
	addrs, _ := net.InterfaceAddrs() // without them it would ask itself too, which does no harm
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			s.hosts = append(s.hosts, prefix.Addr().Unmap())
		}
	}
	return s
}

// is reports whether a host, if it is an address, and a port are this server.
func (s *self) is(host, port string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && port == s.port && slices.Contains(s.hosts, ip.Unmap())
}

// How names are looked up.
const (
	lookupAge     = 10 * time.Second // that addresses may have
	lookupTimeout = time.Second
)

// members are the workers at one place.
type members struct {
	place
	make func(host string) *worker // nil for this server itself

	mu     sync.Mutex // held while a name is looked up: who comes meanwhile wants the result
	at     time.Time  // of the latest look-up
	byHost map[string]*worker
	list   []*worker
}

// workers returns the workers of the place now. An address that is gone takes its worker
// with it.
func (m *members) workers(now time.Time, lookup func(ctx context.Context, host string) ([]netip.Addr, error)) ([]*worker, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.many {
		if m.list == nil {
			m.list = []*worker{m.make(m.host)}
		}
		return m.list, nil
	}
	if !m.at.IsZero() && now.Sub(m.at) < lookupAge {
		return m.list, nil
	}
	m.at = now
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	ips, err := lookup(ctx, m.host)
	if err != nil {
		return m.list, fmt.Errorf("workers: looking up %s: %w", m.host, err)
	}
	slices.SortFunc(ips, netip.Addr.Compare)
	hosts := map[string]*worker{}
	var list []*worker
	ips = slices.Compact(ips)
	for _, ip := range ips[:min(len(ips), mostWorkers)] {
		host := ip.Unmap().String()
		w := m.byHost[host]
		if w == nil {
			w = m.make(host)
		}
		hosts[host] = w
		list = append(list, w)
	}
	for host, w := range m.byHost {
		if hosts[host] == nil && w != nil {
			w.client.CloseIdleConnections()
		}
	}
	m.byHost, m.list = hosts, list
	return list, nil
}
