package registry

import (
	"testing"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/tts"
)

func TestAFingerprintIsThatOfWhatGivesTheSameBits(t *testing.T) {
	workers := pool.New(1)
	defer workers.Close()
	print := func(file, name, packing string, kind kv.Type, md gguf.Metadata) string {
		t.Helper()
		f, err := embedded.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		b, err := models.LoadFile(f, models.LoadOptions{Pool: workers, Packing: packing, Metadata: md})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		cache, err := kv.New(b.Model.Config().KV(), kv.Options{Type: kind, BlockLen: 16, Blocks: 4})
		if err != nil {
			t.Fatal(err)
		}
		defer cache.Close()
		b.Name = name
		text, err := Fingerprint(tts.NewModel(b, batcher.New(b.Model, cache, batcher.DefaultOptions())))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const s, l = "lutra-tiny-s", "lutra-tiny-l"
	was := print(s, s, "", kv.F16, nil)
	for what, again := range map[string]string{"another name": print(s, "alias", "", kv.F16, nil), "the packing with the same bits": print(s, s, "i1", kv.F16, nil), "the same": print(s, s, "", kv.F16, nil)} {
		if again != was {
			t.Errorf("with %s it is %s, want %s", what, again, was)
		}
	}
	for what, other := range map[string]string{
		"another file": print(l, s, "", kv.F16, nil), "keys and values in 8 bits": print(s, s, "", kv.Int8, nil), "the stored packing": print(s, s, "stored", kv.F16, nil), "other metadata": print(s, s, "", kv.F16, gguf.Metadata{"lutra.chat.max_turns": int64(3)}),
	} {
		if other == was {
			t.Errorf("with %s it is %s too", what, other)
		}
	}
	family := cpu.Family()
	for _, isa := range cpu.Supported() {
		restore := cpu.Override(isa)
		if got := print(s, s, "", kv.F16, nil); (got == was) != (cpu.Family() == family) {
			t.Errorf("with the kernels of %v, of %s, it is %s, and with those of %s %s", isa, cpu.Family(), got, family, was)
		}
		restore()
	}
}
