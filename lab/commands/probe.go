package commands

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/cli"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/lab/eval"
	"github.com/lutra-lm/lutra/lab/probe"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
)

// probeOptions are the flags of probe train.
type probeOptions struct {
	probe.Sampling
	data     string
	journals []string
	layers   []int
	folds    int
	rescored string // file; empty: none
	limit    int
	out      string
	asJSON   bool
}

func newProbe() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "probe",
		Short:   "Train a verifier that reads a model's own states",
		Args:    cli.Arguments(),
		Example: `  lutra-lab probe train --model lutra-tiny-s --data problems.jsonl --out probe.gguf`,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newProbeTrain())
	return cmd
}

func newProbeTrain() *cobra.Command {
	var m cli.ModelFlags
	var o probeOptions
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a probe on answers to problems with known answers",
		Long: `Has a model answer the problems of --data, --n times each, or takes the answers of journals that
lutra-lab eval --out has written (--journal, without what the model thought before an answer), and fits a line through the model's states that tells right
answers from wrong ones: the mean over an answer's tokens behind each layer, the last token's, and
the log-probabilities. Another line is for beginnings of answers that end with a line.

Journals that were written with --states need no states computed for whole answers.

One problem in ten is held out, for the report, or with --folds each problem once: the AUC, the calibration, and what the probe chooses
among the candidates beside a vote and the model's other verifier. 2,000 problems or more that the
model gets right about half the time are a good beginning. Problems are read as lutra-lab eval reads them.

The file is named as a verifier: verifiers with probe in the configuration, or --verifier.`,
		Example: `  lutra-lab probe train --model lutra-tiny-s --data problems.jsonl --out probe.gguf
  lutra-lab probe train --model lutra-tiny-s --journal report --out probe.gguf`,
		Args: cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.out == "":
				return usage.Errorf("--out is required")
			case (o.data == "") == (len(o.journals) == 0):
				return usage.Errorf("set either --data or --journal")
			case o.limit < 0 || o.Concurrency < 1 || o.MaxTokens < 1:
				return usage.Errorf("--concurrency and --max-tokens must be positive, --limit not negative")
			case o.folds < 1 || o.folds == 2 || o.folds > maxFolds:
				return usage.Errorf("--folds: %d is neither 1 nor 3 to %d", o.folds, maxFolds)
			case o.rescored != "" && len(o.journals) != 1:
				return usage.Errorf("--rescored: it is one journal again; name one with --journal")
			case o.N < 2 || o.N > maxCandidates:
				return usage.Errorf("--n: %d is outside 2 to %d", o.N, maxCandidates)
			}
			return trainProbe(cmd, &m, &o)
		},
	}
	f := cmd.Flags()
	m.Register(f)
	m.Quiet(f)
	f.StringVar(&o.data, "data", "", "problems as JSON lines, a `FILE`")
	f.StringArrayVar(&o.journals, "journal", nil, "`DIR` with the journal of lutra-lab eval --out; may be repeated")
	f.IntSliceVar(&o.layers, "layers", nil, "layers to read, from 0 on (default: all, or as many as 8192 numbers allow)")
	f.IntVar(&o.folds, "folds", 1, "hold each problem out once, in so many parts, and fit the probe to all problems")
	f.StringVar(&o.rescored, "rescored", "", "write the journal again to this `FILE`, with the scores of the problems that were held out, for lutra-lab eval choose")
	f.IntVarP(&o.N, "n", "n", 8, "candidates of a problem")
	f.IntVar(&o.limit, "limit", 0, "first problems only (default: all)")
	f.Float32VarP(&o.Temperature, "temperature", "t", 0.8, "sampling temperature")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the first problem; each next problem adds 1")
	f.IntVar(&o.MaxTokens, "max-tokens", 512, "maximum tokens of a candidate")
	f.StringVar(&o.System, "system", "", "system message")
	cli.ThinkingVar(f, &o.Thinking)
	f.IntVarP(&o.Concurrency, "concurrency", "c", 8, "problems at once")
	f.StringVarP(&o.out, "out", "o", "", "`FILE` to write, a GGUF")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	return cmd
}

// maxFolds bounds how often a probe is fitted.
const maxFolds = 20

// trainProbe trains a probe of the first model and writes it.
func trainProbe(cmd *cobra.Command, m *cli.ModelFlags, o *probeOptions) error {
	var problems []eval.Problem
	if o.data != "" {
		var err error
		if problems, _, err = (&evalOptions{data: o.data}).problems(); err != nil {
			return err
		}
		if o.limit > 0 {
			problems = problems[:min(o.limit, len(problems))]
		}
	}
	cfg, err := m.Prepare(cmd)
	if err != nil {
		return err
	}
	cfg.Models, cfg.Partial = cfg.Models[:1], true
	digest, err := cfg.Models[0].Digest(cmd.Context())
	if err != nil {
		return err
	}
	log := cli.NewLogger(cfg.Log, cmd.ErrOrStderr())
	if !cmd.Flags().Changed("log") {
		log = log.Level(zerolog.WarnLevel) // the report is the output
	}
	shown := cli.Loading{W: cmd.ErrOrStderr()}
	defer shown.End()
	var t *probe.Trainer
	var unfit error
	watch := engines.Watcher{Loading: shown.Show, Probe: func(shape *models.Config) *models.Probe {
		if t, unfit = probe.New(shape, o.layers, o.folds); unfit != nil {
			return nil
		}
		return t.Reads()
	}}
	return engines.WithWatcher(cmd.Context(), cfg, log, watch, func(ctx context.Context, r *engines.Runtime) error {
		shown.End()
		if err := errors.Join(r.Writes(), r.Adapt()); err != nil {
			return err
		}
		if unfit != nil {
			return usage.Errorf("--layers: %w", unfit)
		}
		h := r.Hosts[0]
		meter := &output.Meter{W: cmd.ErrOrStderr(), What: "problems"}
		defer meter.End()
		if o.data != "" {
			err = t.Sample(ctx, eval.Searcher{Model: h.Model, Verifiers: r.Verifiers(h.Model)}, problems, o.Sampling, meter.Count(0, len(problems)))
		} else {
			err = t.Recall(ctx, h.Model, o.journals, o.limit, o.Concurrency, func(total int) func() { return meter.Count(0, total) })
		}
		meter.End()
		if err != nil {
			return err
		}
		shape := h.Bundle.Model.Config()
		p, report, err := t.Fit(ctx, &shape, digest)
		if err != nil {
			return err
		}
		if o.rescored != "" {
			if err := t.Rescore(o.journals[0], o.rescored); err != nil {
				return err
			}
		}
		p.Name = h.Model.Name + "-probe"
		if err := gguf.WriteFile(o.out, p.Write); err != nil {
			return err
		}
		if o.asJSON {
			return output.JSON(cmd.OutOrStdout(), report)
		}
		return printProbe(cmd.OutOrStdout(), o.out, report)
	})
}

func printProbe(w io.Writer, path string, r *probe.Report) error {
	_, err := fmt.Fprintf(w, "%s: %d problems, %d answers (%d right), %d held out\n\n", path, r.Problems, r.Whole.Examples, r.Whole.Right, r.Held)
	quality := func(name string, q *probe.Quality) []string {
		return []string{name, fmt.Sprintf("%.3f", q.AUC), fmt.Sprintf("%.3f", q.Brier), fmt.Sprintf("%.3f", q.ECE)}
	}
	rows := [][]string{{"scores", "AUC", "Brier", "ECE"}, quality("probe", &r.Probe)}
	if r.Other != nil {
		rows = append(rows, quality("verifier: "+r.Verifier, r.Other))
	}
	err = errors.Join(err, output.Table(w, rows))
	_, blank := fmt.Fprintln(w)
	rows = [][]string{{fmt.Sprintf("chosen among %d", r.N), "right %"}}
	for _, c := range r.Chosen {
		rows = append(rows, []string{c.By, fmt.Sprintf("%.1f", 100*c.Right)})
	}
	return errors.Join(err, blank, output.Table(w, rows))
}
