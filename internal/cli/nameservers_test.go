package cli

import (
	"errors"
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
	resolver := net.Resolver{PreferGo: true, Dial: dialOneOf([]string{server.LocalAddr().String()})}
	ended, heard := make(chan struct{}), 0
	go func() {
		defer close(ended)
		for question := make([]byte, 512); ; heard++ {
			n, from, err := server.ReadFrom(question)
			if err != nil {
				return
			}
			question[2], question[3] = question[2]|0x80, question[3]|3 // its answer: there is no such name
			_, _ = server.WriteTo(question[:n], from)
		}
	}()
	_, err = resolver.LookupHost(t.Context(), "lutra.example.")
	server.Close()
	<-ended
	var fault *net.DNSError
	if !errors.As(err, &fault) || !fault.IsNotFound || heard == 0 {
		t.Errorf("the nameserver hears %d questions, error %v", heard, err)
	}
}
