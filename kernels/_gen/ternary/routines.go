package ternary

import (
	"fmt"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// The tables of routines, by trits a byte.
var (
	madStreams = &emit.Routines{Name: "madStreams", Doc: "multiply one token, of I2 and I1.", Type: "madStream", By: []string{"cpu.ISA", "[2]"}}
	madTiles   = &emit.Routines{Name: "madTiles", Doc: "multiply several tokens, of I2 and I1.", Type: "madFunc", By: []string{"cpu.ISA", "[2]"}, Leaf: emit.Slice}
	vnniTiles  = &emit.Routines{Name: "vnniTiles", Doc: "multiply 64 rows, of I2 and I1.", Type: "vnniFunc", By: []string{"[2]"}, Leaf: emit.Slice}
	gfniTalls  = &emit.Routines{Name: "gfniTalls", Doc: "multiply 64 rows, of I2 and I1.", Type: "vnniFunc", By: []string{"[2]"}, Leaf: emit.Slice}
	gfniTiles  = &emit.Routines{Name: "gfniTiles", Doc: "multiply 32 rows, of I2 and I1, and may keep what they unpack.", Type: "gfniFunc", By: []string{"[2]"}, Leaf: emit.Slice}
	amxTiles   = &emit.Routines{Name: "amxTiles", Doc: "multiply one and two tiles of tokens, of I2 and I1.", Type: "amxFunc", By: []string{"[2]"}, Leaf: emit.Slice}
	gfniPanels = &emit.Routines{Name: "gfniPanels", Doc: "multiply a panel.", Type: "vnniFunc", Leaf: emit.Slice}
)

// RoutineTables lists the tables.
var RoutineTables = []*emit.Routines{madStreams, madTiles, vnniTiles, gfniTalls, gfniTiles, gfniPanels, amxTiles}

// byTrits returns the index of a packing of g trits a byte.
func byTrits(g int) string { return fmt.Sprint(g - 4) }
