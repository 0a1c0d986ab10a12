package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/openai"
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
	host := header
	if name, _, err := net.SplitHostPort(header); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	// Requests of HTTP/1.0 may have none; browsers send none of those.
	return host == "" || loopback(host) || slices.Contains(h.names, host)
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
		case cross != nil && cross.Check(r) != nil:
			s.fail(w, r, forbidden("cross_site_request", fmt.Sprintf(
				"Pages of '%s' may not use this server. To allow them, add it to server.cors_origins.", jsonread.Brief([]byte(r.Header.Get("Origin"))))))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func forbidden(code, message string) *apiError {
	return &apiError{Status: http.StatusForbidden, Type: typeInvalid, Code: code, Message: message}
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
		h.Set("Access-Control-Expose-Headers", "X-Request-Id, Request-Id, Retry-After, "+openai.ScalingApplied+", "+openai.Warning)
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
