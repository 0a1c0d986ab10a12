package commands

import (
	"fmt"
	"io"
	"os"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/grammar/schema"
	"github.com/lutra-lm/lutra/lab/bench"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

func newSchema() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Try JSON schemas as answers are held to them",
		Example: `  lutra-lab schema check schema.json instance.json
  lutra-lab schema bench maskbench/data`,
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSchemaCheck(), newSchemaBench())
	return cmd
}

// vocabularyOf returns the tokenizer of a model on this machine.
func vocabularyOf(cmd *cobra.Command, model string) (*tokenizer.Tokenizer, error) {
	if model == "" {
		model = embedded.Models()[0].Name
	}
	f, err := cli.OpenStored(cmd.Context(), model)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return tokenizer.New(f.Metadata)
}

func newSchemaCheck() *cobra.Command {
	var model string
	var options schema.Options
	further := false
	cmd := &cobra.Command{
		Use:   "check SCHEMA INSTANCE",
		Short: "Tell whether a schema is supported, and lets an instance through",
		Long: `Compiles the JSON Schema in the file SCHEMA, and feeds the text in the file INSTANCE
through it token by token, as a model would write it. The first token that is refused is
named, with what may stand in its place.`,
		Example: `  lutra-lab schema check schema.json instance.json
  echo 12 | tr -d '\n' | lutra-lab schema check --any-order schema.json -`,
		Args: cli.Arguments("SCHEMA", "INSTANCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			instance, err := readText(cmd.Context(), args[1], cmd.InOrStdin())
			if err != nil {
				return err
			}
			t, err := vocabularyOf(cmd, model)
			if err != nil {
				return err
			}
			options.Listed = !further
			return checkInstance(cmd.OutOrStdout(), text, instance, options, t)
		},
	}
	cmd.Flags().StringVar(&model, "model", "", "GGUF `FILE`, or a name as lutra serve takes, whose tokens are used (default: the embedded model)")
	cmd.Flags().BoolVar(&options.AnyOrder, "any-order", false, "let properties stand in any order")
	cmd.Flags().BoolVar(&further, "any-properties", false, "let objects have properties that the schema neither lists nor rules out")
	return cmd
}

// checkInstance reports where a schema ends an instance.
func checkInstance(w io.Writer, text []byte, instance string, options schema.Options, t *tokenizer.Tokenizer) error {
	g, err := schema.Compile(text, options)
	if err != nil {
		return err
	}
	s, at := g.Start(), 0
	for i, id := range t.Encode(nil, instance, tokenizer.Options{}) {
		piece := t.Piece(id)
		next, n, err := s.Read(piece)
		if err != nil {
			return err
		}
		if n < len(piece) {
			return fmt.Errorf("token %d, %q, is refused at byte %d, where may stand: %s", i+1, piece, at+n, next.Expected())
		}
		s, at = next, at+n
	}
	if !s.Accepts() {
		return fmt.Errorf("the text ends too early; there may follow: %s", s.Expected())
	}
	_, err = fmt.Fprintln(w, "accepted")
	return err
}

func newSchemaBench() *cobra.Command {
	var o bench.SchemaOptions
	var model string
	asJSON := false
	cmd := &cobra.Command{
		Use:   "bench DIR",
		Short: "Measure schemas with valid and invalid instances",
		Long: `Compiles every schema of a directory and feeds its instances token by token through
the masks: how many schemas are supported, how many instances are judged wrongly, and
how long a mask and a compilation take, on one thread. The files are those of MaskBench
(github.com/guidance-ai/jsonschemabench, the folder maskbench/data): JSON objects with a
schema, and tests with valid and data.`,
		Example: `  lutra-lab schema bench maskbench/data
  lutra-lab schema bench --as-served maskbench/data
  lutra-lab schema bench --any-order --json maskbench/data`,
		Args: cli.Arguments("DIR"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			o.Dir = args[0]
			if o.Tokenizer, err = vocabularyOf(cmd, model); err != nil {
				return err
			}
			r, err := bench.Schemas(cmd.Context(), o, cmd.ErrOrStderr())
			return showReport(cmd, asJSON, r, err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&model, "model", "", "GGUF `FILE`, or a name as lutra serve takes, whose tokens are used (default: the embedded model)")
	f.BoolVar(&o.AnyOrder, "any-order", false, "let properties stand in any order")
	f.BoolVar(&o.Listed, "as-served", false, "hold objects to the properties that the schema lists, as answers are")
	f.IntVar(&o.Reasons, "reasons", 0, "list the `N` commonest reasons of refusals")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
