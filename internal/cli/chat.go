package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/sashabaranov/go-openai"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func newChat() *cobra.Command {
	var m modelFlags
	var o askOptions
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Talk to a model in the terminal",
		Long: `Reads a line, streams the answer, and remembers the conversation. /clear forgets
it, /quit or end of input leaves, Ctrl-C stops the answer.`,
		Example: `  lutra chat
  lutra chat --model model.gguf --system "Answer in one sentence."
  lutra chat --url http://127.0.0.1:8080/v1`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetContext(context.WithoutCancel(cmd.Context())) // chat handles signals itself
			return withAnswerer(cmd, &m, &o, func(ctx context.Context, answer answerer) error {
				return chat(ctx, answer, &o, cmd.InOrStdin(), cmd.OutOrStdout())
			})
		},
	}
	m.register(cmd.Flags())
	o.register(cmd.Flags())
	return cmd
}

// chat reads turns from in until it ends. An answer that fails leaves the
// conversation as it was before the question. An interrupt stops the answer
// under way; while waiting for a question, and SIGTERM at any time, it leaves.
func chat(ctx context.Context, answer answerer, o *askOptions, in io.Reader, out io.Writer) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	prompt := "> "
	if f, ok := in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		prompt = "" // piped input
	}
	opening := o.conversation("")
	opening = opening[:len(opening)-1]
	conversation := opening
	questions, inErr := readLines(in)
	for {
		fmt.Fprint(out, prompt)
		var question string
		select {
		case <-signals:
			return nil
		case line, ok := <-questions:
			if !ok {
				return <-inErr
			}
			question = strings.TrimSpace(line)
		}
		switch question {
		case "":
			continue
		case "/quit", "/exit":
			return nil
		case "/clear":
			conversation = opening
			continue
		}
		asked := append(conversation[:len(conversation):len(conversation)], turn{openai.ChatMessageRoleUser, question})
		text, err := reply(ctx, answer, asked, out, signals)
		fmt.Fprintln(out)
		switch {
		case errors.Is(err, errTerminated):
			return nil
		case errors.Is(err, context.Canceled):
			fmt.Fprintln(out, "(stopped)")
		case err != nil:
			fmt.Fprintln(out, "error:", err)
			continue
		}
		conversation = append(asked, turn{openai.ChatMessageRoleAssistant, text})
	}
}

// readLines reads in the background, so that a signal can end the wait for a
// line. The goroutine ends with the input or the process.
func readLines(in io.Reader) (<-chan string, <-chan error) {
	lines, result := make(chan string), make(chan error, 1)
	go func() {
		s := bufio.NewScanner(in)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			lines <- s.Text()
		}
		result <- s.Err()
		close(lines)
	}()
	return lines, result
}

// errTerminated says that SIGTERM ended an answer, and the program with it.
var errTerminated = errors.New("terminated")

// reply streams one answer to out; a signal stops it and keeps the text so far.
func reply(ctx context.Context, answer answerer, conversation []turn, out io.Writer, signals <-chan os.Signal) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watching := make(chan struct{})
	defer close(watching)
	go func() {
		select {
		case s := <-signals:
			if s == syscall.SIGTERM {
				cancel(errTerminated)
			}
			cancel(context.Canceled)
		case <-watching:
		}
	}()
	var text strings.Builder
	err := answer(ctx, conversation, func(piece string) error {
		text.WriteString(piece)
		_, err := io.WriteString(out, piece)
		return err
	})
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return text.String(), err
}
