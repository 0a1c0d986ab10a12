package commands

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/manual"
	"github.com/lutra-lm/lutra/internal/usage"
)

func newDocs() *cobra.Command {
	out, from := "", ""
	cmd := &cobra.Command{
		Use:   "docs --out DIR",
		Short: "Write the documentation as a site",
		Long: `Writes the documentation as HTML into a folder, to read it there or to host it: files of the
same names are replaced. All addresses in it are relative, the search too is files alone, and
nothing is loaded from other hosts. lutra serve shows the same under /docs. The documents are
those of a checkout, the folder of --from.`,
		Example: `  lutra-lab docs --out site`,
		Args:    cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usage.Errorf("name the folder with --out")
			}
			site, err := manual.Build(os.DirFS(from))
			if err == nil {
				err = site.Write(out)
			}
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), filepath.Join(out, "index.html"))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&from, "from", ".", "`DIR` of the checkout")
	cmd.Flags().StringVarP(&out, "out", "o", "", "`DIR` to write into, made where it is missing")
	return cmd
}
