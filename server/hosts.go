package server

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/server/admission"
)

// hosts are the names under which the server may be called.
type hosts struct {
	local bool     // this machine's alone: the server is not reached from elsewhere
	names []string // Options.AllowedHosts, in small letters
}

// newHosts returns the hosts of a server with these options that listens on addr.
func newHosts(opt *Options, addr string) *hosts {
	h := &hosts{local: listensLocally(addr)}
	for _, name := range opt.AllowedHosts {
		h.names = append(h.names, strings.ToLower(name))
	}
	return h
}

// listensLocally tells whether an address is reached from this machine alone.
func listensLocally(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && loopback(host)
}

// loopback tells whether host is this machine, whoever resolves it.
func loopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return host == "localhost" || strings.HasSuffix(host, ".localhost") // RFC 6761
}

// allow tells whether a request may have that Host header.
func (h *hosts) allow(header string) bool {
	if !h.local && len(h.names) == 0 || slices.Contains(h.names, anyOrigin) {
		return true
	}
	name, _ := splitHost(header)
	// Requests of HTTP/1.0 may have none; browsers send none of those.
	return name == "" || loopback(name) || slices.Contains(h.names, name)
}

// splitHost returns the name of a Host header in small letters, and its port, if it has one.
func splitHost(header string) (name, port string) {
	name = header
	if n, p, err := net.SplitHostPort(header); err == nil {
		name, port = n, p
	}
	return strings.ToLower(strings.Trim(name, "[]")), port
}

// ownPage tells whether a request comes from the server's own page behind a proxy that
// has changed the Host header. Over plain http a browser sends no Sec-Fetch-Site.
// Host and Origin differ where the proxy drops the port (nginx's $host) or puts its own
// name for the server (nginx's default). A page cannot forge its Origin, so one under a
// configured name is not foreign, wherever the proxy sent the request. Without a configured name, the
// names must agree, and a port in Host belongs to another server's page.
// Whatever passes here must still be JSON, which a page of another origin cannot send
// unless the server answers its preflight.
func (h *hosts) ownPage(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Site") != "" { // the browser itself has compared
		return false
	}
	origin, err := url.Parse(r.Header.Get("Origin"))
	if err != nil || origin.Host == "" {
		return false
	}
	page := strings.ToLower(origin.Hostname())
	name, port := splitHost(r.Host)
	if page != name {
		return slices.Contains(h.names, page)
	}
	standard := map[string]string{"http": "80", "https": "443"}[origin.Scheme]
	return port == "" || port == cmp.Or(origin.Port(), standard)
}

// Warnings returns what an operator should hear of at the start, a line each: who can reach
// the server, and who can read its keys.
func (o *Options) Warnings() (list []string) {
	if !listensLocally(o.Addr) {
		clear := o.TLSCert == ""
		switch {
		case !o.NeedsKey() && clear:
			list = append(list, fmt.Sprintf("whoever can reach %s may use this server without a key, and http sends all texts in clear: set server.api_keys_file and server.tls_cert, or listen on 127.0.0.1", o.Addr))
		case !o.NeedsKey():
			list = append(list, fmt.Sprintf("whoever can reach %s may use this server without a key: set server.api_keys_file, or listen on 127.0.0.1", o.Addr))
		case clear:
			list = append(list, fmt.Sprintf("http sends keys and texts in clear to whoever listens on the way to %s: set server.tls_cert and server.tls_key, or put a proxy with TLS before a server on 127.0.0.1", o.Addr))
		}
	}
	const others = 0o007
	if o.DebugAddr != "" && !listensLocally(o.DebugAddr) {
		list = append(list, fmt.Sprintf("whoever can reach %s sees what this server does, without a key: let server.debug_addr be one of 127.0.0.1", o.DebugAddr))
	}
	plain := slices.ContainsFunc(o.credentials, func(c admission.Credential) bool { return c.Plain })
	if info, err := os.Stat(o.APIKeysFile); err == nil && plain && info.Mode().Perm()&others != 0 && runtime.GOOS != "windows" { // which has no such bits
		list = append(list, fmt.Sprintf("every user of this machine can read the keys in %s: chmod o= would forbid it", o.APIKeysFile))
	}
	return list
}

// AnswersTo tells whether the server answers requests to a host of this name.
func (o *Options) AnswersTo(host string) bool {
	return newHosts(o, o.Addr).allow(host)
}
