package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/lutra-lm/lutra/internal/errtext"
	"github.com/lutra-lm/lutra/internal/output"
)

// Run runs a chat from in to out, unless ctx has ended. It handles signals itself:
// release has their former handler, which ends ctx, leave them to it. If in and out are
// a terminal and remember is set, lines are kept for the next chat.
func Run(ctx context.Context, release func(), a Answerer, o *Options, in io.Reader, out, errOut io.Writer, remember bool) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	release()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx = context.WithoutCancel(ctx)
	c := &session{Answerer: a, options: o, out: out, errOut: errOut, agreed: map[string]bool{}}
	c.in, c.interactive = newInput(in, out, remember, c.complete)
	return errors.Join(c.run(ctx, signals), c.in.close())
}

// session is a conversation at a terminal or through pipes.
type session struct {
	Answerer
	options     *Options
	in          input
	reading     chan read // the line that in is reading; nil: none
	out, errOut io.Writer
	interactive bool // at a terminal
	turns       []Message
	agreed      map[string]bool // tools whose commands the user has allowed for good
	forgetful   bool            // the user has been told that the beginning no longer fits
	aborted     bool            // the last key was Ctrl-C
	failed      int             // lines
}

// Ends of a chat that are not failures.
var (
	errLeave      = errors.New("the user leaves")
	errTerminated = errors.New("terminated") // by SIGTERM or SIGHUP
)

// run reads questions until they end. A failed answer leaves the conversation as it
// was before the question. An interrupt stops the current answer or discards the line
// being typed; SIGTERM and SIGHUP end the chat at any time.
func (c *session) run(ctx context.Context, signals <-chan os.Signal) error {
	if c.interactive {
		name, words := c.About()
		fmt.Fprintf(c.out, "%s: %s.\n/help lists the commands, Ctrl-D leaves.\n", name, words)
	}
	for {
		question, several, err := c.next(signals)
		switch {
		case errors.Is(err, errAborted) && !c.aborted:
			c.aborted = true
			fmt.Fprintln(c.out, "(Ctrl-C again, Ctrl-D or /bye leaves)")
			continue
		case errors.Is(err, errAborted):
			return c.end()
		case errors.Is(err, io.EOF), errors.Is(err, errTerminated):
			return c.end()
		case err != nil:
			return err
		}
		if c.aborted = false; question == "" {
			continue
		}
		switch name, arg, ok := commandOf(question); {
		case !ok || several:
			err = c.ask(ctx, question, signals)
		case name == retryCommand && arg == "":
			err = c.retry(ctx, signals)
		default:
			err = c.do(ctx, name, arg, signals)
		}
		switch {
		case errors.Is(err, errLeave), errors.Is(err, errTerminated):
			return c.end()
		case errors.Is(err, context.Canceled):
			return err
		case err != nil:
			c.failed++
			fmt.Fprintln(c.notices(), "error:", errtext.Text(err))
		}
	}
}

// end reports failed lines by the exit status if there was nobody to see them.
func (c *session) end() error {
	if c.interactive || c.failed == 0 {
		return nil
	}
	return fmt.Errorf("failed: %d of the lines", c.failed)
}

// notices returns the writer of everything but answers.
func (c *session) notices() io.Writer {
	if c.interactive {
		return c.out
	}
	return c.errOut
}

// next returns the next question: a line, or several between marks. At a terminal a line that
// ends in a backslash goes on in the next one.
func (c *session) next(signals <-chan os.Signal) (question string, several bool, err error) {
	line, err := c.line("> ", true, signals)
	if err != nil {
		return "", false, err
	}
	first, marked := strings.CutPrefix(strings.TrimSpace(line), textMark)
	lines, size := []string{first}, 0
	for {
		last := lines[len(lines)-1]
		switch {
		case c.interactive && strings.HasSuffix(last, lineMark):
			lines[len(lines)-1] = strings.TrimSuffix(last, lineMark)
		case marked && strings.HasSuffix(strings.TrimSpace(last), textMark):
			text := strings.TrimSpace(strings.Join(lines, "\n"))
			return strings.TrimSpace(strings.TrimSuffix(text, textMark)), true, nil
		case !marked:
			return strings.TrimSpace(strings.Join(lines, "\n")), len(lines) > 1, nil
		}
		line, err := c.line("... ", true, signals)
		if errors.Is(err, io.EOF) && !c.interactive {
			return "", true, fmt.Errorf("the text that begins with %s has no end", textMark)
		}
		if err != nil {
			return "", true, err
		}
		lines = append(lines, line)
		if size += len(line) + 1; size > MaxQuestion {
			return "", true, fmt.Errorf("the text has more than %d bytes", MaxQuestion)
		}
	}
}

// textMark begins and ends a text of several lines.
const textMark = `"""`

// lineMark ends a line that another one follows.
const lineMark = `\`

// read is the result of reading a line.
type read struct {
	line string
	err  error
}

// line reads a line unless a signal comes first. At a terminal, an interrupt means
// Ctrl-C after the prompt but before the editor reads keys: the reader continues and
// the next call waits for it.
func (c *session) line(prompt string, keep bool, signals <-chan os.Signal) (string, error) {
	if c.reading == nil {
		c.reading = make(chan read, 1) // the reader ends with the input or the process
		go func(result chan<- read) {
			line, err := c.in.line(prompt, keep)
			result <- read{line, err}
		}(c.reading)
	} else {
		fmt.Fprint(c.out, prompt)
	}
	select {
	case s := <-signals:
		switch {
		case s != os.Interrupt:
			return "", errTerminated
		case c.interactive:
			fmt.Fprintln(c.out)
			return "", errAborted
		}
		return "", context.Canceled
	case r := <-c.reading:
		c.reading = nil
		return r.line, r.err
	}
}

// ask asks a question and prints the answer, with the calls of tools that come before it.
func (c *session) ask(ctx context.Context, question string, signals <-chan os.Signal) error {
	asked := append(c.turns[:len(c.turns):len(c.turns)], Message{Role: RoleUser, Content: question})
	for round := 0; ; round++ {
		text, done, err := c.reply(ctx, append(c.options.opening(), asked...), signals)
		stopped := errors.Is(err, context.Canceled) && c.interactive
		if err != nil && !stopped {
			return err
		}
		if stopped {
			c.stopped()
		} else if why := done.ended(c.options, "/set max_tokens"); why != "" {
			fmt.Fprintln(c.notices(), why)
		}
		if done.Search != nil && !stopped {
			fmt.Fprintf(c.notices(), "(%s)\n", done.Search)
		}
		turns := append(asked, Message{Role: RoleAssistant, Content: text, Calls: done.Calls})
		if done.Dropped > 0 {
			if !c.forgetful {
				fmt.Fprintln(c.notices(), "(the model reads only the end of this conversation from now on; /clear begins a new one)")
			}
			c.forgetful = true
			turns = turns[min(done.Dropped, len(turns)):]
		}
		if stopped || len(done.Calls) == 0 {
			c.turns = turns
			return nil
		}
		if !c.interactive { // nobody is there to allow calls
			return output.JSON(c.out, done.Calls)
		}
		if round == mostRounds {
			return fmt.Errorf("the model has called tools %d times after one question", mostRounds)
		}
		results, err := c.carryOut(ctx, done.Calls, signals)
		if errors.Is(err, context.Canceled) || errors.Is(err, errAborted) || errors.Is(err, io.EOF) {
			c.stopped()
			return nil
		}
		if err != nil {
			return err
		}
		asked = append(turns, results...)
	}
}

// stopped says that Ctrl-C has stopped something; the next one leaves.
func (c *session) stopped() {
	c.aborted = true
	fmt.Fprintln(c.notices(), "(stopped)")
}

// do carries out a command; a signal stops it.
func (c *session) do(ctx context.Context, name, arg string, signals <-chan os.Signal) error {
	ctx, stop := interruptible(ctx, signals)
	defer stop()
	err := c.command(ctx, name, arg)
	if errors.Is(err, context.Canceled) && c.interactive {
		c.stopped()
		return nil
	}
	return err
}

// interruptible returns ctx until a signal comes, which is its cause then, or stop is
// called.
func interruptible(ctx context.Context, signals <-chan os.Signal) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	watching := make(chan struct{})
	go func() {
		select {
		case s := <-signals:
			if s != os.Interrupt {
				cancel(errTerminated)
			}
			cancel(context.Canceled)
		case <-watching:
		}
	}()
	return ctx, func() {
		close(watching)
		cancel(nil)
	}
}

// reply streams one answer, and ends its line. A signal stops it; the text so far is returned.
func (c *session) reply(ctx context.Context, conversation []Message, signals <-chan os.Signal) (string, Answered, error) {
	ctx, stop := interruptible(ctx, signals)
	defer stop()
	var text strings.Builder
	shown := screen{w: c.out, terminal: c.interactive}
	done, err := c.Answer(ctx, c.options, conversation, func(p Piece) error {
		text.WriteString(p.Text)
		return shown.write(p)
	})
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	ended := err == nil && len(done.Calls) == 0 || errors.Is(err, context.Canceled) && c.interactive
	return text.String(), done, errors.Join(err, shown.end(ended))
}
