package cli

import (
	"context"
	"net"
	"slices"
	"testing"
)

func TestNameserversAreThoseOfResolvConf(t *testing.T) {
	got := nameservers("# of Termux\nnameserver 8.8.8.8\n nameserver\t2001:db8::1 # two\nnameserver\nnameserver example.org\noptions edns0\nnameserver fe80::1%wlan0\nnameserver 9.9.9.9\n")
	if want := []string{"8.8.8.8:53", "[2001:db8::1]:53", "[fe80::1%wlan0]:53"}; !slices.Equal(got, want) {
		t.Errorf("nameservers = %q, want %q", got, want)
	}
	if got := nameservers("search lan\n"); got != nil {
		t.Errorf("of none: %q", got)
	}
}

func TestTheResolverAsksTheNameserversThatAreNamed(t *testing.T) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	resolver := net.Resolver{PreferGo: true, Dial: dialOneOf([]string{server.LocalAddr().String()})}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = resolver.LookupHost(ctx, "lutra.example.") // nobody answers
	}()
	question := make([]byte, 512)
	n, _, err := server.ReadFrom(question)
	cancel()
	<-ended
	if err != nil || !slices.Contains(question[:n], 'l') {
		t.Errorf("the nameserver hears %q, error %v", question[:n], err)
	}
}
