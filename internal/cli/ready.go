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

// listen listens on the address, or says what to do if it is in use.
func listen(addr string) (net.Listener, error) {
	const windowsInUse = syscall.Errno(10048) // WSAEADDRINUSE, which the syscall package does not name
	l, err := server.Listen(addr)
	var errno syscall.Errno
	if errors.As(err, &errno) && (errno == syscall.EADDRINUSE || errno == windowsInUse) {
		return nil, fmt.Errorf("another program listens on %s; choose another port with --addr HOST:PORT", addr)
	}
	return l, err
}

// baseURL returns the server's URL for clients on this machine. If the server listens on
// all addresses it names one that they can connect to.
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

// tryCommand returns a command for the shell of goos that asks the server at base a
// question. It has a placeholder for the key: keys do not belong in logs.
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
	if opt.NeedsKey() {
		args = append(args, "-H", quote("Authorization: Bearer KEY"))
	}
	const body = `{"temperature": 0, "messages": [{"role": "user", "content": "What is 12 * 7?"}]}`
	return strings.Join(append(args, "-d", quote(body)), " ")
}

// trusted reports whether clients on this machine accept the certificate for base.
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

// lanIP returns this machine's address in its network: the one that a packet to elsewhere
// would bear, though none is sent. nil: it has none.
func lanIP() net.IP {
	conn, err := net.Dial("udp4", "192.0.2.1:9") // RFC 5737: nobody has this address
	if err != nil {
		return nil
	}
	defer conn.Close()
	if here, ok := conn.LocalAddr().(*net.UDPAddr); ok && !here.IP.IsLoopback() {
		return here.IP
	}
	return nil
}

// lanURL returns the server's URL for other machines in the network of lan; empty: they do
// not reach it, or it does not answer to that address.
func lanURL(opt server.Options, addr net.Addr, lan net.IP) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() || lan == nil || !opt.AnswersTo(lan.String()) {
		return ""
	}
	return baseURL(opt, &net.TCPAddr{IP: lan, Port: tcp.Port})
}

// readyLines say that the server at addr is ready, and how to try it.
func readyLines(opt server.Options, addr net.Addr) (message, try string) {
	base := baseURL(opt, addr)
	message = fmt.Sprintf("ready on %s: open %s in a browser", addr, base)
	if others := lanURL(opt, addr, lanIP()); others != "" {
		message += fmt.Sprintf(", %s from this network", others)
	}
	return message, tryCommand(opt, base, runtime.GOOS)
}
