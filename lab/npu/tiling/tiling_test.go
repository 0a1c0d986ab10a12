package tiling

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

var phone = Limits{Registers: 32, Threads: 4, Buffers: 2, Memory: 6 << 20, RowBytes: 256}

// legal is Equations 1 to 4 as the paper writes them, and the layout's rules.
func legal(t Tiling, m Matrix, l Limits) bool {
	eq1 := t.KLut/TableCols < l.Registers && t.KLut/TableCols+LookupRegs <= l.Registers
	eq2 := t.MIterP*MMA == t.MIterD*Lookups && m.M%(t.MIterD*Lookups) == 0
	eq3 := t.KIterP*MMA == t.KIterD*t.KLut && m.K%(t.KIterD*t.KLut) == 0
	eq4 := l.Buffers*l.Threads*(t.Packed(m)+t.Unpacked())+l.Threads*t.Rows()*l.RowBytes <= l.Memory
	layout := TableTile%t.KLut == 0 && t.Cols()%BlockCols == 0
	longest := 0 // strips of a thread, when each takes the next row of tiles in turn
	for row := 0; row < m.M; row += t.Rows() * l.Threads {
		longest += t.MIterD
	}
	even := (m.M/Lookups + l.Threads - 1) / l.Threads
	return eq1 && eq2 && eq3 && eq4 && layout && float64(longest) <= 1.0625*float64(even)
}

func TestTheSearchFindsExactlyTheLegalTilings(t *testing.T) {
	for _, m := range []Matrix{
		{M: 4096, K: 4096, Bits: 4, Group: 64}, {M: 2560, K: 6912, Bits: 2, Group: 6912}, {M: 6912, K: 2560, Bits: 2, Group: 2560}, {M: 256, K: 256, Bits: 2, Group: 256}, {M: 128, K: 512, Bits: 1, Group: 128},
	} {
		r, err := Search(m, phone)
		if err != nil {
			t.Fatal(err)
		}
		var want []Tiling
		tried := 0
		for regs := 1; regs <= phone.Registers; regs++ {
			for k := 1; k*regs*TableCols <= m.K; k++ {
				for strips := 1; strips <= m.M/Lookups; strips++ {
					tried++
					c := Tiling{KLut: regs * TableCols, MIterD: strips, KIterD: k, MIterP: strips * Lookups / MMA, KIterP: k * regs * TableCols / MMA}
					if legal(c, m, phone) {
						want = append(want, c)
					}
				}
			}
		}
		refused := 0
		for _, f := range r.Refused {
			refused += f.Count
		}
		if len(want) != len(r.Legal) || refused+len(r.Legal) != tried {
			t.Errorf("%+v: %d legal and %d refused of %d, want %d legal", m, len(r.Legal), refused, tried, len(want))
		}
		for _, c := range want {
			if !slices.Contains(r.Legal, c) {
				t.Errorf("%+v: %+v is missing", m, c)
			}
		}
	}
}

func TestTheChoiceIsBestByTheHeuristicsInTheirOrder(t *testing.T) {
	r, err := Search(Matrix{M: 4096, K: 4096, Bits: 4, Group: 64}, phone)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Legal {
		switch {
		case c.KLut > r.Choice.KLut,
			c.KLut == r.Choice.KLut && c.MIterD > r.Choice.MIterD,
			c.KLut == r.Choice.KLut && c.MIterD == r.Choice.MIterD && c.KIterP > r.Choice.KIterP:
			t.Errorf("%+v is better than the choice %+v", c, r.Choice)
		}
	}
	if r.Choice.KLut != 256 {
		t.Errorf("K_lut is %d, want the 256 of the paper: 16 registers", r.Choice.KLut)
	}
	why := strings.Join(r.Why, "\n")
	for _, want := range []string{"16 of 32 registers", "bytes of TCM", "tiles of"} {
		if !strings.Contains(why, want) {
			t.Errorf("the explanation lacks %q:\n%s", want, why)
		}
	}
}

func TestAMatrixThatCannotBeCutIsRefused(t *testing.T) {
	for _, m := range []Matrix{{M: 100, K: 256, Bits: 2, Group: 256}, {M: 128, K: 100, Bits: 2, Group: 100}, {}, {M: 128, K: 256, Bits: 17, Group: 256}, {M: 128, K: 256, Bits: 2}, {M: 1 << 30, K: 256, Bits: 2, Group: 256}} {
		if _, err := Search(m, phone); !errors.Is(err, ErrMatrix) {
			t.Errorf("%+v gives %v", m, err)
		}
	}
	if _, err := Search(Matrix{M: 128, K: 256, Bits: 4, Group: 64}, Limits{Registers: 32, Threads: 4, Buffers: 2, Memory: 1 << 10}); !errors.Is(err, ErrMatrix) {
		t.Errorf("a kibibyte of TCM gives %v", err)
	}
}
