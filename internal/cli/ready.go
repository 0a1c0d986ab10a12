package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"strings"
	"syscall"

	"github.com/lutra-lm/lutra/server"
)

// listen takes the address, or tells what else to do when it is taken.
func listen(addr string) (net.Listener, error) {
	const windowsInUse = syscall.Errno(10048) // WSAEADDRINUSE, which the syscall package does not name
	l, err := net.Listen("tcp", addr)
	var errno syscall.Errno
	if errors.As(err, &errno) && (errno == syscall.EADDRINUSE || errno == windowsInUse) {
		return nil, fmt.Errorf("another program listens on %s; choose another port with --addr HOST:PORT", addr)
	}
	return l, err
}

// baseURL is where a client on this machine finds the server: a host that it can
// connect to also where the server listens on all of them.
func baseURL(opt server.Options, addr net.Addr) string {
	u := url.URL{Scheme: "http", Host: addr.String()}
	if opt.TLSCert != "" {
		u.Scheme = "https"
	}
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		u.Host = net.JoinHostPort("127.0.0.1", fmt.Sprint(tcp.Port))
	}
	return u.String()
}

// tryCommand is a line for the shell of goos that asks the server at base something.
// A key has to be put in its place: the log is no place for keys.
func tryCommand(opt server.Options, base, goos string) string {
	args := []string{"curl"}
	if opt.TLSCert != "" && !trusted(opt, base) {
		args = append(args, "-k")
	}
	args = append(args, base+"/v1/chat/completions")
	quote := func(s string) string { return "'" + s + "'" }
	if goos == "windows" {
		quote = func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` } // cmd.exe knows no '
	}
	if len(opt.APIKeys) > 0 {
		args = append(args, "-H", quote("Authorization: Bearer KEY"))
	}
	const body = `{"temperature": 0, "messages": [{"role": "user", "content": "What is 12 * 7?"}]}`
	return strings.Join(append(args, "-d", quote(body)), " ")
}

// trusted tells whether clients of this machine take the certificate for base's.
func trusted(opt server.Options, base string) bool {
	pair, err := tls.LoadX509KeyPair(opt.TLSCert, opt.TLSKey)
	if err != nil || pair.Leaf == nil {
		return false
	}
	between := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(c)
		}
	}
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: u.Hostname(), Intermediates: between})
	return err == nil
}

// readyLines say that the server at addr is ready, and what to do with it.
func readyLines(opt server.Options, addr net.Addr) (message, try string) {
	base := baseURL(opt, addr)
	return fmt.Sprintf("ready on %s: open %s in a browser", addr, base), tryCommand(opt, base, runtime.GOOS)
}
