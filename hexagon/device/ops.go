package device

import "fmt"

// opNames are the operations' names, for people.
var opNames = map[Op]string{
	OpPing:         "ping",
	OpCopy:         "copy",
	OpPrecompute:   "lookup tables",
	OpGEMV:         "products by lookups",
	OpDequant:      "tiles of codes",
	OpVLUT16:       "tiles of super-groups",
	OpTileMul:      "the tile unit in fp16",
	OpExpTable:     "the table of powers of two",
	OpSoftmax:      "softmax",
	OpCollect:      "collection of keys",
	OpRMSNorm:      "RMS norm",
	OpQuantize:     "quantization",
	OpScale:        "scaling of sums",
	OpAdd:          "addition of rows",
	OpRope:         "rotary embeddings",
	OpGLU:          "gated units",
	OpToTiles:      "rows to tiles of attention",
	OpFromTiles:    "tiles of attention to rows",
	OpFold:         "folding of softmax sums",
	OpSoftCap:      "soft caps",
	OpLayerNorm:    "layer norm",
	OpRowsToTiles:  "rows to tiles of products",
	OpTilesToRows:  "tiles of products to rows",
	OpMul:          "multiplication of rows",
	OpConv:         "short convolution",
	OpByteTiles:    "tiles of bytes",
	OpTileMulBytes: "the tile unit in int8",
	OpGates:        "gates of a delta net",
	OpDelta:        "the delta rule",
}

// String returns the operation's name.
func (op Op) String() string {
	if name, ok := opNames[op]; ok {
		return name
	}
	return fmt.Sprintf("operation %d", uint32(op))
}

// Ops lists all operations.
func Ops() []Op {
	list := make([]Op, 0, int(numOps)-1)
	for op := OpPing; op < numOps; op++ {
		list = append(list, op)
	}
	return list
}
