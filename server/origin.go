package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// A web page can make its visitor's browser send requests to any server, even one on the visitor's
// own machine. The page's host name can also be made to point to that machine (DNS rebinding). So requests from other sites' pages are refused, and a server that
// listens on this machine alone answers to this machine's names alone.

// site refuses requests under a name that is not the server's on addr, and requests from pages
// of other sites, unless they are configured. Probes are answered under any name: an
// orchestrator asks by address, and the answers reveal nothing.
func site(opt *Options, apis apis, addr string) func(next http.Handler) http.Handler {
	probes := []string{"/healthz", "/readyz", "/health"}
	names, cross := newHosts(opt, addr), crossOrigin(opt.CORSOrigins)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case !names.allow(r.Host) && !slices.Contains(probes, r.URL.Path):
				apis.fail(w, r, forbidden("host_not_allowed", fmt.Sprintf(
					"This server does not answer to the name '%s'. If it should, add the name to server.allowed_hosts.", jsonread.Brief(r.Host))))
			case cross != nil && cross.Check(r) != nil && !names.ownPage(r):
				apis.fail(w, r, crossSite(r))
			default:
				next.ServeHTTP(w, r)
			}
		})
	}
}

// crossSite returns the answer to a page of another site, or to a page that seems to be of one. Where no
// browser has said so, a proxy may have changed the Host header.
func crossSite(r *http.Request) *api.Fault {
	origin := r.Header.Get("Origin")
	message := fmt.Sprintf("Pages of '%s' may not use this server. To allow them, add it to server.cors_origins.", jsonread.Brief(origin))
	if page, err := url.Parse(origin); err == nil && page.Host != "" && r.Header.Get("Sec-Fetch-Site") == "" {
		message = fmt.Sprintf("A page of '%s' has sent this to '%s', as the Host header says, which is another site."+
			" If it is this server's own page behind a proxy, let the proxy pass the Host header on (nginx: proxy_set_header Host $http_host)"+
			" or add '%s' to server.allowed_hosts. If pages of another site may use this server, add their origin to server.cors_origins.",
			jsonread.Brief(origin), jsonread.Brief(r.Host), jsonread.Brief(page.Hostname()))
	}
	return forbidden("cross_site_request", message)
}

func forbidden(code, message string) *api.Fault {
	return api.InvalidStatus(http.StatusForbidden, code, "", message)
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
func cors(origins []string, next http.Handler) http.Handler {
	if len(origins) == 0 {
		return next
	}
	all := slices.Contains(origins, anyOrigin)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		h := w.Header()
		h.Add("Vary", "Origin")
		if origin == "" || !all && !slices.Contains(origins, origin) {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "X-Request-Id, Request-Id, Retry-After, "+rateHeaders+", "+api.ScalingApplied+", "+api.Warning)
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
