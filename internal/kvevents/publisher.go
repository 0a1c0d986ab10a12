package kvevents

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/internal/zmtp"
	"github.com/lutra-lm/lutra/models/kv"
)

// Options say where events go.
type Options struct {
	Events zmtp.Endpoint  // of the PUB socket
	Replay *zmtp.Endpoint // of the ROUTER that sends past batches again; nil: none
	Pod    string         // the address by which routers know this process
	Log    zerolog.Logger // of what fails
}

// Publisher publishes what caches hold.
type Publisher struct {
	opt    Options
	pub    *zmtp.Publisher
	router *zmtp.Router // nil: none
	wake   chan struct{}
	stop   chan struct{}
	done   chan struct{}

	mu    sync.Mutex
	feeds []*feed
	log   log

	replays atomic.Int64
}

// New opens the sockets. The caller closes the publisher.
func New(opt Options) (*Publisher, error) {
	p := &Publisher{opt: opt, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	var err error
	if p.pub, err = zmtp.NewPublisher(opt.Events, p.failed); err != nil {
		return nil, fmt.Errorf("kv.events: %w", err)
	}
	if opt.Replay != nil {
		if p.router, err = zmtp.NewRouter(*opt.Replay, p.replay, p.failed); err != nil {
			p.pub.Close(0)
			return nil, fmt.Errorf("kv.replay: %w", err)
		}
	}
	go p.run()
	return p, nil
}

// Feed returns the observer of the cache of the model of that name, which may have had another
// cache before.
func (p *Publisher) Feed(model string) kv.Observer {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.feeds {
		if f.model == model {
			f.Cleared()
			return f
		}
	}
	f := newFeed(model, p.wake)
	p.feeds = append(p.feeds, f)
	return f
}

// run publishes until stop.
func (p *Publisher) run() {
	defer close(p.done)
	for {
		select {
		case <-p.wake:
			if err := parallel.Try(func() error { p.publish(); return nil }); err != nil {
				p.failed(err)
			}
		case <-p.stop:
			return
		}
	}
}

// failed logs a panic. Its connection is closed, or what was to be published is not.
func (p *Publisher) failed(err error) {
	event := p.opt.Log.Error().Err(err)
	var panicked *parallel.Panic
	if errors.As(err, &panicked) {
		event.Bytes("stack", panicked.Stack)
	}
	event.Msg("publishing KV events panicked")
}

// publish publishes what has changed.
func (p *Publisher) publish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.feeds {
		topic := []byte("kv@" + p.opt.Pod + "@" + f.model)
		for _, batch := range batches(f.events(f.take(), len(p.feeds) == 1)) {
			e := p.log.add(topic, encode(time.Now(), batch))
			p.pub.Publish(e.topic, sequence(e.seq), e.payload)
		}
	}
}

// sequence returns a number as the second frame has it.
func sequence(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// replay sends the batches again that are still there, from the requested sequence number on, and then
// an empty one of number -1. It sends topic, number and payload, as llm-d's router reads them.
func (p *Publisher) replay(request []byte, send func(frames ...[]byte) error) error {
	if len(request) != 8 {
		return fmt.Errorf("kvevents: a request of %d bytes, want a sequence number of 8", len(request))
	}
	p.replays.Add(1)
	from := binary.BigEndian.Uint64(request)
	p.mu.Lock()
	list := p.log.since(from)
	p.mu.Unlock()
	for _, e := range list {
		if err := send(e.topic, sequence(e.seq), e.payload); err != nil {
			return err
		}
	}
	return send(nil, sequence(math.MaxUint64), nil)
}

// Stats count what a publisher has done.
type Stats struct {
	Batches     int64 // published
	Dropped     int64 // messages that subscribers were too slow for
	Replays     int64 // requests for past batches
	Subscribers int   // now
}

// Stats counts what has been done so far.
func (p *Publisher) Stats() Stats {
	p.mu.Lock()
	n := p.log.next
	p.mu.Unlock()
	return Stats{Batches: int64(n), Dropped: p.pub.Dropped(), Replays: p.replays.Load(), Subscribers: p.pub.Subscribers()}
}

// closing is the time that subscribers have to take what is left when the process ends.
const closing = time.Second

// Close tells subscribers that the caches are gone, and closes the sockets. Nothing may
// change the caches any more.
func (p *Publisher) Close() {
	close(p.stop)
	<-p.done
	for _, f := range p.feeds {
		f.Cleared()
	}
	p.publish()
	p.pub.Close(closing)
	if p.router != nil {
		p.router.Close()
	}
}
