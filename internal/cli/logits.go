package cli

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models"
)

func newLogits() *cobra.Command {
	var r referenceFlags
	var tokensFile, outFile string
	cmd := &cobra.Command{
		Use:   "logits",
		Short: "Write the logits after each token, to compare with other engines",
		Long: `Runs token ids through the model and writes float32 little-endian [tokens][vocabulary]
to a file; as a NumPy array when its name ends in .npy.`,
		Example: `  lutra logits --model model.gguf --tokens ids.txt --out logits.npy
  lutra logits --model model.gguf --context 512 --tokens ids.txt --out logits.npy
  echo "1 15043 3186" | lutra logits --model model.gguf --tokens - --out logits.f32`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tokensFile == "" || outFile == "" {
				return usage.Errorf("--tokens and --out are needed")
			}
			text, err := readText(tokensFile, cmd.InOrStdin())
			if err != nil {
				return err
			}
			return r.withScorer(func(b *models.Bundle, score scorer) error {
				cfg := b.Model.Config()
				tokens, err := parseTokens(text, cfg.Vocab)
				if err != nil {
					return err
				}
				if err := writeLogits(outFile, tokens, cfg.Outputs, score); err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: float32 [%d][%d]\n", outFile, len(tokens), cfg.Outputs)
				return err
			})
		},
	}
	r.register(cmd.Flags(), 0)
	cmd.Flags().StringVar(&tokensFile, "tokens", "", "`FILE` of token ids, - for standard input")
	cmd.Flags().StringVar(&outFile, "out", "", "`FILE` to write")
	return cmd
}

func writeLogits(path string, tokens []int32, width int, score scorer) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if strings.HasSuffix(path, ".npy") {
		if err := writeNPYHeader(w, len(tokens), width); err != nil {
			return err
		}
	}
	if err := score(tokens, func(_ int, logits []float32) error {
		return binary.Write(w, binary.LittleEndian, logits)
	}); err != nil {
		return err
	}
	return w.Flush()
}

// writeNPYHeader begins a NumPy 1.0 file of float32 [rows][cols]; the header
// is padded so that the data starts on a multiple of 64 bytes.
func writeNPYHeader(w io.Writer, rows, cols int) error {
	dict := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, cols)
	const fixed = 10
	dict += strings.Repeat(" ", 63-(fixed+len(dict))%64) + "\n"
	_, err := w.Write(append([]byte{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, byte(len(dict)), byte(len(dict) >> 8)}, dict...))
	return err
}

// readText reads a whole file, or standard input for "-".
func readText(path string, stdin io.Reader) (string, error) {
	var data []byte
	var err error
	if path == "-" {
		data, err = io.ReadAll(stdin)
	} else {
		data, err = os.ReadFile(path)
	}
	return string(data), err
}
