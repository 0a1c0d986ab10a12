package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
)

// fileInfo is the object that `info --json` prints.
type fileInfo struct {
	File     string         `json:"file"`
	Version  int            `json:"gguf_version"`        // 0: it is no GGUF file
	Parts    int            `json:"parts"`               // files that the model lies in
	FileType string         `json:"file_type,omitempty"` // what general.file_type stands for
	Weights  int64          `json:"weights"`
	Bytes    int64          `json:"tensor_bytes"`
	Experts  int64          `json:"expert_bytes,omitempty"` // the part of mixtures' experts, which may stay in the file
	Metadata map[string]any `json:"metadata"`
	Tensors  []tensorInfo   `json:"tensors"`
	// Sampling has the author's settings of sampling, as far as they are understood.
	Sampling sampling.Config `json:"sampling"`
	unsaid   []string        // of what the author says, and why it counts for nothing
}

type tensorInfo struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Dims  []int  `json:"dims"` // fastest first, as GGUF stores them
	Bytes int    `json:"bytes"`
}

func newInfo() *cobra.Command {
	var asJSON, tensors bool
	var fit fitFlags
	cmd := &cobra.Command{
		Use:   "info FILE",
		Short: "Show what a model's file holds",
		Long: `Shows the metadata and the storage types of a GGUF file, of an embedded model, or of a
model of the hub that has been downloaded. Of a directory of safetensors it shows what a
GGUF file of it would hold.

With --fit, what serving it takes of this machine's memory, or of the container's:
weights, keys and values of a number of streams, recurrent states and buffers; and the
largest context and most streams that would fit. It reads a few rows of each matrix, and
loads nothing.`,
		Example: `  lutra info model.gguf
  lutra info --tensors lutra-tiny-s        # an embedded model
  lutra info bonsai-1.7b                   # a downloaded one
  lutra info --json model.gguf | jq .metadata
  lutra info lutra-tiny-l --fit --context 512 --streams 8`,
		Args: Arguments("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := stored(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if fit.fit {
				return fit.run(cmd.OutOrStdout(), args[0], m, asJSON)
			}
			f, err := m.Open()
			if err != nil {
				return err
			}
			defer f.Close()
			info := describe(args[0], f)
			info.Sampling, info.unsaid = m.Published.Or(info.Sampling), append(info.unsaid, m.Warnings...)
			if asJSON {
				return output.JSON(cmd.OutOrStdout(), info)
			}
			return info.print(cmd.OutOrStdout(), tensors)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	fit.register(cmd.Flags())
	cmd.Flags().BoolVar(&tensors, "tensors", false, "list every tensor")
	return cmd
}

// stored finds a model that is on this machine: a look at a file is no reason to download it.
func stored(ctx context.Context, name string) (config.Model, error) {
	m := config.ModelNamed(name)
	err := m.Get(ctx, func(_ context.Context, ref hub.Ref) (string, error) {
		h, err := (&getter{}).open()
		if err != nil {
			return "", err
		}
		path, err := h.Find(ref)
		if errors.Is(err, hub.ErrAbsent) {
			err = fmt.Errorf("%w; lutra pull %s gets it", err, name)
		}
		return path, err
	})
	return m, err
}

// OpenStored opens such a model.
func OpenStored(ctx context.Context, name string) (*gguf.File, error) {
	m, err := stored(ctx, name)
	if err != nil {
		return nil, err
	}
	return m.Open()
}

func describe(name string, f *gguf.File) fileInfo {
	info := fileInfo{File: name, Version: f.Version, Parts: f.Parts(), FileType: f.FileType(), Metadata: map[string]any{}}
	for key, v := range f.Metadata {
		info.Metadata[key] = shorten(v)
	}
	info.Sampling, info.unsaid = sampling.FromFile(f.Metadata)
	for i := range f.Tensors {
		t := &f.Tensors[i]
		info.Weights += int64(t.Len())
		info.Bytes += int64(t.Bytes())
		if models.HoldsExperts(t.Name) {
			info.Experts += int64(t.Bytes())
		}
		info.Tensors = append(info.Tensors, tensorInfo{t.Name, t.Type.String(), t.Dims, t.Bytes()})
	}
	return info
}

// shorten keeps vocabularies from flooding the screen: long arrays become
// their size and first elements.
func shorten(v any) any {
	const shown = 4
	if r := reflect.ValueOf(v); r.Kind() == reflect.Slice && r.Len() > 16 {
		return fmt.Sprintf("%d elements: %v ...", r.Len(), r.Slice(0, shown).Interface())
	}
	return v
}

func (f fileInfo) print(w io.Writer, tensors bool) error {
	version := fmt.Sprintf("GGUF v%d", f.Version)
	if f.Version == 0 {
		version = "safetensors"
	} else if f.Parts > 1 {
		version += fmt.Sprintf(" in %d parts", f.Parts)
	}
	fmt.Fprintf(w, "%s: %s, %d tensors, %.2f M weights, %s\n\n", f.File, version, len(f.Tensors), float64(f.Weights)/1e6, output.Bytes(f.Bytes))
	rows := [][]string{{"key", "value"}}
	for _, key := range slices.Sorted(maps.Keys(f.Metadata)) {
		value := output.Printable(f.Metadata[key])
		if key == "general.file_type" && f.FileType != "" {
			value += " (" + f.FileType + ")"
		}
		rows = append(rows, []string{key, value})
	}
	if err := output.Table(w, rows); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if !f.Sampling.Empty() {
		fmt.Fprintf(w, "answers are sampled with %v where nobody says otherwise\n\n", f.Sampling)
	}
	for _, why := range f.unsaid {
		fmt.Fprintf(w, "%s\n\n", output.Printable(why))
	}
	if f.Experts > 0 {
		fmt.Fprintf(w, "%s are experts: what experts.memory does not hold is read when it is wanted\n\n", output.Bytes(f.Experts))
	}
	if !tensors {
		return output.Table(w, f.byType())
	}
	rows = [][]string{{"tensor", "type", "shape", "size"}}
	for _, t := range f.Tensors {
		rows = append(rows, []string{t.Name, t.Type, fmt.Sprint(t.Dims), output.Bytes(int64(t.Bytes))})
	}
	return output.Table(w, rows)
}

// byType sums up the tensors of each storage type, largest first.
func (f fileInfo) byType() [][]string {
	count, bytes := map[string]int{}, map[string]int{}
	for _, t := range f.Tensors {
		count[t.Type]++
		bytes[t.Type] += t.Bytes
	}
	rows := [][]string{{"storage", "tensors", "size"}}
	for _, name := range slices.SortedFunc(maps.Keys(bytes), func(a, b string) int { return bytes[b] - bytes[a] }) {
		rows = append(rows, []string{name, fmt.Sprint(count[name]), output.Bytes(int64(bytes[name]))})
	}
	return rows
}
