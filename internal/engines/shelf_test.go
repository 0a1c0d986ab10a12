package engines

import (
	"errors"
	"testing"

	"github.com/lutra-lm/lutra/internal/config"
)

func TestModelsOfOneFileAreInMemoryOnce(t *testing.T) {
	path := randomModel(t)
	cfg := config.Default()
	cfg.Models, cfg.Verifiers = []config.Model{{Path: path, Name: "a"}, {Path: path, Name: "b", Draft: path}}, nil
	cfg.KV.Memory, cfg.Engine.Speculation = "2MiB", "2"
	r := run(t, cfg)
	a, b := r.Hosts[0], r.Hosts[1]
	weights := a.Bundle.Model.Config().Bytes
	caches := a.caching() + b.caching() + a.buffers + b.buffers
	if got := r.Taken(); got != caches+weights || r.Bytes(b) != b.caching()+b.buffers {
		t.Errorf("%d bytes, want weights of %d once and %d", got, weights, caches)
	}
	if a.Model.Name != "a" || b.Model.Name != "b" || b.Bundle.Name != "b" {
		t.Errorf("names %s and %s", a.Model.Name, b.Model.Name)
	}
	errs := make(chan error)
	for _, h := range []*Host{a, b, a, b} {
		go func() {
			var err error
			for range 20 {
				err = errors.Join(err, r.answer(h))
			}
			errs <- err
		}()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	r.Remove(a)
	if err := r.answer(b); err != nil || r.Taken() != weights+b.caching()+b.buffers {
		t.Errorf("without the other: %v, %d bytes", err, r.Taken())
	}
	again, err := r.Add(t.Context(), config.Model{Path: path, Name: "c"}, func(int64, int64) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.answer(again); err != nil {
		t.Errorf("one that has come later: %v", err)
	}
	other, err := r.Add(t.Context(), config.Model{Path: path, Name: "d", Context: 100}, func(int64, int64) {})
	if err != nil {
		t.Fatal(err)
	}
	if r.shelf.users(other.Bundle) != 4 || other.Model.Context != 100 || again.Model.Context == 100 || r.Bytes(other) != other.caching()+other.buffers {
		t.Errorf("%d users, contexts of %d and %d, %d bytes: another context is the same weights", r.shelf.users(other.Bundle), other.Model.Context, again.Model.Context, r.Bytes(other))
	}
	if err := r.answer(other); err != nil {
		t.Errorf("one of another context: %v", err)
	}
	packed, err := r.Add(t.Context(), config.Model{Path: path, Name: "e", Packing: "stored"}, func(int64, int64) {})
	if err != nil {
		t.Fatal(err)
	}
	if r.shelf.users(packed.Bundle) != 1 {
		t.Errorf("%d users: another packing is other weights", r.shelf.users(packed.Bundle))
	}
	r.Remove(packed)
	for _, h := range []*Host{b, again, other} {
		r.Remove(h)
	}
	if n := r.Taken(); n != 0 || len(r.All()) != 0 {
		t.Errorf("%d bytes are left of no models", n)
	}
}

func TestModelsThatDoNotFitAreLeftForLater(t *testing.T) {
	cfg := config.Default()
	cfg.Models = []config.Model{{Embedded: "lutra-tiny-l"}, {Embedded: "lutra-tiny-s"}, {Embedded: "lutra-tiny-moe", Pin: true}, {Path: "absent.gguf"}}
	cfg.KV.Memory = "1MiB"
	for limit, want := range map[string]int{"auto": 4, "1MiB": 3, "64MiB": 4} {
		cfg.Loading.Memory = limit
		list, err := Fitting(&cfg)
		if err != nil || len(list) != want || list[0].Embedded != "lutra-tiny-l" {
			t.Errorf("%s: %d models %v, want %d", limit, len(list), err, want)
		}
	}
}
