package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/lab/quantize"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/gguf/parts"
)

// quantizing has the flags of `lutra-lab quantize`.
type quantizing struct {
	quantize.Options
	imatrix        string
	overrides      []string
	dryRun, asJSON bool
}

func newQuantize() *cobra.Command {
	var q quantizing
	cmd := &cobra.Command{
		Use:   "quantize IN [OUT] TYPE",
		Short: "Store a model's weights in fewer bits",
		Long: `Writes the model IN, a GGUF file, a directory of safetensors or a name that lutra info takes,
to the file OUT with its matrices in another type, and says of each tensor how far its
weights are from what they were.
Types and the mixtures of _S and _M are those of llama.cpp, and so are the bytes. OUT is there
whole or not at all. Ctrl-C prints the tensors so far. With --dry-run OUT may be left out.

TYPE is one of ` + strings.Join(quantize.FileTypes(), ", ") + `.`,
		Example: `  lutra-lab quantize model-f16.gguf model-q4_k_m.gguf Q4_K_M
  lutra-lab quantize --imatrix imatrix.gguf model-f16.gguf model-iq4_xs.gguf IQ4_XS
  lutra-lab quantize --dry-run model-f16.gguf Q5_K_M          # sizes alone
  lutra-lab quantize --tensor-type ffn_down=Q6_K --token-embedding-type Q8_0 model-f16.gguf model-q4_0.gguf Q4_0
  lutra-lab quantize lutra-tiny-s tiny-tq2_0.gguf TQ2_0       # ternary weights, kept exactly`,
		Args: func(_ *cobra.Command, args []string) error {
			switch n := len(args); {
			case n == 3 || n == 2 && q.dryRun:
				return nil
			case n < 3 && !q.dryRun:
				return cli.Arguments("IN", "OUT", "TYPE")(nil, args)
			}
			return usage.Errorf("takes IN, OUT and TYPE, got %d arguments", len(args))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return q.run(cmd, args[0], args[1], args[len(args)-1])
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&q.overrides, "tensor-type", nil, "type of tensors by `PATTERN=TYPE`, a regular expression that is found in their names; the first that is found counts; may be repeated")
	typeVar(f, &q.Output, "output-tensor-type", "of output.weight")
	typeVar(f, &q.Embedding, "token-embedding-type", "of the token embeddings")
	f.BoolVar(&q.Pure, "pure", false, "give all matrices the same type, no mixture")
	f.BoolVar(&q.Requantize, "allow-requantize", false, "quantise again what is quantised already, which adds to its error")
	f.StringVar(&q.imatrix, "imatrix", "", "weigh errors by the importance matrix in `FILE`, which lutra-lab imatrix and llama-imatrix write")
	f.BoolVar(&q.dryRun, "dry-run", false, "write nothing; show types and sizes")
	f.BoolVar(&q.asJSON, "json", false, "print JSON")
	return cmd
}

// run quantises the model in.
func (q *quantizing) run(cmd *cobra.Command, in, out, typ string) error {
	var ok bool
	if q.Type, ok = quantize.FileTypeNamed(typ); !ok {
		return usage.Errorf("TYPE: %q is none of %s%s", usage.Brief(typ), strings.Join(quantize.FileTypes(), ", "), usage.DidYouMean(strings.ToUpper(typ), quantize.FileTypes()))
	}
	for _, o := range q.overrides {
		override, err := readOverride(o)
		if err != nil {
			return err
		}
		q.Tensors = append(q.Tensors, override)
	}
	f, err := cli.OpenStored(cmd.Context(), in)
	if err != nil {
		return err
	}
	defer f.Close()
	if q.imatrix != "" {
		if q.Importance, err = quantize.OpenImportance(q.imatrix); err != nil {
			return err
		}
		defer q.Importance.Close()
	}
	plan, err := quantize.NewPlan(f, q.Options)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	r := quantized{Type: q.Type.Name, imatrix: q.imatrix}
	if q.dryRun {
		for i := range plan.Tensors {
			r.add(&quantize.Result{Planned: &plan.Tensors[i]})
		}
	} else {
		if err := refuseInput(out, in, f, q.imatrix); err != nil {
			return err
		}
		r.File, r.measured = out, true
		err = writePlan(cmd.Context(), cmd.ErrOrStderr(), f, plan, out, &r)
		if err != nil && (cmd.Context().Err() == nil || len(r.Tensors) == 0) {
			return fmt.Errorf("%s: %w", in, err)
		}
		if err != nil {
			r.File = ""
			fmt.Fprintf(cmd.ErrOrStderr(), "ended after %d of %d tensors: %s is not written\n", len(r.Tensors), len(plan.Tensors), out)
		}
	}
	if q.asJSON {
		return errors.Join(output.JSON(cmd.OutOrStdout(), r), err)
	}
	return errors.Join(r.print(cmd.OutOrStdout()), err)
}

// writePlan writes the file out and adds up what became of the tensors.
func writePlan(ctx context.Context, progress io.Writer, f *gguf.File, plan *quantize.Plan, out string, r *quantized) error {
	total := int64(0)
	for i := range plan.Tensors {
		total += int64(plan.Tensors[i].Tensor.Bytes())
	}
	meter := &output.Meter{W: progress, What: "quantising", Bytes: true, Early: true}
	defer meter.End()
	return gguf.WriteFile(out, func(w io.Writer) error {
		err := plan.Write(ctx, w, func(one *quantize.Result) {
			r.add(one)
			meter.Set(r.Before, total)
		})
		return errors.Join(err, f.Unchanged())
	})
}

// refuseInput reports that out is a file that is read.
func refuseInput(out, in string, f *gguf.File, imatrix string) error {
	there, err := os.Stat(out)
	if err != nil {
		return nil // WriteFile says what is wrong, if anything is
	}
	if there.IsDir() {
		return usage.Errorf("OUT: %s is a folder", out)
	}
	read := []string{imatrix}
	if m := config.ModelNamed(in); m.Path != "" {
		read = append(read, m.Path)
		if name, ok := parts.Parse(m.Path); ok && f.Parts() > 1 {
			read = append(read, name.All()...)
		}
	}
	for _, path := range read {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, there) {
			return usage.Errorf("OUT: %s is read; write to another file", out)
		}
	}
	return nil
}

// readOverride reads PATTERN=TYPE.
func readOverride(text string) (o quantize.Override, err error) {
	at := strings.LastIndexByte(text, '=')
	if at <= 0 {
		return o, usage.Errorf("--tensor-type: %q is not PATTERN=TYPE", usage.Brief(text))
	}
	if o.Type, err = writtenType(text[at+1:]); err != nil {
		return o, usage.Errorf("--tensor-type: %w", err)
	}
	if o.Pattern, err = regexp.Compile(text[:at]); err != nil {
		return o, usage.Errorf("--tensor-type: %w", err)
	}
	return o, nil
}

// writtenType returns the storage type of that name, in upper or lower case, if it can be
// written.
func writtenType(name string) (gguf.Type, error) {
	t, ok := gguf.TypeNamed(strings.ToUpper(name))
	if !ok || !quantize.Writes(t) {
		return 0, fmt.Errorf("%q is none of %s%s", usage.Brief(name), strings.Join(quantize.Types(), ", "), usage.DidYouMean(strings.ToUpper(name), quantize.Types()))
	}
	return t, nil
}

// typeValue is a flag that takes a storage type.
type typeValue struct{ p **gguf.Type }

func typeVar(f *pflag.FlagSet, p **gguf.Type, name, of string) {
	f.Var(typeValue{p}, name, "`TYPE` "+of+": "+strings.Join(quantize.Types(), ", "))
}

func (v typeValue) String() string {
	if v.p == nil || *v.p == nil {
		return ""
	}
	return (*v.p).String()
}
func (v typeValue) Type() string      { return "string" }
func (v typeValue) Choices() []string { return quantize.Types() }
func (v typeValue) Set(s string) error {
	t, err := writtenType(s)
	if err != nil {
		return cli.NotAWord(err)
	}
	*v.p = &t
	return nil
}
