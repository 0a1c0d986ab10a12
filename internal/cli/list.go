package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/internal/output"
)

// storedModel is a model of the cache in `list --json`.
type storedModel struct {
	Name     string    `json:"name"` // of the catalogue, else as File
	File     string    `json:"file"` // hf:OWNER/REPO:FILE, or ollama:NAME:TAG
	Path     string    `json:"path"`
	Bytes    int64     `json:"bytes"`
	Missing  int64     `json:"missing_bytes"` // of a download that stopped
	Parts    int       `json:"parts"`         // files that the model lies in
	Lacking  int       `json:"missing_parts"` // of several
	Modified time.Time `json:"modified"`
}

// knownModel is a model in `list --catalogue --json`.
type knownModel struct {
	Name    string `json:"name"`
	File    string `json:"file"`
	Storage string `json:"storage"`
	Bytes   int64  `json:"bytes"`
	Memory  int64  `json:"memory_bytes"`
	Licence string `json:"licence"`
	Good    string `json:"good_for"`
	Format  string `json:"verifier_format,omitempty"`
}

func newList() *cobra.Command {
	var catalogue, asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List downloaded models, or the catalogue",
		Long: `Lists the GGUF models and directories of safetensors in the Hugging Face hub's cache,
whichever program downloaded them. With --catalogue, the models that have plain names: with the size of the file, an
estimate of the memory that serving takes (with a context of 4096 tokens), the storage
type of the weights and the licence.`,
		Example: `  lutra list
  lutra list --catalogue`,
		Args: Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if catalogue {
				return listCatalogue(cmd.OutOrStdout(), asJSON)
			}
			h, err := (&getter{}).open()
			if err != nil {
				return err
			}
			return listStored(cmd.OutOrStdout(), h, asJSON)
		},
	}
	cmd.Flags().BoolVar(&catalogue, "catalogue", false, "list the models that have plain names")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func listStored(w io.Writer, h *hub.Hub, asJSON bool) error {
	stored, err := h.List()
	if err != nil {
		return err
	}
	list := []storedModel{}
	rows := [][]string{{"name", "size", "downloaded"}}
	for _, s := range stored {
		m := storedModel{Name: shortName(s.Ref), File: s.Ref.String(), Path: s.Path, Bytes: s.Size, Missing: s.Missing, Parts: s.Parts, Lacking: s.Lacking, Modified: s.Modified}
		list = append(list, m)
		when := s.Modified.Format(time.DateOnly)
		switch {
		case s.Lacking > 0:
			when = fmt.Sprintf("%d of %d parts, lutra pull goes on", s.Parts-s.Lacking, s.Parts)
		case s.Missing > 0:
			when = fmt.Sprintf("%d%%, lutra pull goes on", 100*(s.Size-s.Missing)/s.Size)
		}
		rows = append(rows, []string{m.Name, output.Bytes(s.Size), when})
	}
	switch {
	case asJSON:
		return output.JSON(w, list)
	case len(list) == 0:
		_, err := fmt.Fprintf(w, "There is no GGUF model in %s. lutra list --catalogue names some, lutra pull NAME gets one.\n", h.Cache())
		return err
	}
	return output.Table(w, rows)
}

func listCatalogue(w io.Writer, asJSON bool) error {
	list := []knownModel{}
	rows := [][]string{{"name", "size", "memory", "storage", "licence", "good for"}}
	for _, e := range hub.Catalogue() {
		list = append(list, knownModel{e.Name, e.Ref.String(), e.Storage, e.Size, e.Memory, e.Licence, e.Good, e.Format})
		rows = append(rows, []string{e.Name, output.Bytes(e.Size), fmt.Sprintf("%.1f GiB", float64(e.Memory)/(1<<30)), e.Storage, e.Licence, e.Good})
	}
	if asJSON {
		return output.JSON(w, list)
	}
	return output.Table(w, rows)
}
