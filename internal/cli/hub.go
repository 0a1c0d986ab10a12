package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/internal/memory"
	"github.com/lutra-lm/lutra/internal/output"
)

// getter brings models from the hub, and shows how far it has come: by a bar on
// a terminal, by lines elsewhere.
type getter struct {
	offline bool // by --offline; the environment may say so too
	errOut  io.Writer
	log     *zerolog.Logger // for the lines; nil: plain ones to errOut
}

// open reads the environment only when a name of the hub is used, so that
// nothing in it can harm those who use none.
func (g *getter) open() (*hub.Hub, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // HF_HOME may say where the cache is
	}
	o, err := hub.FromEnvironment(os.Getenv, home)
	if err != nil {
		return nil, err
	}
	o.Offline = o.Offline || g.offline
	o.Agent = "lutra/" + Version()
	o.Waiting = g.waiting
	o.Chose = g.chose
	o.Memory = memory.Free
	o.Unused = g.unused
	o.Retrying = g.retrying
	return hub.New(o)
}

// chose tells which of a repository's models comes, and why.
func (g *getter) chose(file, why string) {
	if g.log != nil {
		g.log.Info().Str("file", file).Str("why", why).Msg("one of several models is taken")
		return
	}
	fmt.Fprintf(g.errOut, "%s of several models: %s\n", file, why)
}

// unused tells what comes with a model and is not read.
func (g *getter) unused(what string) {
	if g.log != nil {
		g.log.Warn().Msg(what)
		return
	}
	fmt.Fprintln(g.errOut, what)
}

// waiting tells why nothing comes.
func (g *getter) waiting() {
	const why = "another process downloads the same file; waiting for it"
	if g.log != nil {
		g.log.Info().Msg(why)
		return
	}
	fmt.Fprintln(g.errOut, why)
}

// retrying tells why nothing has come yet.
func (g *getter) retrying(err error, pause time.Duration) {
	if g.log != nil {
		g.log.Warn().Err(err).Dur("pause_ms", pause).Msg("the hub is asked again")
		return
	}
	fmt.Fprintf(g.errOut, "%v; trying again in %v\n", err, pause)
}

// get returns the file in the cache, or one that it downloads.
func (g *getter) get(ctx context.Context, ref hub.Ref) (string, error) {
	h, err := g.open()
	if err != nil {
		return "", err
	}
	path, err := h.Find(ref)
	if !errors.Is(err, hub.ErrAbsent) {
		return path, err
	}
	if h.Offline() {
		return "", fmt.Errorf("%w; nothing is downloaded with --offline or HF_HUB_OFFLINE", err)
	}
	return g.pull(ctx, h, ref)
}

// pull asks the hub, also for what is in the cache already.
func (g *getter) pull(ctx context.Context, h *hub.Hub, ref hub.Ref) (string, error) {
	p := &downloading{getter: g, name: shortName(ref), now: time.Now}
	path, err := h.Pull(ctx, ref, p.tell)
	p.end()
	switch {
	case err != nil && ctx.Err() != nil && p.begun:
		p.stopped()
	case errors.Is(err, hub.ErrUnreachable):
		err = fmt.Errorf("%w; what is on this machine already needs no hub: see lutra list", err)
	case err == nil:
		err = config.CheckModelFile(path)
	}
	return path, err
}

// shortName returns what people call a file of the hub.
func shortName(ref hub.Ref) string {
	if e, ok := hub.Named(ref); ok {
		return e.Name
	}
	return ref.String()
}

// downloading tells how far a download has come.
type downloading struct {
	*getter
	name string
	now  func() time.Time
	bar  interface {
		Set64(int64) error
		Finish() error
	}
	begun bool
	said  time.Time
	last  int64 // percent
}

// sayEvery is the least time between two lines.
const sayEvery = 5 * time.Second

func (p *downloading) tell(done, total int64) {
	p.begun, p.last = true, 100*done/max(1, total)
	if output.IsTerminal(p.errOut) {
		if p.bar == nil {
			p.bar = output.ByteProgress(p.errOut, total, p.name)
		}
		_ = p.bar.Set64(done) // the bar is decoration
		return
	}
	now := p.now()
	if done < total && now.Sub(p.said) < sayEvery {
		return
	}
	p.said = now
	if p.log != nil {
		p.log.Info().Str("model", p.name).Str("size", output.Bytes(total)).Int64("percent", p.last).Msg("downloading")
		return
	}
	fmt.Fprintf(p.errOut, "%s: %d%% of %s\n", p.name, p.last, output.Bytes(total))
}

// stopped tells that an interrupted download is not lost.
func (p *downloading) stopped() {
	if p.log != nil {
		p.log.Info().Str("model", p.name).Int64("percent", p.last).Msg("the download has stopped; the same command goes on from there")
		return
	}
	fmt.Fprintf(p.errOut, "%s: stopped at %d%%; the same command goes on from there\n", p.name, p.last)
}

func (p *downloading) end() {
	if p.bar != nil {
		_ = p.bar.Finish() // likewise
	}
}

// FromHub gets models for a command without a configuration.
func FromHub(cmd *cobra.Command) config.Getter {
	return (&getter{errOut: cmd.ErrOrStderr()}).get
}
