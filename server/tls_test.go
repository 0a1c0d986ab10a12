package server

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func TestTLSIsServedWithTheGivenCertificate(t *testing.T) {
	cert, key, pool := certificate(t)
	f := start(t, says(t, "Hi."), func(o *Options) { o.TLSCert, o.TLSKey = cert, key })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	served := make(chan error, 1)
	go func() { served <- f.Serve(ctx, l) }()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	resp, err := (&http.Client{Transport: transport}).Post("https://"+l.Addr().String()+"/v1/chat/completions", "application/json", strings.NewReader(chatBody(`,"stream":true`)))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.ProtoMajor != 2 {
		t.Errorf("HTTP/%d, %v, want a stream over HTTP/2", resp.ProtoMajor, err)
	}
	resp.Body.Close()
	transport.CloseIdleConnections()
	if got := chatChunks(t, answer, 1, false)[0]; got != "Hi." {
		t.Errorf("over TLS it says %q", got)
	}
	stop(ErrAtOnce)
	if err := <-served; err != nil {
		t.Errorf("Serve() = %v", err)
	}
}

func TestACertificateIsReadAgainWhenItChanges(t *testing.T) {
	cert, key, _ := certificate(t)
	log := &logged{}
	o := DefaultOptions()
	o.TLSCert, o.TLSKey, o.Log = cert, key, zerolog.New(log)
	s := New(o)
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	first := s.files.certificate.Load()
	s.files.readChanged()
	if s.files.certificate.Load() != first {
		t.Error("nothing has changed, and another certificate is used")
	}
	newCert, newKey, _ := certificate(t)
	if err := os.Rename(newCert, cert); err != nil {
		t.Fatal(err)
	}
	s.files.readChanged() // one half is there
	if s.files.certificate.Load() != first || !strings.Contains(log.String(), "server.tls_cert") {
		t.Errorf("a certificate without its key is used, or not told of:\n%s", log)
	}
	if err := os.Rename(newKey, key); err != nil {
		t.Fatal(err)
	}
	s.files.readChanged()
	if now := s.files.certificate.Load(); now == first || now.Leaf.Equal(first.Leaf) {
		t.Error("the new certificate is not used")
	}
}

// certificate writes a new self-signed certificate for this machine.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
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
	pkcs, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", pkcs), pool
}
