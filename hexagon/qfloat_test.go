package hexagon

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/device/qemu"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// V73's and V75's arithmetic changes no token of an embedded model; 30 tokens of both models on both paths were compared once.
// (V79's and V81's is the emulator's own.)
func TestEmbeddedModelsAnswerAlikeInQfloat(t *testing.T) {
	sweep.Full(t)
	for _, tool := range []string{"make", "clang-19", "ld.lld-19", "qemu-hexagon"} {
		if _, err := exec.LookPath(tool); err != nil {
			if strings.Contains(os.Getenv("LUTRA_REQUIRE"), "hexagon") {
				t.Fatal(err)
			}
			t.Skip("the device's program cannot be built here:", err)
		}
	}
	if out, err := exec.Command("make", "-s", "-C", "dsp", "qfloat").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := os.ReadFile("dsp/build/lutra-emulator-v75.elf")
	if err != nil {
		t.Fatal(err)
	}
	p := newPool(t)
	for name, path := range map[string]Path{"lutra-tiny-s": PathTiles, "lutra-tiny-l": PathLookup} {
		t.Run(name, func(t *testing.T) {
			var answers [2][]int32
			var rows [2][]float32
			for i, program := range [][]byte{nil, program} {
				b := New("hexagon-qemu", func(bytes int) (device.Device, error) {
					return qemu.Open(qemu.Options{Memory: bytes, Program: program})
				}, Options{Path: path, Pool: p})
				f, err := embeddedFile(name)()
				if err != nil {
					t.Fatal(err)
				}
				bundle, err := models.LoadFile(f, models.LoadOptions{Pool: p, Backend: b})
				if err != nil {
					t.Fatal(err)
				}
				if err := b.Start(); err != nil {
					t.Fatal(err)
				}
				feed := newFeeder(t, bundle.Model)
				row := feed.feed(1, bundle.Tokenizer.Encode(nil, question, tokenizer.Options{ParseSpecial: true})...)
				for range 10 {
					rows[i] = append(rows[i], row...)
					token := int32(vector.Argmax(row))
					answers[i] = append(answers[i], token)
					row = feed.feed(1, token)
				}
				if err := bundle.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if fmt.Sprint(answers[0]) != fmt.Sprint(answers[1]) {
				t.Errorf("answers %v, not %v", answers[1], answers[0])
			}
			e := nmse(rows[1], rows[0])
			t.Logf("NMSE of logits %.3g", e)
			if !(e > 0 && e < deviceNoise) {
				t.Errorf("the NMSE of logits is %.3g", e)
			}
		})
	}
}
