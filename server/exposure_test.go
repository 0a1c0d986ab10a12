package server

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/models/toy"
)

func keyFile(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAnAddressOfIPv4IsNotOneOfIPv6(t *testing.T) {
	for addr, want := range map[string]string{"0.0.0.0:0": "0.0.0.0", "127.0.0.1:0": "127.0.0.1"} {
		l, err := Listen(addr)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if host, _, err := net.SplitHostPort(l.Addr().String()); err != nil || host != want {
			t.Errorf("Listen(%s) listens on %s, %v", addr, l.Addr(), err)
		}
	}
	for _, addr := range []string{"[::]:0", ":0"} {
		l, err := Listen(addr)
		if err != nil {
			t.Skipf("no IPv6: %v", err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Errorf("Listen(%s) does not listen on IPv4 too: %v", addr, err)
			continue
		}
		conn.Close()
	}
}

func TestAServerThatOthersReachSaysSoOnce(t *testing.T) {
	keys := keyFile(t, "alice: sk-1", 0o600)
	for _, c := range []struct {
		o    Options
		says string // empty: nothing
	}{
		{Options{Exposure: Exposure{Addr: "127.0.0.1:8080"}}, ""},
		{Options{Exposure: Exposure{Addr: "[::1]:8080"}}, ""},
		{Options{Exposure: Exposure{Addr: "localhost:8080", APIKeys: []string{"k"}}}, ""},
		{Options{Exposure: Exposure{Addr: "0.0.0.0:8080"}}, "whoever can reach 0.0.0.0:8080 may use this server without a key, and http"},
		{Options{Exposure: Exposure{Addr: ":8080"}}, "without a key"},
		{Options{Exposure: Exposure{Addr: "192.168.1.7:8080"}}, "without a key"},
		{Options{Exposure: Exposure{Addr: "0.0.0.0:8080", TLSCert: "c"}}, "without a key: set"},
		{Options{Exposure: Exposure{Addr: "0.0.0.0:8080", APIKeys: []string{"k"}}}, "http sends keys and texts in clear"},
		{Options{Exposure: Exposure{Addr: "0.0.0.0:8080", APIKeysFile: keys}}, "http sends keys and texts in clear"},
		{Options{Exposure: Exposure{Addr: "0.0.0.0:8080", APIKeysFile: keys, TLSCert: "c"}}, ""},
	} {
		got := c.o.Warnings()
		if c.says == "" && len(got) > 0 || c.says != "" && (len(got) != 1 || !strings.Contains(got[0], c.says)) {
			t.Errorf("on %s with keys %v, TLS %v: %q, want %q", c.o.Addr, c.o.NeedsKey(), c.o.TLSCert != "", got, c.says)
		}
	}
}

func TestKeysThatEveryUserCanReadAreToldOf(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such bits")
	}
	for mode, n := range map[os.FileMode]int{0o600: 0, 0o640: 0, 0o644: 1, 0o604: 1} {
		o := DefaultOptions()
		o.APIKeysFile = keyFile(t, "sk-1", 0o600)
		if err := os.Chmod(o.APIKeysFile, mode); err != nil {
			t.Fatal(err)
		}
		if err := o.Validate(); err != nil {
			t.Fatal(err)
		}
		if got := o.Warnings(); len(got) != n || n > 0 && !strings.Contains(got[0], o.APIKeysFile) {
			t.Errorf("mode %o: %q", mode, got)
		}
	}
}

func TestAKeyHasItsNameInLogAndMetrics(t *testing.T) {
	log := &logged{}
	f := start(t, says(t, "Hi."), func(o *Options) {
		o.APIKeys, o.APIKeysFile = []string{"sk-inline"}, keyFile(t, "alice: sk-alice\nsk-bare", 0o600)
		o.Log = zerolog.New(log)
	})
	ask := func(method, path, key string) (int, string) { // without a network, so that it is logged when it returns
		r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(chatBody("")))
		r.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		f.Handler().ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for _, key := range []string{"sk-alice", "sk-alice", "sk-bare", "sk-inline", "sk-none", "alice"} {
		status, answer := ask("POST", "/v1/chat/completions", key)
		if want := map[bool]int{true: http.StatusUnauthorized, false: http.StatusOK}[key == "sk-none" || key == "alice"]; status != want {
			t.Errorf("with %s: %d %s, want %d", key, status, answer, want)
		}
	}
	_, metrics := ask("GET", "/metrics", "")
	for _, want := range []string{`lutra_key_requests_total{key="alice"} 2`, `lutra_key_tokens_total{key="alice",kind="completion"} `, `lutra_key_tokens_total{key="alice",kind="prompt"} `} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if n := strings.Count(metrics, "\nlutra_key_requests_total{"); n != 3 {
		t.Errorf("%d keys have series, want 3: clients cannot make up any", n)
	}
	if got := strings.Count(log.String(), `"key":"alice"`); got != 2 {
		t.Errorf("the log names alice %d times, want 2:\n%s", got, log)
	}
	if text := log.String() + metrics; strings.Contains(text, "sk-") {
		t.Errorf("a key is shown:\n%s", text)
	}
}

func TestAServerWithoutItsKeysIsNotMade(t *testing.T) {
	o := DefaultOptions()
	o.APIKeysFile = filepath.Join(t.TempDir(), "none")
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "server.api_keys_file") {
		t.Errorf("Validate = %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("New makes a server that is open to all")
		}
	}()
	New(o)
}

func TestAFileOfKeysAloneWantsAKey(t *testing.T) {
	f := start(t, &toy.Model{}, func(o *Options) { o.APIKeysFile = keyFile(t, "sk-1", 0o600) })
	for header, want := range map[string]int{"": 401, "Bearer sk-2": 401, "Bearer sk-1": 200} {
		if status, _, answer := f.do("GET", "/v1/models", nil, "Authorization", header); status != want {
			t.Errorf("Authorization %q: %d %s, want %d", header, status, answer, want)
		}
	}
}
