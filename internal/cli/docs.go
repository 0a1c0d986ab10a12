package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/manual"
	"github.com/lutra-lm/lutra/internal/usage"
)

type documentsKey struct{}

// withDocuments gives commands the repository's documents.
func withDocuments(ctx context.Context, documents fs.FS) context.Context {
	return context.WithValue(ctx, documentsKey{}, documents)
}

// documentsOf returns the repository's documents; nil: there are none, as in tests.
func documentsOf(ctx context.Context) fs.FS {
	documents, _ := ctx.Value(documentsKey{}).(fs.FS)
	return documents
}

func newDocs() *cobra.Command {
	out := ""
	cmd := &cobra.Command{
		Use:   "docs --out DIR",
		Short: "Write the documentation as a site",
		Long: `Writes the documentation as HTML into a folder, to read it there or to host it: files of the
same names are replaced. All addresses in it are relative, the search too is files alone, and
nothing is loaded from other hosts. lutra serve shows the same under /docs.`,
		Example: `  lutra docs --out site`,
		Args:    arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usage.Errorf("name the folder with --out")
			}
			documents := documentsOf(cmd.Context())
			if documents == nil {
				return errors.New("this program was built without the documents")
			}
			site, err := manual.Build(documents)
			if err == nil {
				err = site.Write(out)
			}
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), filepath.Join(out, "index.html"))
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "`DIR` to write into, made where it is missing")
	return cmd
}
