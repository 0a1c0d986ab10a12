//go:build purego || !(amd64 || arm64)

package acts

func quantizeRow(q []int8, x []float32) (scale float32, negSum int32) {
	return QuantizeRow(q, x)
}

func arrangeOctets(dst, q []int8, stride, g int) { arrangeOctetsGeneric(dst, q, stride, g) }

func arrangeQuads(dst, q []int8, stride, g, width int) { arrangeQuadsGeneric(dst, q, stride, g, width) }

func arrangeLanes(dst, q []int8, stride, lanes, n int) { arrangeLanesGeneric(dst, q, stride, lanes, n) }

func arrangeGroup(dst, recs []byte, stride, tokens int) {
	arrangeGroupGeneric(dst, recs, stride, tokens)
}

// quantizeGroupsFast does no group: the portable code does them all.
func quantizeGroupsFast([]byte, []float32, Limit) int { return 0 }
