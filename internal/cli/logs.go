package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
)

func newLogs() *cobra.Command {
	var s ServerFlags
	var follow, asJSON bool
	tail := 100
	cmd := &cobra.Command{
		Use:   "logs",
		Short: "Show the last lines of a running server's log",
		Long: `Shows the last lines that a running server has logged, as it does on a terminal, or as
JSON where standard output is none. The server keeps the last thousand; prompts and answers
are in none. It wants a key with the right admin, or the address of --debug-addr as --url,
which wants no key. The server is otherwise that of lutra ps.`,
		Example: `  lutra logs --url http://127.0.0.1:8080
  lutra logs -f --tail 10 --url 127.0.0.1:6060`,
		Args: Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tail < 0 {
				return usage.Errorf("--tail: %d is negative", tail)
			}
			client, err := s.client(cmd.Flags())
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			show := logPrinter(out, asJSON)
			query := url.Values{"tail": {strconv.Itoa(tail)}}
			if follow {
				query.Set("follow", "true")
			}
			for line, err := range client.Lines(cmd.Context(), s.Key, "/debug/logs?"+query.Encode()) {
				if errors.Is(err, context.Canceled) && follow {
					return err // as Ctrl-C means it
				}
				if err == nil {
					err = show(line)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	s.Register(cmd.Flags(), "ask the server", "")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with further lines as they come")
	cmd.Flags().IntVarP(&tail, "tail", "n", tail, "begin with so many of the last lines")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON at a terminal too")
	return cmd
}

// logPrinter returns what prints a line of a log, which is JSON: as people read it on a terminal.
func logPrinter(out io.Writer, asJSON bool) func(line []byte) error {
	raw := func(line []byte) error {
		_, err := fmt.Fprintln(out, output.ForTerminal(out, string(line)))
		return err
	}
	if asJSON || !output.IsTerminal(out) {
		return raw
	}
	console := newConsole(out)
	return func(line []byte) error {
		if !json.Valid(line) {
			return raw(line)
		}
		_, err := console.Write([]byte(output.WithoutControls(string(line))))
		return err
	}
}
