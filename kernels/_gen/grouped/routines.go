package grouped

import (
	"strings"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// families has the families of tiles in kernels/grouped by the part of routines' names that says them.
var families = map[string]string{"AVX2": "avx2", "SmallAVX2": "avx2Small", emit.VexSuffix: "avxvnni", "AVX512": "avx512", "GFNIAVX512": "gfni"}

// variants are tables of the same routines. Routines of codes that name levels get the levels as a last
// parameter, routines of units of 2 or 4 groups their number.
type variants struct{ plain, level, unit *emit.Routines }

// newVariants makes tables of routines by family and packing. level and unit are "" where there are none such.
func newVariants(name, typ, doc, level, unit string, leaf emit.Leaf, by ...string) variants {
	table := func(prefix, typ, more string) *emit.Routines {
		n := name
		if prefix != "" {
			n = prefix + strings.ToUpper(name[:1]) + name[1:]
		}
		return &emit.Routines{Name: n, Doc: doc + more, Type: typ, By: by, Leaf: leaf}
	}
	v := variants{plain: table("", typ, "."), level: table("level", level, ", of codes that name levels.")}
	v.unit = table("unit", unit, ", of codes of two bits.")
	v.unit.By = by[:len(by)-1]
	return v
}

const byFamily, byPacking = "family", "matrix.Packing"

var (
	streamTables = newVariants("streams", "streamTile", "multiply one token", "levelStream", "unitStream", emit.One, byFamily, byPacking)
	tileTables   = newVariants("tiles", "tileFunc", "multiply one band", "levelTile", "unitTile", emit.Tiles, byFamily, byPacking)
	pairTables   = newVariants("pairs", "pairTile", "multiply two bands, or of gfni's one where registers hold no more", "levelPair", "unitPair", emit.Tiles, byFamily, byPacking)
	writerTables = newVariants("writers", "panelWriter", "unfold a panel for AVX2", "levelWriter", "unitWriter", emit.One, byPacking)
	panelTables  = newVariants("panels", "panelTile", "multiply a panel with AVX2", "", "unitPanel", emit.Tiles, byPacking)

	gfniWriters    = &emit.Routines{Name: "gfniWriters", Doc: "unpack a panel of two bands.", Type: "gfniWriter", By: []string{byPacking}}
	gfniPanelTiles = &emit.Routines{Name: "gfniPanels", Doc: "multiply such a panel, by what it holds.", Type: "gfniPanelTile", By: []string{"string"}, Leaf: emit.Tiles}

	halfStreams = &emit.Routines{Name: "halfStreams", Doc: "multiply one token, by halves of groups.", Type: "halfTile", By: []string{byFamily}}
	halfTiles   = &emit.Routines{Name: "halfTiles", Doc: "multiply one band, by halves of groups.", Type: "halfTile", By: []string{byFamily}, Leaf: emit.Tiles}
	halfPairs   = &emit.Routines{Name: "halfPairs", Doc: "multiply two bands, by halves of groups.", Type: "halfTile", By: []string{byFamily}, Leaf: emit.Tiles}
	halfWriters = &emit.Routines{Name: "halfWriters", Doc: "unfold a panel of halves of groups.", Type: "halfWriter", By: []string{byFamily}}
	halfPanels  = &emit.Routines{Name: "halfPanels", Doc: "multiply such a panel.", Type: "halfPanelTile", By: []string{byFamily}, Leaf: emit.Tiles}
	unfoldings  = &emit.Routines{Name: "unfoldings", Doc: "write the scales that tiles of halves read.", Type: "unfolding", By: []string{byPacking}}
)

// RoutineTables lists the tables.
var RoutineTables = []*emit.Routines{
	streamTables.plain, streamTables.level, streamTables.unit,
	tileTables.plain, tileTables.level, tileTables.unit,
	pairTables.plain, pairTables.level, pairTables.unit,
	writerTables.plain, writerTables.level, writerTables.unit,
	panelTables.plain, panelTables.unit,
	gfniWriters, gfniPanelTiles,
	halfStreams, halfTiles, halfPairs, halfWriters, halfPanels, unfoldings,
}

// in returns the variant of a table that has the routines of p.
func (p packing) in(v variants) *emit.Routines {
	switch {
	case p.unit == 0:
		return v.unit
	case p.raised > 0:
		return v.level
	}
	return v.plain
}

// keys returns where in such tables they are; without an ISA in tables of packings alone.
func (p packing) keys(isa string) (keys []string) {
	if isa != "" {
		keys = append(keys, families[isa])
	}
	if p.unit > 0 {
		keys = append(keys, "matrix."+p.name)
	}
	return keys
}
