package cli

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/server"
)

// live is a `lutra serve` of this process.
type live struct {
	base, try string // its address, and the command that it says to try
	stop      func() error
	mu        sync.Mutex
	log       []map[string]any
}

var readyLine = regexp.MustCompile(`^ready on .*?(https?://[^/\s]+)`)

// serving starts a server and waits until it is ready. It stops when the test ends, or
// when stop is called.
func serving(t *testing.T, args ...string) *live {
	t.Helper()
	ctx, cancel := context.WithCancelCause(withDocuments(context.Background(), os.DirFS("../..")))
	logRead, logWrite := io.Pipe()
	cmd := Command(io.Discard, logWrite)
	cmd.SetArgs(append([]string{"serve"}, args...))
	result := make(chan error, 1)
	go func() {
		result <- cmd.ExecuteContext(ctx)
		logWrite.Close()
	}()
	s := &live{}
	ready, logged := make(chan struct{}), make(chan struct{})
	go func() { // reads to the end, so that logging never blocks the server
		defer close(logged)
		for lines := bufio.NewScanner(logRead); lines.Scan(); {
			var e map[string]any
			if json.Unmarshal(lines.Bytes(), &e) != nil {
				continue
			}
			s.mu.Lock()
			s.log = append(s.log, e)
			message, _ := e["message"].(string)
			if m := readyLine.FindStringSubmatch(message); m != nil && s.base == "" {
				s.base = m[1]
				s.try, _ = e["try"].(string)
				close(ready)
			}
			s.mu.Unlock()
		}
	}()
	s.stop = sync.OnceValue(func() error {
		cancel(server.ErrAtOnce)
		err := <-result
		<-logged
		return err
	})
	t.Cleanup(func() { _ = s.stop() })
	select {
	case <-ready:
	case <-logged:
		t.Fatalf("serve %q: %v", args, s.stop())
	}
	return s
}

// requests are the paths of the requests logged at a level. The server must have stopped.
func (s *live) requests(level string) (paths []string) {
	for _, e := range s.log {
		if e["message"] == "request" && e["level"] == level {
			path, _ := e["path"].(string)
			paths = append(paths, path)
		}
	}
	return paths
}

// selfSigned writes a certificate for this machine that nobody trusts.
func selfSigned(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	pub, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, pub, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		var text strings.Builder
		if err := pem.Encode(&text, &pem.Block{Type: kind, Bytes: der}); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", pkcs8)
}

// configFile writes a configuration file.
func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// models returns the names of the models that the server lists.
func (l *live) models(t *testing.T) (names []string) {
	t.Helper()
	resp, err := http.Get(l.base + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var list struct {
		Data []struct{ ID string } `json:"data"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	return names
}
