package server

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// A web page can make its visitor's browser send requests to any server, even one on
// the visitor's own machine, and its host name can be made to point to that machine
// (DNS rebinding). So requests from other sites' pages are refused, and a server that
// listens on this machine alone answers to this machine's names alone.

// anyOrigin in Options.CORSOrigins, or AllowedHosts, stands for all.
const anyOrigin = "*"

// hosts are the names under which the server may be called.
type hosts struct {
	local bool     // this machine's alone: the server is not reached from elsewhere
	names []string // Options.AllowedHosts, in small letters
}

func newHosts(opt *Options) hosts {
	h := hosts{local: listensLocally(opt.Addr)}
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

// splitHost is the name of a Host header in small letters, and its port, if it has one.
func splitHost(header string) (name, port string) {
	name = header
	if n, p, err := net.SplitHostPort(header); err == nil {
		name, port = n, p
	}
	return strings.ToLower(strings.Trim(name, "[]")), port
}

// ownPage tells whether a request comes from the server's own page behind a proxy that
// has changed the Host header. Over plain http a browser sends no Sec-Fetch-Site, and
// Host and Origin differ where the proxy drops the port (nginx's $host) or puts its own
// name for the server (nginx's default). A page cannot forge its Origin, so one under a
// configured name is not foreign, wherever the proxy sent the request; without one, the
// names must agree, and a port that Host does have is that of another server's page.
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

// site refuses requests under a name that is not the server's, and those from pages
// of other sites, unless they are configured. Probes are answered under any name: an
// orchestrator asks by address, and the answers reveal nothing.
func (s *Server) site(next http.Handler) http.Handler {
	probes := []string{"/healthz", "/readyz", "/health"}
	cross := crossOrigin(s.opt.CORSOrigins)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !s.hosts.allow(r.Host) && !slices.Contains(probes, r.URL.Path):
			s.fail(w, r, forbidden("host_not_allowed", fmt.Sprintf(
				"This server does not answer to the name '%s'. If it should, add the name to server.allowed_hosts.", jsonread.Brief([]byte(r.Host)))))
		case cross != nil && cross.Check(r) != nil && !s.hosts.ownPage(r):
			s.fail(w, r, crossSite(r))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// crossSite is the answer to a page of another site, or to one that seems to be: where no
// browser has said so, a proxy may have changed the Host header.
func crossSite(r *http.Request) *api.Fault {
	brief := func(s string) string { return jsonread.Brief([]byte(s)) }
	origin := r.Header.Get("Origin")
	message := fmt.Sprintf("Pages of '%s' may not use this server. To allow them, add it to server.cors_origins.", brief(origin))
	if page, err := url.Parse(origin); err == nil && page.Host != "" && r.Header.Get("Sec-Fetch-Site") == "" {
		message = fmt.Sprintf("A page of '%s' has sent this to '%s', as the Host header says, which is another site."+
			" If it is this server's own page behind a proxy, let the proxy pass the Host header on (nginx: proxy_set_header Host $http_host)"+
			" or add '%s' to server.allowed_hosts. If pages of another site may use this server, add their origin to server.cors_origins.",
			brief(origin), brief(r.Host), brief(page.Hostname()))
	}
	return forbidden("cross_site_request", message)
}

func forbidden(code, message string) *api.Fault {
	return api.Invalids(http.StatusForbidden, code, "", message)
}

// crossOrigin checks where browsers' requests come from; nil: anywhere.
func crossOrigin(trusted []string) *http.CrossOriginProtection {
	if slices.Contains(trusted, anyOrigin) {
		return nil
	}
	p := http.NewCrossOriginProtection()
	for _, origin := range trusted {
		_ = p.AddTrustedOrigin(origin) // Validate has tried it
	}
	return p
}

// cors lets browsers of the configured origins call.
func (s *Server) cors(next http.Handler) http.Handler {
	if len(s.opt.CORSOrigins) == 0 {
		return next
	}
	all := slices.Contains(s.opt.CORSOrigins, anyOrigin)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		h := w.Header()
		h.Add("Vary", "Origin")
		if origin == "" || !all && !slices.Contains(s.opt.CORSOrigins, origin) {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "X-Request-Id, Request-Id, Retry-After, "+api.ScalingApplied+", "+api.Warning)
		if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
		h.Set("Access-Control-Allow-Headers", "*, Authorization")
		if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
			h.Set("Access-Control-Allow-Headers", asked)
		}
		h.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
	})
}
