// Command gen writes one family of assembly kernels and their Go stubs.
// `go generate` in the kernels package runs it once a family.
package main

import (
	"flag"
	"log"
	"maps"
	"slices"

	. "github.com/mmcloughlin/avo/build"
)

// families maps a family's name to what emits its kernels.
var families = map[string]func(){
	"ternary_acts":   ternaryActs,
	"ternary_lut":    ternaryLUT,
	"ternary_mad":    ternaryMAD,
	"ternary_dot":    ternaryDot,
	"ternary_vnni":   ternaryVNNI,
	"ternary_hybrid": ternaryHybrid,
	"peak":           peak,
	"pause":          pauses,
	"dense":          dense,
	"grouped":        grouped,
	"grouped_dot":    groupedDot,
	"vector":         vector,
	"attend":         attend,
}

func main() {
	family := flag.String("family", "", "kernels to write")
	flag.Parse()
	emit, ok := families[*family]
	if !ok {
		log.Fatalf("gen: no family %q (have %v)", *family, slices.Sorted(maps.Keys(families)))
	}
	useVEX()
	splitLarge()
	ConstraintExpr("amd64,!purego")
	emit()
	Generate()
}
