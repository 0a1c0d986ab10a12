package timeline

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestPacketsBeginWhenTheirUnitIsFreeAndWhatTheyWaitForIsThere(t *testing.T) {
	rates := Rates{Packet: 1, Barrier: 1, Byte: 1, Product: 1, ByteProduct: 0.5, Read: 2}
	bring := Work{Op: "copy", Unit: DMA, Moved: 10}
	unpack := Work{Op: "codes", Packets: 6}
	product := Work{Op: "tiles", Unit: Tiles, Products: 8}
	lookups := Work{Op: "lookups", Packets: 20, Moved: 40, Tiles: 4}
	after := func(w Work, dma, tiles int) Work { w.Wait = [2]int{dma, tiles}; return w }
	ahead := lookups
	ahead.Ahead = true
	for _, c := range []struct {
		what string
		list []Work
		want float64
	}{
		{"nothing waits", []Work{bring, unpack, product}, 14},
		{"each waits", []Work{bring, after(unpack, 1, 0), product}, 24},
		{"two copies, one after the other", []Work{bring, bring}, 20},
		{"a copy beside a product", []Work{product, bring, after(unpack, 0, 2)}, 14},
		{"products by lookups, bound by DMA", []Work{lookups}, 45},
		{"whose first tiles came before", []Work{unpack, ahead}, 45},
		{"barriers", []Work{{Packets: 3, Barriers: 2}}, 5},
		{"products in bytes", []Work{{Unit: Tiles, Products: 8, Reads: 1}}, 6},
	} {
		if got := Run(c.list, rates).Total; math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	list := []Work{bring, after(unpack, 1, 0), after(unpack, 2, 0)}
	if got := Without(list, func(i int) bool { return i == 1 }); len(got) != 2 || got[1].Wait != [2]int{1, 0} {
		t.Errorf("without the second: %v", got)
	}
	if got := Without(list, func(i int) bool { return i == 0 }); len(got) != 2 || got[0].Wait != [2]int{} {
		t.Errorf("without the first: %v", got)
	}
	if turn := Run(InTurn([]Work{bring, unpack, product}), rates).Total; turn != 24 {
		t.Errorf("in turn: %v", turn)
	}
}

func TestPacketsAreReadAsTheyAreWritten(t *testing.T) {
	a, b := Work{Op: "a b", Packets: 3}, Work{Op: "c", Unit: DMA, Moved: 1 << 20, Wait: [2]int{2, 1}, Ahead: true, Tiles: 3}
	list := slices.Repeat([]Work{a, b, b}, 40)
	list = append(append([]Work{b}, list...), a)
	var text strings.Builder
	if err := Write(&text, list); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	got, err := Read(lines)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		list[i].Op = strings.ReplaceAll(list[i].Op, " ", "_")
	}
	if !slices.Equal(got, list) || len(lines) > 10 {
		t.Errorf("%d packets in %d lines are read as %d", len(list), len(lines), len(got))
	}
	for _, bad := range []string{"x", "repeat 0 3", "repeat 4 99999999"} {
		if _, err := Read([]string{bad}); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
