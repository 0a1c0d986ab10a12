package zmtp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/lutra-lm/lutra/internal/parallel"
)

var loopback = Endpoint{Addr: "127.0.0.1:0", Binds: true}

func publish(t *testing.T) *Publisher {
	t.Helper()
	p, err := NewPublisher(loopback, panics(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(0) })
	return p
}

// panics returns what fails t with each panic of a connection.
func panics(t *testing.T) func(error) { return func(err error) { t.Error(err) } }

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !ok(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 5 min", what)
		}
	}
}

// reader is a SUB socket of another implementation.
func reader(t *testing.T, p *Publisher, topic string) zmq4.Socket {
	t.Helper()
	before := p.Subscribers()
	sub := zmq4.NewSub(t.Context())
	t.Cleanup(func() { sub.Close() })
	if err := sub.Dial("tcp://" + p.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if err := sub.SetOption(zmq4.OptionSubscribe, topic); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the subscription", func() bool { return p.Subscribers() > before })
	return sub
}

// raw is a connection that has greeted as a SUB socket, or as another one.
func raw(t *testing.T, to net.Addr, kind string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.Write(greeting[:])
	c.Write(command("READY", property(nil, "Socket-Type", kind)))
	return c
}

// ends waits for the other side to close c, and returns how many bytes came before.
func ends(t *testing.T, what string, c net.Conn) int {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(5 * time.Minute))
	n, err := io.Copy(io.Discard, c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: the connection is still open", what)
	}
	return int(n)
}

func TestSubscribersGetWholeMessagesOfTheirTopicsInOrder(t *testing.T) {
	p := publish(t)
	all, some := reader(t, p, ""), reader(t, p, "kv@b")
	long := bytes.Repeat([]byte("x"), 70_000)
	for i := range 10 {
		p.Publish([]byte("kv@a"), []byte{byte(i)}, long)
		p.Publish([]byte("kv@b"), []byte{byte(i)}, nil)
	}
	for i := range 20 {
		msg, err := all.Recv()
		if err != nil || len(msg.Frames) != 3 || msg.Frames[1][0] != byte(i/2) || i%2 == 0 != (len(msg.Frames[2]) == len(long)) {
			t.Fatalf("message %d: %d frames, %v", i, len(msg.Frames), err)
		}
	}
	for i := range 10 {
		if msg, err := some.Recv(); err != nil || string(msg.Frames[0]) != "kv@b" || msg.Frames[1][0] != byte(i) {
			t.Fatalf("message %d: %q, %v", i, msg.Frames, err)
		}
	}
	if p.Dropped() != 0 {
		t.Errorf("%d messages dropped", p.Dropped())
	}
}

func TestAPublisherConnectsToWhoListens(t *testing.T) {
	sub := zmq4.NewSub(t.Context())
	defer sub.Close()
	if err := sub.Listen("tcp://127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if err := sub.SetOption(zmq4.OptionSubscribe, ""); err != nil {
		t.Fatal(err)
	}
	p, err := NewPublisher(Endpoint{Addr: sub.Addr().String()}, panics(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(0)
	eventually(t, "the subscription", func() bool { return p.Subscribers() == 1 })
	p.Publish([]byte("a"), []byte("b"))
	if msg, err := sub.Recv(); err != nil || string(msg.Frames[1]) != "b" {
		t.Errorf("got %q, %v", msg.Frames, err)
	}
}

// One that never reads keeps neither the publisher nor other subscribers waiting, and what
// is kept for it is bounded.
func TestASubscriberThatNeverReadsHarmsNobody(t *testing.T) {
	p := publish(t)
	dead := raw(t, p.Addr(), "SUB")
	dead.Write(message([]byte{1}))
	eventually(t, "the subscription", func() bool { return p.Subscribers() == 1 })
	sub := reader(t, p, "")
	var read atomic.Int64
	go func() {
		for {
			if _, err := sub.Recv(); err != nil {
				return
			}
			read.Add(1)
		}
	}()
	const n = 400
	payload := make([]byte, 1<<18)
	for i := range n {
		p.Publish([]byte("kv"), payload)
		eventually(t, "the other one reads", func() bool { return read.Load() == int64(i+1) })
	}
	if p.Dropped() == 0 || p.Dropped() >= n {
		t.Errorf("%d of %d messages dropped", p.Dropped(), n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.subs {
		if b := s.bytes.Load(); b > mostQueuedBytes || len(s.queue) > mostQueued {
			t.Errorf("%d messages of %d bytes wait for a subscriber", len(s.queue), b)
		}
	}
}

func TestManySmallMessagesAreBoundedToo(t *testing.T) {
	s := &subscriber{queue: make(chan []byte, mostQueued)}
	for i := range 2 * mostQueued {
		if s.put([]byte{1}) != (i < mostQueued) {
			t.Fatalf("message %d is taken: %v", i, i >= mostQueued)
		}
	}
	if s.bytes.Load() != mostQueued {
		t.Errorf("%d bytes counted", s.bytes.Load())
	}
	large := &subscriber{queue: make(chan []byte, mostQueued)}
	if big := make([]byte, mostQueuedBytes+1); !large.put(big) || large.put(big) {
		t.Error("a message larger than the queue must fit an empty one, and no other with it")
	}
}

// A peer that says nothing, or what no peer should, ends alone.
func TestBadPeersAreCutOff(t *testing.T) {
	p := publish(t)
	router, err := NewRouter(loopback, func(request []byte, send func(...[]byte) error) error {
		if len(request) != 8 {
			return errPeer
		}
		return send(request)
	}, panics(t))
	if err != nil {
		t.Fatal(err)
	}
	defer router.Close()
	silent, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()

	huge := append([]byte{flagLong}, binary.BigEndian.AppendUint64(nil, 1<<62)...)
	for what, sent := range map[string][]byte{
		"a frame of 2^62 bytes":     huge,
		"a frame of 513 bytes":      message(make([]byte, mostFrame+1)),
		"unknown flags":             {0x80, 0},
		"nine frames":               message(make([][]byte, mostFrames+1)...),
		"an empty command":          {flagCommand, 0},
		"a command longer than all": {flagCommand, 2, 9, 'A'},
		"a command within":          append(appendFrame(nil, flagMore, nil), command("PING", []byte{0, 0})...),
		"too many subscriptions":    bytes.Repeat(message([]byte{1, 'a'}), mostTopics+1),
	} {
		c := raw(t, p.Addr(), "SUB")
		c.Write(sent)
		ends(t, what, c)
	}
	for what, sent := range map[string][]byte{"a bad request": message(nil, []byte("x")), "a huge one": huge} {
		c := raw(t, router.Addr(), "DEALER")
		c.Write(sent)
		ends(t, what, c)
	}
	for what, sent := range map[string]string{
		"HTTP": "GET / HTTP/1.1\r\nHost: a\r\n\r\n" + strings.Repeat(" ", 64), "ZMTP 2": "\xff" + strings.Repeat("\x00", 8) + "\x7f\x01" + strings.Repeat("\x00", 64),
		"a mechanism": "\xff" + strings.Repeat("\x00", 8) + "\x7f\x03\x00PLAIN" + strings.Repeat("\x00", 64),
	} {
		c, err := net.Dial("tcp", p.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.Write([]byte(sent))
		ends(t, what, c)
		c.Close()
	}
	for _, kind := range []string{"PUB", "REQ", ""} {
		ends(t, "a socket of type "+kind, raw(t, p.Addr(), kind))
	}
	sub := reader(t, p, "") // while the silent one still says nothing
	p.Publish([]byte("a"))
	if msg, err := sub.Recv(); err != nil || string(msg.Frames[0]) != "a" {
		t.Errorf("got %q, %v", msg.Frames, err)
	}
}

// What a server counts and what its peers see agree: whoever sees its connection end is no longer
// counted, and finds room when it comes again.
func TestAPeerThatSeesItsEndIsNoLongerCounted(t *testing.T) {
	p := publish(t)
	for range mostPeers - 1 {
		raw(t, p.Addr(), "SUB").Write(message([]byte{1}))
	}
	eventually(t, "the subscriptions", func() bool { return p.Subscribers() == mostPeers-1 })
	for range 200 {
		c := raw(t, p.Addr(), "SUB")
		c.Write(message([]byte{1}))
		c.Write([]byte{0x80, 0})
		if n := ends(t, "a bad one", c); n < len(greeting)+2 {
			t.Fatalf("a further connection ends behind %d bytes: it is not let in", n)
		}
		if n := p.Subscribers(); n != mostPeers-1 {
			t.Fatalf("%d subscribers are counted, want %d", n, mostPeers-1)
		}
	}
}

func TestTheOldestSilentPeerGivesItsPlace(t *testing.T) {
	router, err := NewRouter(loopback, func(request []byte, send func(...[]byte) error) error { return send(request) }, panics(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(router.Close)
	p := publish(t)
	ask := func(kind string, request []byte) (net.Conn, []byte) {
		to := p.Addr()
		if kind == "DEALER" {
			to = router.Addr()
		}
		c := raw(t, to, kind)
		c.Write(request)
		if kind == "SUB" {
			eventually(t, "the subscription", func() bool { return p.Subscribers() > 0 })
			return c, nil
		}
		in := bufio.NewReader(c)
		if _, err := io.ReadFull(in, make([]byte, len(greeting))); err != nil {
			t.Fatal(err)
		}
		for {
			got, err := readParcel(in)
			if err != nil {
				t.Fatalf("a %s is not answered: %v", kind, err)
			}
			if len(got.frames) == 2 {
				return c, got.frames[1]
			}
		}
	}
	for kind, request := range map[string][]byte{"SUB": message([]byte{1}), "DEALER": message(nil, []byte("one"))} {
		first, _ := ask(kind, request) // the oldest of all, which is not silent
		var silent []net.Conn
		for i := range mostPeers {
			c := raw(t, first.RemoteAddr(), kind) // that greets, or not even that
			if i%2 == 0 {
				var err error
				if c, err = net.Dial("tcp", first.RemoteAddr().String()); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
			}
			silent = append(silent, c)
		}
		ends(t, "the oldest silent "+kind, silent[0])
		_, got := ask(kind, request)
		if ends(t, "the next one", silent[1]); kind == "DEALER" && string(got) != "one" {
			t.Errorf("a %s among silent ones gets %q", kind, got)
		}
		if kind == "SUB" {
			eventually(t, "the second subscription", func() bool { return p.Subscribers() == 2 })
		}
	}
}

// A peer that sends a byte now and then has as little time as one that sends none.
func TestAPeerHasTenSecondsToGreet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		var peer sync.WaitGroup
		peer.Go(func() { io.Copy(io.Discard, theirs) })
		peer.Go(func() {
			for _, b := range greeting {
				if _, err := theirs.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second) // of the fake clock
			}
		})
		start := time.Now()
		err := greet(ours, bufio.NewReader(ours), "PUB", "SUB")
		if took := time.Since(start); !errors.Is(err, os.ErrDeadlineExceeded) || took != handshakeTime {
			t.Errorf("it is cut off after %v by %v, want after %v", took, err, handshakeTime)
		}
		ours.Close()
		peer.Wait()
	})
}

func TestFurtherConnectionsAreClosed(t *testing.T) {
	p := publish(t)
	for range mostPeers {
		raw(t, p.Addr(), "SUB").Write(message([]byte{1}))
	}
	eventually(t, "the subscriptions", func() bool { return p.Subscribers() == mostPeers })
	ends(t, "one more", raw(t, p.Addr(), "SUB"))
	if n := p.Subscribers(); n != mostPeers {
		t.Errorf("%d subscribers are left", n)
	}
}

func TestHeartbeatsAndLaterCommandsAreUnderstood(t *testing.T) {
	p := publish(t)
	c := raw(t, p.Addr(), "SUB")
	in := bufio.NewReader(c)
	if _, err := io.ReadFull(in, make([]byte, len(greeting))); err != nil {
		t.Fatal(err)
	}
	if ready, err := readParcel(in); err != nil || ready.command != "READY" || propertyOf(ready.data, "Socket-Type") != "PUB" {
		t.Fatalf("%+v, %v", ready, err)
	}
	c.Write(command("SUBSCRIBE", []byte("b")))
	c.Write(command("PING", []byte{0, 9, 'h', 'i'}))
	if pong, err := readParcel(in); err != nil || pong.command != "PONG" || string(pong.data) != "hi" {
		t.Errorf("PING: %+v, %v", pong, err)
	}
	p.Publish([]byte("a"))
	p.Publish([]byte("b"))
	if msg, err := readParcel(in); err != nil || len(msg.frames) != 1 || string(msg.frames[0]) != "b" {
		t.Errorf("%q, %v", msg.frames, err)
	}
	c.Write(command("CANCEL", []byte("b")))
	eventually(t, "the cancellation", func() bool { return p.Subscribers() == 0 })
}

func TestEndpointsAreReadAsVLLMReadsThem(t *testing.T) {
	for s, want := range map[string]Endpoint{
		"tcp://*:5556": {":5556", true}, "tcp://[::1]:5556": {"[::1]:5556", true}, "tcp://[::]:1": {"[::]:1", true},
		"tcp://picker:5557": {"picker:5557", false}, "tcp://10.0.0.1:5557": {"10.0.0.1:5557", false}, "tcp://*:0": {":0", true},
	} {
		if got, err := ParseEndpoint(s); err != nil || got != want {
			t.Errorf("ParseEndpoint(%q) = %+v, %v, want %+v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "*:5556", "tcp://", "tcp://*", "tcp://:5556", "tcp://a:b", "tcp://a:65536", "tcp://a:0", "ipc:///tmp/x", "udp://a:1", "tcp://a:1/b"} {
		if got, err := ParseEndpoint(s); err == nil {
			t.Errorf("ParseEndpoint(%q) = %+v", s, got)
		}
	}
}

// What is left is taken before the end.
func TestCloseWaitsForReaders(t *testing.T) {
	p := publish(t)
	sub := reader(t, p, "")
	for i := range 100 {
		p.Publish(fmt.Appendf(nil, "%d", i))
	}
	p.Close(10 * time.Second)
	for i := range 100 {
		if msg, err := sub.Recv(); err != nil || string(msg.Frames[0]) != fmt.Sprint(i) {
			t.Fatalf("message %d: %q, %v", i, msg.Frames, err)
		}
	}
}

func FuzzPeersAreReadWithinBounds(f *testing.F) {
	f.Add(command("READY", property(nil, "Socket-Type", "SUB")))
	f.Add(message([]byte{1, 'a'}, nil))
	f.Add(append([]byte{flagLong}, binary.BigEndian.AppendUint64(nil, 1<<62)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(bytes.NewReader(data))
		for {
			p, err := readParcel(r)
			if err != nil {
				return
			}
			size := len(p.data)
			for _, frame := range p.frames {
				size += len(frame)
			}
			if size > mostFrame*mostFrames {
				t.Fatalf("%d bytes of a peer", size)
			}
			propertyOf(p.data, "Socket-Type")
		}
	})
}

func TestAPanicEndsTheConnectionThatItServesAlone(t *testing.T) {
	told := make(chan error, 1)
	router, err := NewRouter(loopback, func(request []byte, send func(...[]byte) error) error {
		if string(request) == "boom" {
			panic("boom")
		}
		return send(request)
	}, func(err error) { told <- err })
	if err != nil {
		t.Fatal(err)
	}
	defer router.Close()
	bad, good := raw(t, router.Addr(), "REQ"), raw(t, router.Addr(), "REQ")
	bad.Write(message(nil, []byte("boom")))
	var p *parallel.Panic
	if err := <-told; !errors.As(err, &p) || p.Value != "boom" || !strings.Contains(err.Error(), bad.LocalAddr().String()) {
		t.Errorf("the owner is told %v, want the panic and whose connection it was", err)
	}
	ends(t, "a connection whose goroutine panics", bad)
	good.Write(message(nil, []byte("hello")))
	want := message(nil, []byte("hello"))
	answered := make([]byte, len(greeting)+len(command("READY", property(nil, "Socket-Type", "ROUTER")))+len(want))
	if _, err := io.ReadFull(good, answered); err != nil || !bytes.HasSuffix(answered, want) {
		t.Errorf("another connection is answered %q, %v", answered, err)
	}
}
