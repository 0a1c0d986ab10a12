package soc

import (
	"math"
	"testing"
)

// bitnet is BitNet-2B, without its head.
func bitnet() Model {
	const layers, hidden, ffn, kv = 30, 2560, 6912, 640
	m := Model{Name: "bitnet", Layers: layers, Heads: 20, KVHeads: 5, HeadDim: 128}
	add := func(name string, rows, cols int, input string) {
		m.Matrices = append(m.Matrices, Matrix{Name: name, M: rows, K: cols, Bits: 2, Group: cols, Count: layers, Input: input})
	}
	add("q", hidden, hidden, "attn")
	add("k", kv, hidden, "attn")
	add("v", kv, hidden, "attn")
	add("o", hidden, hidden, "out")
	add("gate", ffn, hidden, "ffn")
	add("up", ffn, hidden, "ffn")
	add("down", hidden, ffn, "down")
	return m
}

func machine(t *testing.T, id string) *Machine {
	t.Helper()
	c, err := Named(id)
	if err != nil {
		t.Fatal(err)
	}
	return NewMachine(c)
}

func TestEveryConstantHasASourceAndAUnit(t *testing.T) {
	for _, c := range Chips() {
		for _, n := range c.Numbers() {
			switch n.Source {
			case TMan, Scaling, Others, Emulated, Fitted, Assumed:
			default:
				t.Errorf("%s, %s: no source", c.Name, n.Name)
			}
			if !(n.Value > 0) || n.Unit == "" || n.Note == "" {
				t.Errorf("%s, %s: %+v", c.Name, n.Name, n.Number)
			}
			if measured := n.Source == TMan || n.Source == Scaling; measured && c.ID != "8gen3" && n.Name != "TCM" && n.Name != "addresses" {
				t.Errorf("%s, %s: the papers measured 8 Gen 3 alone", c.Name, n.Name)
			}
		}
	}
}

// Nothing is fitted to these rates, and the head of T-MAN's, which would take 3 ms, is not in this model.
func TestModelledTimesAreNotFarFromWhatThePapersMeasure(t *testing.T) {
	m, x := machine(t, "8gen3"), bitnet()
	c, err := m.Decode(&x, 1, 1024)
	if err != nil {
		t.Fatal(err)
	}
	if got := 1 / c.Seconds; got < 49.1 || got > 1.8*49.1 {
		t.Errorf("decode is modelled as %.1f tokens/s; T-MAN measures 49.1", got)
	}
	if c, err = m.Prefill(&x, 1024); err != nil {
		t.Fatal(err)
	}
	measured := 5.01 / 0.0080 // with attention that has no kernel of its own
	if got := 1024 / c.Seconds; got < measured || got > 2.5*measured {
		t.Errorf("prefill is modelled as %.0f tokens/s; T-MAN measures %.0f", got, measured)
	}
}

func TestMoreWorkNeverTakesLess(t *testing.T) {
	m, x := machine(t, "8gen3"), bitnet()
	last := 0.0
	for batch := 1; batch <= 64; batch++ {
		c, err := m.Decode(&x, batch, 512)
		if err != nil {
			t.Fatal(err)
		}
		if c.Seconds < last-1e-12 {
			t.Errorf("a batch of %d takes %v s, one less %v", batch, c.Seconds, last)
		}
		last = c.Seconds
	}
	short, _ := m.Decode(&x, 4, 128)
	long, _ := m.Decode(&x, 4, 4096)
	if long.Seconds <= short.Seconds {
		t.Error("a longer context is free")
	}
}

func TestBatchesMoveFromLookupToTheTileUnit(t *testing.T) {
	m, x := machine(t, "8gen3"), bitnet()
	path := func(rows int) Path {
		_, p, err := m.Product(x.Matrices[4], rows)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if path(1) != ByLookup || path(16) != ByTiles {
		t.Errorf("one row by %s, sixteen by %s", path(1), path(16))
	}
	one, _ := m.Decode(&x, 1, 512)
	sixteen, _ := m.Decode(&x, 16, 512)
	if sixteen.Seconds > 8*one.Seconds {
		t.Errorf("sixteen rows take %.1f times one row's time", sixteen.Seconds/one.Seconds)
	}
}

func TestAPipelineIsAtLeastAsFastAsItsParts(t *testing.T) {
	m := machine(t, "8gen3")
	x := Matrix{Name: "w", M: 4096, K: 4096, Bits: 4, Group: 64, Offsets: true, Count: 1}
	over, err := m.Tiled(x, 128, true)
	if err != nil {
		t.Fatal(err)
	}
	apart, err := m.Tiled(x, 128, false)
	if err != nil {
		t.Fatal(err)
	}
	slowest := max(over.DMA, over.Vector, over.Tiles)
	if over.Seconds < slowest || apart.Seconds < over.Seconds || math.Abs(apart.Seconds-(over.DMA+over.Vector+over.Tiles)) > 1e-9 {
		t.Errorf("overlapped %v, apart %v, slowest part %v", over.Seconds, apart.Seconds, slowest)
	}
}

func TestTCMRegionsDoNotOverlapAndFit(t *testing.T) {
	m := machine(t, "8gen3")
	for _, x := range []Matrix{{M: 4096, K: 14336, Bits: 4, Group: 64}, {M: 256, K: 256, Bits: 2, Group: 256}, {M: 6912, K: 2560, Bits: 2, Group: 2560}, {M: 151936, K: 4096, Bits: 4, Group: 64}} {
		l, err := m.Plan(x, 128)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for _, r := range l.Regions {
			if r.Begin < at || r.Bytes < 1 {
				t.Errorf("%+v: region %+v begins before %d", x, r, at)
			}
			at = r.Begin + r.Bytes
		}
		if at > int(m.TCM.Value) || l.Free < 0 {
			t.Errorf("%+v takes %d bytes", x, at)
		}
	}
}

func TestSlowerRoutesTakeLonger(t *testing.T) {
	m, x := machine(t, "8gen3"), Matrix{M: 4096, K: 4096, Bits: 4, Group: 64}
	last := 0.0
	for _, r := range Routes() {
		m.Route = Route(r)
		if c := m.Lookup(x, 1); c.DMA <= last {
			t.Errorf("by %s: %v s, want more than %v", r, c.DMA, last)
		} else {
			last = c.DMA
		}
	}
}
