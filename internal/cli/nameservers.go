package cli

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// mostNameservers is the number that the C library reads, too.
const mostNameservers = 3

// findNameservers has names looked up by Termux's nameservers. Android has no /etc/resolv.conf,
// without which Go's resolver asks this machine.
func findNameservers() {
	if runtime.GOOS != "android" {
		return
	}
	text, err := os.ReadFile(filepath.Join(os.Getenv("PREFIX"), "etc", "resolv.conf"))
	if err != nil {
		return // a program started otherwise, by adb: it is given addresses and files
	}
	if list := nameservers(string(text)); len(list) > 0 {
		net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: dialOneOf(list)}
	}
}

// nameservers returns the addresses that a resolv.conf names.
func nameservers(conf string) (list []string) {
	for line := range strings.Lines(conf) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "nameserver" || len(list) == mostNameservers {
			continue
		}
		if addr, err := netip.ParseAddr(words[1]); err == nil {
			list = append(list, netip.AddrPortFrom(addr, 53).String())
		}
	}
	return list
}

// dialOneOf connects to any of the nameservers, whatever the resolver takes for one: it asks again
// where one does not answer.
func dialOneOf(list []string) func(ctx context.Context, network, _ string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, list[rand.IntN(len(list))])
	}
}
