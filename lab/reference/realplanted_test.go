package reference

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
)

// planted are faults of an engine, as changes of a file that have the same effect on its rows: what pairs the
// wrong halves of a head for its rotation, and what forgets to divide scores by the root of a head's width.
var planted = map[string]func(name string, rows [][]byte) [][]byte{
	"rope pairs are swapped": func(name string, rows [][]byte) [][]byte {
		if !strings.HasSuffix(name, "attn_q.weight") && !strings.HasSuffix(name, "attn_k.weight") {
			return rows
		}
		const width = 64 // of a head
		turned := make([][]byte, len(rows))
		for i := range rows {
			head, r := i/width*width, i%width
			turned[i] = rows[head+r%2*width/2+r/2]
		}
		return turned
	},
	"scores are not scaled": func(name string, rows [][]byte) [][]byte {
		if !strings.HasSuffix(name, "attn_q.weight") {
			return rows
		}
		for _, row := range rows {
			for block := 0; block < len(row); block += 20 { // of Q4_1: two float16, eight times as large
				row[block+1] += 3 << 2
				if row[block+3]&0x7c != 0 {
					row[block+3] += 3 << 2
				}
			}
		}
		return rows
	},
}

func TestAPlantedFaultInAPublicModelIsNoticed(t *testing.T) {
	path := realModel(t, "smollm2.gguf")
	var want logitsOf
	recorded(t, "smollm2.logits.json.gz", &want)
	want.Texts = want.Texts[:1]
	for name, plant := range planted {
		t.Run(name, func(t *testing.T) {
			withReal(t, Options{Model: replanted(t, path, plant)}, func(_ *models.Bundle, score Scorer) {
				if got := want.compare(t, score); got.KL < 10*1.3*want.Peer.KL {
					t.Errorf("%+v: the fault is hardly seen", got)
				}
			})
		})
	}
}

// replanted writes the model in path with changed rows, and returns its path.
func replanted(t *testing.T, path string, plant func(name string, rows [][]byte) [][]byte) string {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var sources []gguf.Source
	for i := range f.Tensors {
		tensor := &f.Tensors[i]
		sources = append(sources, gguf.Source{Name: tensor.Name, Type: tensor.Type, Dims: tensor.Dims, Write: func(w io.Writer) error {
			loaded, err := tensor.Load(0, tensor.Rows(), nil)
			if err != nil {
				return err
			}
			each := tensor.Bytes() / tensor.Rows()
			rows := make([][]byte, tensor.Rows())
			for r := range rows {
				rows[r] = append([]byte(nil), loaded.Data[r*each:(r+1)*each]...)
			}
			for _, row := range plant(tensor.Name, rows) {
				if _, err := w.Write(row); err != nil {
					return err
				}
			}
			return nil
		}})
	}
	out := filepath.Join(t.TempDir(), "planted.gguf")
	w, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := gguf.WriteFrom(w, f.Metadata, sources); err != nil {
		t.Fatal(err)
	}
	return out
}
