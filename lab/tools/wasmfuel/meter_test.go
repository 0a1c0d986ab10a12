package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// endless is a module that imports h.more, and exports f, which loops for ever.
var endless = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x08\x02\x60\x00\x01\x7f\x60\x00\x00" + // types: () → i32, () → ()
	"\x02\x0a\x01\x01h\x04more\x00\x00" +
	"\x03\x02\x01\x01" +
	"\x06\x06\x01\x7f\x00\x41\x00\x0b" + // a global of its own
	"\x07\x05\x01\x01f\x00\x01" +
	"\x0a\x09\x01\x07\x00\x03\x40\x0c\x00\x0b\x0b")

func TestAMeteredModuleAsksForMoreAndEndsWithout(t *testing.T) {
	metered, err := meter(endless, "more")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	asked, enough := 0, errors.New("enough")
	if _, err := r.NewHostModuleBuilder("h").NewFunctionBuilder().WithFunc(func() int32 {
		if asked++; asked == 5 {
			panic(enough)
		}
		return 0
	}).Export("more").Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := r.Instantiate(ctx, metered)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.ExportedFunction("f").Call(ctx); !errors.Is(err, enough) || asked != 5 {
		t.Errorf("it ended with %v after asking %d times", err, asked)
	}
}

func TestWhatIsNoModuleIsRefused(t *testing.T) {
	for _, c := range []struct{ module, call, want string }{
		{"ELF", "more", "no WebAssembly"},
		{string(endless), "less", `no function "less"`},
		{string(endless[:len(endless)-3]), "more", "damaged"},
		{strings.Replace(string(endless), "\x0c\x00", "\xfd\x00", 1), "more", "unknown here"},
	} {
		if _, err := meter([]byte(c.module), c.call); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.module, err, c.want)
		}
	}
}
