package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models/kv/offload"
	"github.com/lutra-lm/lutra/server"
)

func newCache() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Look after prompts that are kept on disk",
		Long: `Looks after the folder of lutra serve --kv-disk (kv.disk.path), which keeps what was computed
of prompts. Servers may use it meanwhile.`,
		Args: Subcommand,
		Example: `  lutra cache ls --kv-disk prefixes
  lutra cache warm body.json --kv-disk prefixes
  lutra cache rm --kv-disk prefixes --unused 24h`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCacheList(), newCacheRemove(), newCacheWarm())
	return cmd
}

// cacheFlags say which folder is meant.
type cacheFlags struct{ config string }

func (c *cacheFlags) register(f *pflag.FlagSet) {
	f.StringVar(&c.config, "config", "", "configuration `FILE` (see config.yaml)")
	f.String("kv-disk", "", "the `FOLDER` (default: kv.disk.path)")
}

// open returns the folder.
func (c *cacheFlags) open(cmd *cobra.Command) (*offload.Folder, error) {
	m := ModelFlags{config: c.config}
	cfg, err := m.load(cmd.Flags())
	if err == nil {
		err = checkDisk(&cfg)
	}
	if err != nil {
		return nil, err
	}
	return offload.NewFolder(cfg.KV.Disk, zerolog.Nop()), nil
}

// checkDisk fails if a configuration names no folder.
func checkDisk(cfg *config.Config) error {
	if cfg.KV.Disk.Path == "" {
		return usage.Errorf("--kv-disk: which folder? kv.disk.path names none either")
	}
	return nil
}

// cachedModel is a model in `cache ls --json`.
type cachedModel struct {
	offload.About
	Folder string    `json:"folder"`
	Files  int       `json:"files"`
	Bytes  int64     `json:"bytes"`
	Used   time.Time `json:"used"`
}

func newCacheList() *cobra.Command {
	var c cacheFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the models whose prompts are kept",
		Long: `Lists the models whose prompts are kept, the latest used first. A model has a line for each of its files, of
the formats of its cache, of the kernels' families and of the builds of lutra that have computed it: they share nothing.`,
		Example: `  lutra cache ls --kv-disk prefixes
  lutra cache ls --kv-disk prefixes --json`,
		Args: Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			folder, err := c.open(cmd)
			if err != nil {
				return err
			}
			list, err := folder.List()
			if err != nil {
				return err
			}
			return listCached(cmd.OutOrStdout(), list, asJSON)
		},
	}
	c.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func listCached(w io.Writer, models []offload.Model, asJSON bool) error {
	list, rows := []cachedModel{}, [][]string{{"model", "file", "kv", "kernels", "build", "files", "size", "used"}}
	for _, m := range models {
		list = append(list, cachedModel{m.About, m.Name, m.Files, m.Bytes, m.Used})
		rows = append(rows, []string{usage.Brief(m.Model), usage.Brief(fmt.Sprintf("%.12s", m.SHA256)), usage.Brief(m.KV), usage.Brief(m.Kernels), usage.Brief(m.Build), fmt.Sprint(m.Files), output.Bytes(m.Bytes), m.Used.Format(time.DateTime)})
	}
	if asJSON {
		return output.JSON(w, list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "nothing is kept")
		return err
	}
	return output.Table(w, rows)
}

func newCacheRemove() *cobra.Command {
	var c cacheFlags
	var unused time.Duration
	cmd := &cobra.Command{
		Use:   "rm [MODEL...]",
		Short: "Remove prompts that are kept",
		Long:  "Removes what is kept of the models of these names, or of all. Files that lutra has not written stay.",
		Example: `  lutra cache rm --kv-disk prefixes
  lutra cache rm lutra-tiny-l --kv-disk prefixes --unused 24h`,
		RunE: func(cmd *cobra.Command, names []string) error {
			if unused < 0 {
				return usage.Errorf("--unused: %v is negative", unused)
			}
			folder, err := c.open(cmd)
			if err != nil {
				return err
			}
			since := time.Time{}
			if unused > 0 {
				since = time.Now().Add(-unused)
			}
			files, bytes, err := folder.Remove(names, since)
			_, printErr := fmt.Fprintf(cmd.OutOrStdout(), "removed %d files, %s\n", files, output.Bytes(bytes))
			return errors.Join(err, printErr)
		},
	}
	c.register(cmd.Flags())
	cmd.Flags().DurationVar(&unused, "unused", 0, "only what nobody has used for so long, such as 24h")
	return cmd
}

func newCacheWarm() *cobra.Command {
	var m ModelFlags
	cmd := &cobra.Command{
		Use:   "warm FILE",
		Short: "Compute a prompt, so that it is kept",
		Long: `Computes a prompt with a model loaded here and keeps it in the folder, so that a server that uses the same
folder, model and settings need not. FILE is - or
  a text                    the prompt of /v1/completions
  a JSON list               messages
  a JSON object             the body of a request to /v1/chat/completions, with messages and tools
It prints how many tokens the prompt has, and how many were kept before.`,
		Example: `  lutra cache warm body.json --kv-disk prefixes --model lutra-tiny-l
  echo "A box holds 12 eggs." | lutra cache warm - --kv-disk prefixes`,
		Args: Arguments("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := readBounded(cmd, args[0])
			if err != nil {
				return err
			}
			path, body, err := warmRequest(data)
			if err != nil {
				return usage.Errorf("%s: %w", args[0], err)
			}
			cfg, err := m.Prepare(cmd)
			if err == nil {
				err = checkDisk(&cfg)
			}
			if err != nil {
				return err
			}
			cfg.Verifiers = nil // nothing is searched for
			return warm(cmd, cfg, path, body)
		},
	}
	m.Register(cmd.Flags())
	m.Quiet(cmd.Flags())
	return cmd
}

// warmRequest returns the path and the body of the request that computes a prompt and one token.
func warmRequest(data []byte) (path string, body []byte, err error) {
	request := map[string]any{}
	text := bytes.TrimSpace(data)
	path = "/v1/chat/completions"
	switch {
	case len(text) == 0:
		return "", nil, errors.New("the file is empty")
	case text[0] == '[' && json.Valid(text):
		request["messages"] = json.RawMessage(text)
	case text[0] == '{' && json.Valid(text):
		if err := json.Unmarshal(text, &request); err != nil {
			return "", nil, err
		}
		for _, name := range []string{"stream", "stream_options", "max_completion_tokens", "n", "scaling", "response_format"} {
			delete(request, name) // they change the answer alone
		}
	default:
		path, request["prompt"] = "/v1/completions", string(data)
	}
	request["max_tokens"] = 1
	body, err = json.Marshal(request)
	return path, body, err
}

// warm has a server in this process, which nobody else reaches, answer a request.
func warm(cmd *cobra.Command, cfg config.Config, path string, body []byte) error {
	log := NewLogger(cfg.Log, cmd.ErrOrStderr())
	if !cmd.Flags().Changed("log") {
		log = log.Level(zerolog.WarnLevel)
	}
	return engines.With(cmd.Context(), cfg, log, func(ctx context.Context, r *engines.Runtime) error {
		opt := inProcess(cfg.Server, log)
		opt.MaxBody = max(opt.MaxBody, int64(len(body)))
		if err := opt.Validate(); err != nil {
			return err
		}
		s := server.New(opt)
		if err := s.Publish(servedModels(r)...); err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+path, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := within{s.Handler()}.RoundTrip(req)
		if err != nil {
			return err
		}
		var answer struct {
			Usage struct {
				Prompt  int `json:"prompt_tokens"`
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			} `json:"usage"`
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", answer.Error.Message)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d tokens, %d of them kept before\n", answer.Usage.Prompt, answer.Usage.Details.Cached)
		return err
	})
}

// inProcess returns the options of a server that is called without a network.
func inProcess(opt server.Options, log zerolog.Logger) server.Options {
	opt.APIKeys, opt.APIKeysFile, opt.AllowedHosts, opt.RequestTimeout, opt.Log = nil, "", nil, 0, log
	opt.Addr, opt.TLSCert, opt.TLSKey = server.DefaultOptions().Addr, "", ""
	return opt
}
