package cli

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/server"
)

func TestHealthAsksTheServerThatIsConfigured(t *testing.T) {
	cert, key := selfSigned(t, t.TempDir())
	plain := serving(t, "--addr", "0.0.0.0:0", "--model", "lutra-tiny-s")
	secure := serving(t, "--addr", "127.0.0.1:0", "--model", "lutra-tiny-s", "--tls-cert", cert, "--tls-key", key)
	at := func(s *live, host string) string {
		_, port, _ := net.SplitHostPort(s.base[strings.LastIndex(s.base, "/")+1:])
		return net.JoinHostPort(host, port)
	}
	const nowhere = "127.0.0.1:1"
	file := configFile(t, "server: {addr: "+at(plain, "127.0.0.1")+"}\n")
	elsewhere := configFile(t, "server: {addr: "+nowhere+"}\n")
	for _, c := range []struct {
		why  string
		env  map[string]string
		args []string
		says string // empty: it is ready
	}{
		{"the flag", nil, []string{"--addr", at(plain, "127.0.0.1")}, ""},
		{"all addresses", nil, []string{"--addr", at(plain, "0.0.0.0")}, ""},
		{"all addresses of IPv6", nil, []string{"--addr", at(plain, "::")}, ""},
		{"no host", nil, []string{"--addr", at(plain, "")}, ""},
		{"the environment", map[string]string{"LUTRA_SERVER_ADDR": at(plain, "0.0.0.0")}, nil, ""},
		{"the file", nil, []string{"--config", file}, ""},
		{"the environment before the file", map[string]string{"LUTRA_SERVER_ADDR": at(plain, "")}, []string{"--config", elsewhere}, ""},
		{"the flag before the environment", map[string]string{"LUTRA_SERVER_ADDR": nowhere}, []string{"--addr", at(plain, "")}, ""},
		{"TLS", map[string]string{"LUTRA_SERVER_TLS_CERT": cert, "LUTRA_SERVER_TLS_KEY": key}, []string{"--addr", at(secure, "127.0.0.1")}, ""},
		{"a URL", map[string]string{"LUTRA_SERVER_ADDR": nowhere}, []string{"--url", plain.base}, ""},
		{"a server elsewhere", map[string]string{"LUTRA_SERVER_ADDR": nowhere}, []string{"--config", file}, "no server answers at http://" + nowhere},
		{"http to a server of https", nil, []string{"--addr", at(secure, "127.0.0.1")}, "400 Bad Request"},
		{"https to a server of http", map[string]string{"LUTRA_SERVER_TLS_CERT": cert, "LUTRA_SERVER_TLS_KEY": key}, []string{"--addr", at(plain, "127.0.0.1")}, "no server answers at https://"},
		{"no port", nil, []string{"--addr", "127.0.0.1:0"}, "name it with --url"},
		{"two places", nil, []string{"--url", plain.base, "--addr", nowhere}, "both say where"},
		{"a wrong configuration", map[string]string{"LUTRA_SERVER_ADDR": "8080"}, nil, "LUTRA_SERVER_ADDR"},
	} {
		t.Run(c.why, func(t *testing.T) {
			for name, v := range c.env {
				t.Setenv(name, v)
			}
			out, err := lutra(t, append([]string{"health"}, c.args...)...)
			if c.says == "" && (err != nil || out != "ready\n") || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("lutra health %q: %q, %v, want %q", c.args, out, err, c.says)
			}
		})
	}
}

func TestTheAddressForOthersIsSaid(t *testing.T) {
	lan := net.IPv4(192, 168, 1, 7)
	for _, c := range []struct {
		addr string
		opt  server.Options
		lan  net.IP
		want string
	}{
		{"0.0.0.0:8080", server.Options{Exposure: server.Exposure{Addr: "0.0.0.0:8080"}}, lan, "http://192.168.1.7:8080"},
		{"[::]:8080", server.Options{Exposure: server.Exposure{Addr: ":8080", TLSCert: "c"}}, lan, "https://192.168.1.7:8080"},
		{"0.0.0.0:8080", server.Options{Exposure: server.Exposure{Addr: "0.0.0.0:8080", AllowedHosts: []string{"192.168.1.7"}}}, lan, "http://192.168.1.7:8080"},
		{"0.0.0.0:8080", server.Options{Exposure: server.Exposure{Addr: "0.0.0.0:8080", AllowedHosts: []string{"home.lan"}}}, lan, ""}, // it would be refused
		{"0.0.0.0:8080", server.Options{Exposure: server.Exposure{Addr: "0.0.0.0:8080"}}, nil, ""},
		{"127.0.0.1:8080", server.Options{Exposure: server.Exposure{Addr: "127.0.0.1:8080"}}, lan, ""},
		{"192.168.1.7:8080", server.Options{Exposure: server.Exposure{Addr: "192.168.1.7:8080"}}, lan, ""}, // it is said already
	} {
		addr, err := net.ResolveTCPAddr("tcp", c.addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := lanURL(c.opt, addr, c.lan); got != c.want {
			t.Errorf("a server on %s with the names %q, here %v: others open %q, want %q", c.addr, c.opt.AllowedHosts, c.lan, got, c.want)
		}
	}
}

func TestAServerForOthersWarnsOnceAndNamesItsAddress(t *testing.T) {
	sweep.Full(t)
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("alice: sk-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--addr", "127.0.0.1:0"}, ""},
		{[]string{"--addr", "0.0.0.0:0"}, "without a key"},
		{[]string{"--addr", "0.0.0.0:0", "--api-keys-file", keys}, "in clear"},
	} {
		s := serving(t, append(c.args, "--model", "lutra-tiny-s")...)
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		var warnings []string
		for _, e := range s.log {
			message, _ := e["message"].(string)
			if strings.HasPrefix(message, "stopping") {
				break // a slow machine closes models late
			}
			if e["level"] == "warn" {
				warnings = append(warnings, message)
			}
			addr, _ := e["addr"].(string)
			if host := strings.TrimSuffix(c.args[1], ":0"); message == "serving" && !strings.HasPrefix(addr, host) {
				t.Errorf("serve %q listens on %s", c.args, addr)
			}
			if ip := lanIP(); ip != nil && strings.HasPrefix(message, "ready on") && strings.Contains(message, ip.String()) != (c.says != "") {
				t.Errorf("serve %q on a machine of %v says %q", c.args, ip, message)
			}
		}
		if c.says == "" && len(warnings) > 0 || c.says != "" && (len(warnings) != 1 || !strings.Contains(warnings[0], c.says)) {
			t.Errorf("serve %q warns of %q, want %q", c.args, warnings, c.says)
		}
	}
}
