package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/toy"
)

func TestAServerOfOneMachineAnswersToItsNamesAlone(t *testing.T) {
	ask := func(f *fixture, path, host string) (int, []byte) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "GET", f.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		return f.send(req)
	}
	local := start(t, &toy.Model{}, func(o *Options) { o.AllowedHosts = []string{"Box.example"} })
	for host, want := range map[string]int{
		"localhost": 200, "localhost:8080": 200, "LocalHost.": 200, "chat.localhost:1": 200, "127.0.0.1:8080": 200, "127.1.2.3": 200, "[::1]:8080": 200, "[::1]": 200,
		"box.example": 200, "BOX.example:99": 200,
		"evil.example": 403, "evil.example:8080": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403, "10.0.0.1": 403, "xlocalhost": 403,
	} {
		status, answer := ask(local, "/v1/models", host)
		if status != want {
			t.Errorf("Host %q: %d, want %d", host, status, want)
		}
		if want == 403 {
			wantError(t, host, status, answer, 403, "host_not_allowed", "")
			if !strings.Contains(string(answer), "server.allowed_hosts") {
				t.Errorf("Host %q: %s does not say how to allow it", host, answer)
			}
		}
		if status, _ := ask(local, "/readyz", host); status != 200 {
			t.Errorf("a probe for %q: %d, want 200: orchestrators ask by address", host, status)
		}
	}
	for _, c := range []struct {
		addr    string
		allowed []string
		host    string
		want    int
	}{
		{"0.0.0.0:8080", nil, "anything.example", 200},
		{":8080", nil, "anything.example", 200},
		{"0.0.0.0:8080", []string{"a.example"}, "b.example", 403},
		{"0.0.0.0:8080", []string{"a.example"}, "a.example:8080", 200},
		{"localhost:8080", nil, "b.example", 403},
		{"[::1]:8080", nil, "b.example", 403},
		{"127.0.0.1:8080", []string{"*"}, "b.example", 200},
	} {
		f := start(t, &toy.Model{}, func(o *Options) { o.Addr, o.AllowedHosts = c.addr, c.allowed })
		if status, _ := ask(f, "/v1/models", c.host); status != c.want {
			t.Errorf("listening on %s with %v allowed, Host %q: %d, want %d", c.addr, c.allowed, c.host, status, c.want)
		}
	}
}

func TestPagesOfOtherSitesCannotUseTheServer(t *testing.T) {
	f := start(t, says(t, "Hi."), func(o *Options) { o.CORSOrigins = []string{"https://chat.example"} })
	own := f.url
	for _, c := range []struct {
		why     string
		headers []string
		status  int
		code    string
	}{
		{"a program", nil, 200, ""},
		{"a program with a media type of its own", []string{"Content-Type", "text/plain"}, 200, ""},
		{"the server's own page", []string{"Origin", own, "Sec-Fetch-Site", "same-origin", "Content-Type", "application/json"}, 200, ""},
		{"the server's own page in an old browser", []string{"Origin", own, "Content-Type", "application/json"}, 200, ""},
		{"the server's own page without a media type", []string{"Origin", own}, 415, "unsupported_media_type"},
		{"the server's own page, sending a form", []string{"Origin", own, "Content-Type", "text/plain"}, 415, "unsupported_media_type"},
		{"a page that is configured", []string{"Origin", "https://chat.example", "Sec-Fetch-Site", "cross-site", "Content-Type", "application/json"}, 200, ""},
		{"a page that is configured, without a media type", []string{"Origin", "https://chat.example", "Sec-Fetch-Site", "cross-site"}, 415, "unsupported_media_type"},
		{"a foreign page", []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site", "Content-Type", "application/json"}, 403, "cross_site_request"},
		{"a foreign page in an old browser", []string{"Origin", "https://evil.example", "Content-Type", "application/json"}, 403, "cross_site_request"},
		{"a page of another port", []string{"Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site", "Content-Type", "application/json"}, 403, "cross_site_request"},
		{"a file or a sandboxed frame", []string{"Origin", "null", "Content-Type", "application/json"}, 403, "cross_site_request"},
		{"a foreign page that hides its origin", []string{"Sec-Fetch-Site", "cross-site"}, 403, "cross_site_request"},
	} {
		for _, path := range []string{"/v1/chat/completions", "/apply-template"} {
			status, _, answer := f.do("POST", path, strings.NewReader(chatBody("")), c.headers...)
			if status != c.status {
				t.Errorf("%s: %s: %d %s, want %d", path, c.why, status, answer, c.status)
			}
			if c.code != "" {
				wantError(t, c.why, status, answer, c.status, c.code, "")
			}
		}
	}
	if status, _, _ := f.do("GET", "/", nil, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"); status != 200 {
		t.Errorf("a link on another page: %d, want 200", status)
	}
	all := start(t, says(t, "Hi."), func(o *Options) { o.CORSOrigins = []string{"*"} })
	status, h, _ := all.do("POST", "/v1/chat/completions", strings.NewReader(chatBody("")), "Origin", "https://any.example", "Sec-Fetch-Site", "cross-site", "Content-Type", "application/json")
	if status != 200 || h.Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("with all origins allowed: %d %v", status, h)
	}
}

func TestThePageBehindAProxyIsTheServersOwn(t *testing.T) {
	named := start(t, says(t, "Hi."), func(o *Options) { o.AllowedHosts = []string{"Home.lan"} })
	open := start(t, says(t, "Hi."), func(o *Options) { o.Addr = "0.0.0.0:8080" })
	every := start(t, says(t, "Hi."), func(o *Options) { o.AllowedHosts = []string{"*"} })
	for _, c := range []struct {
		why                string
		f                  *fixture
		origin, host, site string
		status             int
	}{
		{"nginx with $http_host", named, "http://home.lan:9320", "home.lan:9320", "", 200},
		{"nginx with $host", named, "http://home.lan:9320", "home.lan", "", 200},
		{"nginx with nothing", named, "http://home.lan:9320", "127.0.0.1:8080", "", 200},
		{"the name in capitals", named, "http://HOME.lan:9320", "127.0.0.1:8080", "", 200},
		{"nginx with $host:$server_port", named, "http://home.lan", "home.lan:80", "", 200},
		{"the same over https in an old browser", named, "https://home.lan", "home.lan:443", "", 200},
		{"a browser that says so", named, "https://home.lan", "127.0.0.1:8080", "same-origin", 200},
		{"a page on another port of that machine", named, "http://home.lan:9999", "home.lan:9320", "", 403},
		{"the same, as the browser says", named, "https://home.lan:9999", "home.lan", "same-site", 403},
		{"the same, sent elsewhere", named, "https://home.lan:9999", "127.0.0.1:8080", "cross-site", 403},
		{"a name below an allowed one", named, "http://evil.home.lan", "home.lan", "", 403},
		{"a name that ends like an allowed one", named, "http://evilhome.lan", "home.lan", "", 403},
		{"a name before an allowed one", named, "http://home.lan.evil.example", "home.lan", "", 403},
		{"an allowed name as a user", named, "http://home.lan@evil.example", "home.lan", "", 403},
		{"no name", named, "null", "home.lan", "", 403},
		{"DNS rebinding", named, "http://evil.example", "evil.example", "", 403},
		{"DNS rebinding to another port", named, "http://evil.example:9999", "evil.example", "", 403},
		{"a foreign page", named, "http://evil.example", "127.0.0.1:8080", "", 403},
		{"a server for all names, behind nginx with $host", open, "http://home.lan:9320", "home.lan", "", 200},
		{"a server for all names, behind nginx with nothing", open, "http://home.lan:9320", "lutra:8080", "", 403},
		{"a foreign page at a server for all names", open, "http://evil.example", "home.lan", "", 403},
		{"a foreign page where all names are allowed", every, "http://evil.example", "home.lan", "", 403},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", c.f.url+"/v1/chat/completions", strings.NewReader(chatBody("")))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Origin", c.origin)
		if c.site != "" {
			req.Header.Set("Sec-Fetch-Site", c.site)
		}
		if status, answer := c.f.send(req); status != c.status {
			t.Errorf("%s: a page of %s asks %s: %d %s, want %d", c.why, c.origin, c.host, status, answer, c.status)
		}
		if c.status != 200 { // and whatever passes must be JSON, for which browsers ask first
			continue
		}
		req.Header.Set("Content-Type", "text/plain")
		req.Body = http.NoBody
		if status, answer := c.f.send(req); status != 415 {
			t.Errorf("%s: without JSON: %d %s, want 415", c.why, status, answer)
		}
	}
}

func TestARefusedPageHearsOfTheHeaderThatAProxyChanged(t *testing.T) {
	f := start(t, says(t, "Hi."), func(o *Options) { o.Addr = "0.0.0.0:8080" })
	ask := func(site ...string) string {
		headers := append([]string{"Origin", "http://home.lan:9320", "Content-Type", "application/json"}, site...)
		status, _, answer := f.do("POST", "/v1/chat/completions", strings.NewReader(chatBody("")), headers...)
		wantError(t, "behind a proxy", status, answer, 403, "cross_site_request", "")
		return string(answer)
	}
	got := ask()
	for _, want := range []string{"Host header", "proxy_set_header Host $http_host", "'home.lan' to server.allowed_hosts", strings.TrimPrefix(f.url, "http://")} {
		if !strings.Contains(got, want) {
			t.Errorf("%s does not say %q", got, want)
		}
	}
	if got := ask("Sec-Fetch-Site", "cross-site"); strings.Contains(got, "proxy") || !strings.Contains(got, "server.cors_origins") {
		t.Errorf("where the browser says that the page is foreign: %s", got)
	}
}

func TestAnEncodedBodyIsRefusedByName(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	status, _, answer := f.do("POST", "/tokenize", strings.NewReader("{}"), "Content-Encoding", "gzip")
	wantError(t, "gzip", status, answer, 415, "unsupported_media_type", "")
}
