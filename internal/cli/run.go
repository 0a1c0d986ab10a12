package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/apiclient"
	"github.com/lutra-lm/lutra/internal/chat"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/server"
)

func newRun() *cobra.Command {
	var a askFlags
	asJSON, forget := false, false
	cmd := &cobra.Command{
		Use:   "run NAME [PROMPT]",
		Short: "Talk to a model, on a server that is there or its own",
		Long: `Talks to a model of the server at --url, LUTRA_URL or --addr. Where none runs at --addr, it
downloads the model if need be and starts a server there, which others may use too, and which
ends with it. NAME is anything that lutra serve takes: a file, a name of the hub, of the catalogue or
of an embedded model; or a model of the server that is there.

With PROMPT, or with a piped input, it answers once, as lutra ask does; else it is a conversation,
as lutra chat.`,
		Example: `  lutra run lutra-tiny-l "What is 12 * 7?"
  lutra run model.gguf "Why is the sky blue?"
  echo "A box holds 12 eggs. Ann buys 7 boxes." | lutra run lutra-tiny-l "How many eggs does she have?"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage.Errorf("NAME is missing")
			}
			return upTo("PROMPT")(nil, args[1:])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, prompt := cmd.Context(), args[1:]
			once := len(prompt) > 0 || !output.IsTerminal(cmd.InOrStdin())
			question := ""
			if once {
				var err error
				if question, err = questionOf(ctx, prompt, cmd.InOrStdin()); err != nil {
					return err
				}
			}
			end, err := a.serverFor(cmd, args[0])
			if err != nil {
				return err
			}
			err = a.with(cmd, func(answerer chat.Answerer) error {
				if once {
					return chat.Ask(ctx, answerer, &a.Options, question, cmd.OutOrStdout(), cmd.ErrOrStderr(), asJSON)
				}
				return chat.Run(ctx, stopperOf(ctx).stop, answerer, &a.Options, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr(), !forget)
			})
			return errors.Join(err, end())
		},
	}
	f := cmd.Flags()
	a.register(f)
	f.Lookup("model").Hidden = true // it is the argument
	f.String("addr", server.DefaultOptions().Addr, "`HOST:PORT` of the server")
	f.BoolVar(&asJSON, "json", false, "with PROMPT, print JSON when the answer is complete")
	f.BoolVar(&forget, "no-history", false, "do not keep the lines for later chats")
	return cmd
}

// serverFor returns once a server has the model: the one that the flags name, one that is there
// already, or one that it starts, which end ends. The model is then asked for by the server's name for it.
func (a *askFlags) serverFor(cmd *cobra.Command, name string) (end func() error, err error) {
	f, leave := cmd.Flags(), func() error { return nil }
	if f.Changed("model") {
		return nil, usage.Errorf("--model: the model is NAME, %q", usage.Brief(name))
	}
	cfg, err := a.model.load(f)
	if err != nil {
		return nil, err
	}
	if a.server.URL != "" || os.Getenv(urlVariable) != "" {
		return leave, f.Set("model", name)
	}
	own, err := ownURL(cfg.Server)
	if err != nil {
		return nil, err
	}
	if a.server.URL = own; answers(cmd.Context(), own) {
		if name, err = a.served(cmd, name); err != nil {
			return nil, err
		}
		return leave, f.Set("model", name)
	}
	if err := f.Set("model", name); err != nil {
		return nil, err
	}
	if cfg, err = a.model.load(f); err != nil { // with the model
		return nil, err
	}
	if err := f.Lookup("model").Value.(pflag.SliceValue).Replace([]string{cfg.Models[0].APIName()}); err != nil {
		return nil, err
	}
	if !f.Changed("log") {
		cfg.Log.Level = zerolog.WarnLevel.String() // the answer is the output
	}
	get := a.model.getter(cmd, cfg.Log)
	get.log = nil // the bar
	if err := cfg.Get(cmd.Context(), get.get); err != nil {
		return nil, err
	}
	if len(cfg.Server.APIKeys) > 0 && os.Getenv(keyVariable) == "" {
		a.server.Key = cfg.Server.APIKeys[0]
	}
	return startServer(cmd.Context(), cfg, own, get, cmd.ErrOrStderr())
}

// answers reports whether a server is at an address, ready or not.
func answers(ctx context.Context, base string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/healthz", http.NoBody)
	if err != nil {
		return false
	}
	resp, err := ownClient().Do(req)
	if err == nil {
		resp.Body.Close()
	}
	return err == nil && resp.StatusCode == http.StatusOK
}

// served returns what the server that is there calls the model: a file has a name without its folder.
func (a *askFlags) served(cmd *cobra.Command, name string) (string, error) {
	client, err := a.server.client(cmd.Flags())
	if err != nil {
		return "", err
	}
	list, err := client.List(cmd.Context())
	if err != nil || slices.Contains(list.Names, name) || name == apiclient.DefaultModel {
		return name, err
	}
	if m, err := config.ModelFlag(name); err == nil && slices.Contains(list.Names, m.APIName()) {
		return m.APIName(), nil
	}
	why := ""
	if ref, ok, err := hub.Resolve(name); err == nil && ok {
		why = fmt.Sprintf("; lutra pull %s, and the server has it from its next start on", shortName(ref))
	}
	return "", fmt.Errorf("the server at %s has no model %q%s; --addr 127.0.0.1:8081 starts another server", a.server.URL, usage.Brief(name), why+list.Hint(name))
}

// startServer serves until end is called, once it is ready.
func startServer(ctx context.Context, cfg config.Config, own string, get *getter, errOut io.Writer) (end func() error, err error) {
	serving, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	result := make(chan error, 1)
	go func() { result <- serve(serving, cfg, nil, get, errOut) }()
	end = func() error {
		cancel(server.ErrAtOnce)
		return <-result
	}
	client := ownClient()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case err := <-result:
			tick.Stop()
			cancel(nil)
			return nil, err
		case <-ctx.Done():
			tick.Stop()
			return nil, errors.Join(context.Cause(ctx), end())
		case <-tick.C:
			if checkReady(client, own) == nil {
				tick.Stop()
				return end, nil
			}
		}
	}
}
