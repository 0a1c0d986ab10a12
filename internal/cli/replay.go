package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/replay"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/server"
	"github.com/lutra-lm/lutra/server/receipt"
)

// exitStatus is an error that ends the program with a status of its own. Without a cause
// everything has been said.
type exitStatus struct {
	status int
	cause  error
}

func (e exitStatus) Error() string {
	if e.cause == nil {
		return ""
	}
	return e.cause.Error()
}

func (e exitStatus) Unwrap() error { return e.cause }

// The statuses of replay, as of diff and cmp.
const (
	statusDiffers = 1
	statusTrouble = 2
)

// replayFlags are the flags of replay.
type replayFlags struct {
	model   ModelFlags
	server  ServerFlags
	request string
	asJSON  bool
}

func newReplay() *cobra.Command {
	var a replayFlags
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Compute an answer again and say where it differs",
		Long: `Has a model loaded here, or the server at --url, compute the answer in FILE again, and
compares the two bit for bit: the tokens of all choices, and of a search the tokens and
scores of all candidates. FILE is an answer to a request with "receipt": true, as curl
keeps it, streamed or not; or its receipt alone; or -. A receipt of hashes alone
("receipt": "hash") wants the request's body too, byte for byte, as --request.

The exit status is 0 when all bits are the same, 1 when some differ, and 2 when the
answers cannot be compared: another model file, other settings, or kernels of another
family, which round otherwise. Adapters are found by their files' hashes among those of
--lora. Only the server at --url is asked, and no model is downloaded that --model does
not name.`,
		Example: `  lutra replay answer.json
  lutra replay answer.json --model lutra-tiny-l --threads 1
  lutra replay answer.json --url http://127.0.0.1:8080
  lutra replay answer.json --request body.json --json`,
		Args: Arguments("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.run(cmd, args[0])
			if known := (exitStatus{}); err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.As(err, new(usage.Error)) {
				return err
			}
			return exitStatus{statusTrouble, err}
		},
	}
	f := cmd.Flags()
	a.model.Register(f)
	a.model.Quiet(f)
	a.server.Register(f, "ask the server", "")
	f.StringVar(&a.request, "request", "", "`FILE` of the request's body, for a receipt that holds its hash alone")
	f.BoolVar(&a.asJSON, "json", false, "print what was found as JSON")
	return cmd
}

func (a *replayFlags) run(cmd *cobra.Command, file string) error {
	if err := a.server.Complete(cmd.Flags()); err != nil {
		return err
	}
	saved, err := readSaved(cmd, file)
	if err != nil {
		return err
	}
	was := &saved.Receipt
	var given []byte
	if a.request != "" {
		if given, err = readBounded(cmd, a.request); err != nil {
			return err
		}
	}
	body, err := was.Body(given)
	if errors.Is(err, receipt.ErrNoRequest) {
		return fmt.Errorf("%s: %w with --request FILE", file, err)
	} else if err != nil {
		return fmt.Errorf("%s: %w", cmp.Or(a.request, file), err)
	}
	return a.with(cmd, was, body, func(r *replay.Replica) error {
		v, err := replay.Run(cmd.Context(), was, body, r)
		if err != nil {
			return err
		}
		return a.report(cmd, was, v, r)
	})
}

// report prints what was found, and returns the status that goes with it.
func (a *replayFlags) report(cmd *cobra.Command, was *receipt.Receipt, v *receipt.Verdict, r *replay.Replica) error {
	if a.asJSON {
		e := json.NewEncoder(cmd.OutOrStdout())
		e.SetEscapeHTML(false)
		if err := e.Encode(struct {
			Same bool `json:"same"`
			*receipt.Verdict
		}{v.Same(), v}); err != nil {
			return err
		}
	}
	if len(v.Apart) > 0 {
		var all []error
		for _, reason := range v.Apart {
			all = append(all, fmt.Errorf("cannot be compared: %s", reason))
		}
		return exitStatus{statusTrouble, errors.Join(all...)}
	}
	if !a.asJSON {
		replay.Report(cmd.Context(), cmd.OutOrStdout(), was, v, r)
	}
	if !v.Same() {
		return exitStatus{status: statusDiffers}
	}
	return nil
}

// readSaved reads what somebody has kept.
func readSaved(cmd *cobra.Command, file string) (*receipt.Saved, error) {
	data, err := readBounded(cmd, file)
	if err != nil {
		return nil, err
	}
	saved, err := receipt.Read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return saved, nil
}

// readBounded reads a file, or standard input for -.
func readBounded(cmd *cobra.Command, file string) ([]byte, error) {
	in := cmd.InOrStdin()
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	data, err := ReadUntil(cmd.Context(), io.LimitReader(in, replay.MaxFile+1))
	if err == nil && len(data) > replay.MaxFile {
		err = fmt.Errorf("%s: it has more than %d bytes", file, replay.MaxFile)
	}
	return data, err
}

// with runs f with the server at --url, or with one in this process that nobody else
// reaches.
func (a *replayFlags) with(cmd *cobra.Command, was *receipt.Receipt, body []byte, f func(*replay.Replica) error) error {
	if a.server.URL != "" {
		names, err := cmd.Flags().GetStringArray("model")
		if err == nil && len(names) > 1 {
			err = usage.Errorf("--model: one of the server's models answers, got %d", len(names))
		}
		if err != nil {
			return err
		}
		r, err := replay.NewReplica(a.server.URL, a.server.Key, append(names, "")[0])
		if err != nil {
			return err
		}
		return f(r)
	}
	cfg, log, err := a.configuration(cmd, was)
	if err != nil {
		return err
	}
	return engines.With(cmd.Context(), cfg, log, func(_ context.Context, r *engines.Runtime) error {
		opt := inProcess(cfg.Server, log)
		if err := opt.Validate(); err != nil {
			return err
		}
		s := server.New(opt)
		if err := s.Publish(servedModels(r)...); err != nil {
			return err
		}
		name, base := cfg.Models[0].APIName(), was.Model.Base()
		if slices.ContainsFunc(cfg.Models, func(m config.Model) bool { return m.APIName() == base }) {
			name = base
		}
		scales, err := scalesOf(cmd.Context(), &was.Model, r, name)
		if err != nil {
			return err
		}
		return f(&replay.Replica{Client: &http.Client{Transport: within{s.Handler()}}, Base: "http://localhost", Model: name + was.Switches(body), Scales: scales})
	})
}

// anyTime is the turn of work that nothing else goes on beside.
func anyTime(ctx context.Context) (end func(), err error) { return func() {}, context.Cause(ctx) }

// scalesOf returns the scales of a loaded model's adapters that give the model of a receipt:
// adapters are found by their files' hashes.
func scalesOf(ctx context.Context, was *receipt.Model, r *engines.Runtime, name string) ([]receipt.Scale, error) {
	loaded := map[string][]int{} // SHA-256 → numbers
	for _, h := range r.All() {
		if h.Config.APIName() != name || h.Adapters == nil {
			continue
		}
		for i, u := range h.Adapters.List {
			sum, err := u.Adapter.Identity.Digest(ctx, anyTime)
			if err != nil {
				return nil, err
			}
			loaded[sum] = append(loaded[sum], i)
		}
	}
	scales := []receipt.Scale{}
	for _, a := range was.Adapters {
		of := loaded[a.SHA256]
		if len(of) == 0 {
			return nil, fmt.Errorf("model.adapters: the answer has %q of SHA-256 %.12s, which no adapter here is: name its file with --lora", usage.Brief(a.Name), a.SHA256)
		}
		scales, loaded[a.SHA256] = append(scales, receipt.Scale{ID: of[0], Scale: a.Scale}), of[1:]
	}
	return scales, nil
}

// configuration configures the model that computes the answer again: the receipt's if it
// is embedded and no other is named, with keys and values in its format.
func (a *replayFlags) configuration(cmd *cobra.Command, was *receipt.Receipt) (cfg config.Config, log zerolog.Logger, err error) {
	f := cmd.Flags()
	if !f.Changed("model") && a.model.config == "" {
		name := was.Model.Base()
		if !slices.ContainsFunc(embedded.Models(), func(e embedded.Entry) bool { return e.Name == name }) {
			return cfg, log, fmt.Errorf("the answer is by %q, which is not embedded: name its file with --model, or a server with --url", usage.Brief(name))
		}
		if err := f.Set("model", name); err != nil {
			return cfg, log, err
		}
	}
	if list := was.Model.Adapters; len(list) > 0 && !f.Changed("lora") && a.model.config == "" {
		return cfg, log, fmt.Errorf("the answer has adapter %q (SHA-256 %.12s): name its file with --lora, or a server with --url", usage.Brief(list[0].Name), list[0].SHA256)
	}
	if !f.Changed("kv-type") && a.model.config == "" && (was.Model.KV == "f32" || slices.Contains(config.KVTypes(), was.Model.KV)) {
		if err := f.Set("kv-type", was.Model.KV); err != nil {
			return cfg, log, err
		}
	}
	if cfg, err = a.model.Prepare(cmd); err != nil {
		return cfg, log, err
	}
	log = NewLogger(cfg.Log, cmd.ErrOrStderr())
	if !f.Changed("log") {
		log = log.Level(zerolog.WarnLevel)
	}
	return cfg, log, nil
}

// within sends requests to a handler in this process.
type within struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (w within) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := &recorder{header: http.Header{}, status: http.StatusOK}
	w.handler.ServeHTTP(rec, r)
	return &http.Response{StatusCode: rec.status, Status: fmt.Sprintf("%d %s", rec.status, http.StatusText(rec.status)), Header: rec.header,
		Body: io.NopCloser(&rec.body), Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
}

// recorder keeps a handler's answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
