package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/server/admission"
)

func newKey() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make keys for a server's clients",
		Long:  "Makes keys for lutra serve --api-keys-file.",
		Args:  Subcommand,
		Example: `  lutra key create alice
  lutra key create bob --requests-per-minute 60 --file keys.txt`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newKeyCreate())
	return cmd
}

func newKeyCreate() *cobra.Command {
	var c admission.Credential
	var file string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a key at random",
		Long: `Prints a new key, for the client alone, and the line for the server's file of keys, which has
its SHA-256 and the limits. With --file the line is added to that file, and the key alone is
printed. Nothing else keeps the key. A server that reads the file takes it within seconds.

A limit that is left out is as in server.requests_per_minute and server.tokens_per_minute;
--max-requests bounds the requests under way, --models lists the only ones that may be used,
and --admin makes a key that may also read GET /usage, GET /debug/requests, /debug/logs and profiles,
and load and unload models, or set the scales of their adapters, for all.`,
		Example: `  lutra key create alice
  lutra key create bob --requests-per-minute 60 --tokens-per-minute 100000 --max-requests 4 --models lutra-tiny-l
  lutra key create ops --admin --file keys.txt`,
		Args: Arguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Name = args[0]
			return createKey(cmd.OutOrStdout(), c, file)
		},
	}
	f := cmd.Flags()
	f.IntVar(&c.Requests, "requests-per-minute", 0, "requests a minute")
	f.IntVar(&c.Tokens, "tokens-per-minute", 0, "tokens a minute, of prompts and completions")
	f.IntVar(&c.AtOnce, "max-requests", 0, "requests under way")
	f.StringSliceVar(&c.Models, "models", nil, "names of models, with commas between: others are refused")
	f.BoolVar(&c.Admin, "admin", false, "may also read /usage, /debug/requests, /debug/logs and profiles, and change what others get")
	f.StringVar(&file, "file", "", "add the line to this `FILE`")
	return cmd
}

// createKey prints a new key, and its line unless a file gets it.
func createKey(out io.Writer, c admission.Credential, file string) error {
	key, line, err := admission.NewKey(c)
	if err != nil {
		return usage.Error{Err: err}
	}
	if file == "" {
		_, err = fmt.Fprintf(out, "%s\n%s\n", key, line)
		return err
	}
	if err := addKey(file, line); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, key)
	return err
}

// addKey adds a line to a file of keys, which it makes if there is none. The file as it will be is
// checked beforehand, and takes the place of the former one at once: a server may read it at any
// moment.
func addKey(file, line string) (err error) {
	mode := os.FileMode(0o600)
	var text []byte
	if info, statErr := os.Stat(file); statErr == nil {
		if _, err := admission.ReadKeys(file, admission.Limits{}); err != nil && info.Size() > 0 {
			return err
		}
		if text, err = os.ReadFile(file); err != nil {
			return err
		}
		mode = info.Mode().Perm()
	}
	if n := len(text); n > 0 && text[n-1] != '\n' {
		text = append(text, '\n')
	}
	next := file + ".new"
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode) // another command has it, if it is there
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(next)
		}
	}()
	_, err = f.Write(append(text, line+"\n"...))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if _, err = admission.ReadKeys(next, admission.Limits{}); err != nil {
		return fmt.Errorf("with the new key, %w", err)
	}
	return os.Rename(next, file)
}
