package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/internal/clienttest"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/server"
)

// proxy is a program that passes requests on, with a configuration of the documents.
type proxy struct {
	name    string
	block   string // of docs/serving.md
	started string // what its log says when it listens
	// configure makes a whole configuration of the block, and args start the program with it.
	configure func(block, dir, cert, key string) string
	args      func(dir, file string) []string
}

var proxies = []proxy{
	{
		name: "nginx", block: "server {", started: "start worker process",
		configure: func(block, dir, cert, key string) string {
			block = strings.NewReplacer("ssl_certificate_key key.pem", "ssl_certificate_key "+key, "ssl_certificate cert.pem", "ssl_certificate "+cert).Replace(block)
			temporary := ""
			for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
				temporary += fmt.Sprintf("%s_temp_path %s;\n", kind, filepath.Join(dir, kind))
			}
			user := ""
			if os.Getuid() == 0 {
				user = "user root;\n"
			}
			return user + "daemon off;\npid " + filepath.Join(dir, "pid") + ";\nerror_log stderr notice;\nevents {}\nhttp {\naccess_log off;\n" + temporary + block + "\n}\n"
		},
		args: func(dir, file string) []string { return []string{"-p", dir, "-e", "stderr", "-c", file} },
	},
	{
		name: "caddy", block: "chat.example {", started: "serving initial configuration",
		configure: func(block, _, cert, key string) string {
			return "{\nadmin off\nauto_https off\n}\n" + strings.Replace(block, " {\n", " {\ntls "+cert+" "+key+"\n", 1) + "\n"
		},
		args: func(_, file string) []string { return []string{"run", "--adapter", "caddyfile", "--config", file} },
	},
}

// start runs the proxy until the test ends.
func (p *proxy) start(t *testing.T, block string) {
	t.Helper()
	dir := t.TempDir()
	cert, key := selfSigned(t, dir)
	file := filepath.Join(dir, "conf")
	if err := os.WriteFile(file, []byte(p.configure(block, dir, cert, key)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), p.name, p.args(dir, file)...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // nginx's workers end with it
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	listens, ended, said := make(chan struct{}), make(chan struct{}), ""
	go func() {
		defer close(ended)
		found := false
		for lines := bufio.NewScanner(log); lines.Scan(); {
			said += lines.Text() + "\n"
			if !found && strings.Contains(lines.Text(), p.started) {
				found = true
				close(listens)
			}
		}
	}()
	t.Cleanup(func() { // the test's context has ended
		<-ended
		_ = cmd.Wait() // by the signal
	})
	select {
	case <-listens:
	case <-ended:
		t.Fatalf("%s ends:\n%s", p.name, said)
	}
}

// freePort is one on which nobody listens, below those that systems hand out to whoever asks
// for any: nobody else takes it before it is used.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(10_000 + rand.IntN(20_000))
		if l, err := net.Listen("tcp", ":"+port); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// plain is nginx's block for http on a port, with another Host header: empty: none.
func plain(block, host string) string {
	block = regexp.MustCompile(`(?m)^\s*ssl_.*\n`).ReplaceAllString(strings.Replace(block, " ssl;", ";", 1), "")
	if host == "" {
		return regexp.MustCompile(`(?m)^\s*proxy_set_header Host.*\n`).ReplaceAllString(block, "")
	}
	return strings.ReplaceAll(block, "$http_host", host)
}

func TestExamplesOfProxiesPassChatsOn(t *testing.T) {
	sweep.Full(t)
	if testing.Short() {
		t.Skip("starts proxies")
	}
	text := document(t, "serving.md")
	find := func(lang, beginning string) string {
		t.Helper()
		for _, block := range blocks(text, lang) {
			if strings.Contains(block, beginning) {
				return block
			}
		}
		t.Fatalf("docs/serving.md shows no %s with %q", lang, beginning)
		return ""
	}
	lutra := serving(t, "--config", configFile(t, find("yaml", "allowed_hosts")), "--addr", "127.0.0.1:0", "--model", "lutra-tiny-s")
	scripted, seen := scriptedStream(t)
	// Caddy 2.6, which Debian 12 has, closes the connection amid a stream now and then.
	tries := map[string]int{"nginx": 1, "caddy": 6}
	for _, p := range proxies {
		block := find(p.name, p.block)
		variants := map[string]string{"https": block}
		if p.name == "nginx" {
			variants["http"] = plain(block, "$http_host")
			variants["http, Host without the port"] = plain(block, "$host")
			variants["http, Host with nginx's port"] = plain(block, "$host:$server_port")
			variants["http, no Host"] = plain(block, "")
		}
		for what, text := range variants {
			t.Run(p.name+" "+what, func(t *testing.T) {
				clienttest.Programs(t, p.name)
				through := func(base string) *browser {
					t.Helper()
					port := freePort(t)
					p.start(t, strings.NewReplacer("listen 443", "listen 127.0.0.1:"+port, "chat.example {", "chat.example:"+port+" {",
						"127.0.0.1:8080", strings.TrimPrefix(base, "http://")).Replace(text))
					scheme, _, _ := strings.Cut(what, ",")
					return &browser{origin: scheme + "://chat.example:" + port, client: clientTo(port)}
				}
				pages, streams := through(lutra.base), through(scripted)
				for _, path := range []string{"/", "/lutra/"} {
					pages.usesPage(t, path)
					var err error
					for range tries[p.name] {
						if err = streams.streams(t, path, seen); err == nil {
							break
						}
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

// browser asks as one does for a page of its origin.
type browser struct {
	origin string
	client *http.Client
}

// clientTo finds a port of this machine under every name.
func clientTo(port string) *http.Client {
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the test's own certificate
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port)
		},
	}}
}

func (b *browser) ask(t *testing.T, method, path string, body []byte) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, b.origin+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == "POST" {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Origin", b.origin)
	}
	if strings.HasPrefix(b.origin, "https") { // plain http bears none
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	resp, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// usesPage loads the page with its files, lists the models and chats.
func (b *browser) usesPage(t *testing.T, at string) {
	t.Helper()
	get := func(method, path string, body []byte) string {
		t.Helper()
		resp := b.ask(t, method, path, body)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s %s%s: %d %s, %v", method, b.origin, path, resp.StatusCode, text, err)
		}
		return string(text)
	}
	page := get("GET", at, nil)
	files := regexp.MustCompile(`(?:src|href)="([^"#:]+)"`).FindAllStringSubmatch(page, -1)
	if len(files) == 0 {
		t.Errorf("the page at %s names no files", at)
	}
	for _, m := range files {
		if strings.HasPrefix(m[1], "/") {
			t.Errorf("the page names %s, which is elsewhere when it is at %s", m[1], at)
			continue
		}
		get("GET", at+strings.TrimPrefix(m[1], "./"), nil)
	}
	if models := get("GET", at+"v1/models", nil); !strings.Contains(models, "lutra-tiny-s") {
		t.Errorf("models at %s: %s", at, models)
	}
	answer := get("POST", at+"v1/chat/completions", []byte(`{"temperature": 0, "messages": [{"role": "user", "content": "What is 12 * 7?"}]}`))
	if !strings.Contains(answer, "84") {
		t.Errorf("the answer at %s is %s", at, answer)
	}
}

// scriptedStream is a server that writes one event, and the next once the client has seen it. seen has, when a request
// begins, a token for each event that its client has read.
func scriptedStream(t *testing.T) (base string, seen *atomic.Pointer[chan struct{}]) {
	seen = new(atomic.Pointer[chan struct{}])
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read := *seen.Load()
		if n, err := io.Copy(io.Discard, r.Body); err != nil || n != server.DefaultOptions().MaxBody {
			http.Error(w, fmt.Sprintf("%d bytes: %v", n, err), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{"first", "second"} {
			fmt.Fprintf(w, "data: %s\n\n", event)
			if err := http.NewResponseController(w).Flush(); err != nil {
				return // the proxy has gone
			}
			select {
			case <-read:
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, seen
}

// streams sends the largest body and reads a stream event by event.
func (b *browser) streams(t *testing.T, at string, seen *atomic.Pointer[chan struct{}]) error {
	t.Helper()
	read := make(chan struct{}, 2)
	seen.Store(&read)
	resp := b.ask(t, "POST", at+"v1/chat/completions", bytes.Repeat([]byte(" "), int(server.DefaultOptions().MaxBody)))
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("a body of server.max_body at %s: %s", at, resp.Status)
	}
	events := bufio.NewScanner(resp.Body)
	for _, want := range []string{"first", "second"} {
		for events.Scan() && events.Text() == "" {
		}
		if events.Text() != "data: "+want {
			return fmt.Errorf("at %s the proxy keeps %q back: %q, %w", at, want, events.Text(), cmp.Or(events.Err(), io.EOF))
		}
		read <- struct{}{}
	}
	return nil
}

func TestTheTimesAndSizesOfProxiesAreTheServers(t *testing.T) {
	text := document(t, "serving.md")
	o := server.DefaultOptions()
	for setting, want := range map[string]string{
		"proxy_read_timeout":   fmt.Sprintf("%.0fm", o.RequestTimeout.Minutes()),
		"client_max_body_size": fmt.Sprintf("%dm", o.MaxBody>>20),
	} {
		found := regexp.MustCompile(setting+` (\w+);`).FindAllStringSubmatch(text, -1)
		if len(found) == 0 {
			t.Errorf("docs/serving.md does not set %s", setting)
		}
		for _, m := range found {
			if m[1] != want {
				t.Errorf("docs/serving.md: %s %s, want %s", setting, m[1], want)
			}
		}
	}
}
