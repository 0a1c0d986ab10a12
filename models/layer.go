package models

// decoderLayer is the weights of one layer, and what it computes.
type decoderLayer struct {
	norm    rowNorm
	mixer   mixer // nil: rows do not see those before them
	ffnNorm rowNorm
	ffn     rowFunction // nil: there is none
	end     *layerEnd   // nil: none
}

// rowFunction computes each row of a layer by itself: feedForward, mixture or denseWithExperts.
type rowFunction interface {
	// run makes of the normed rows what is added to the residual stream, y.
	run(s *rowShard)
}

// mixer lets a row see the rows before it: selfAttention, latentAttention, gatedDelta, stateSpace, shortConv or
// attentionWithStates.
type mixer interface {
	// rowWidth is the numbers of a row between project and attend.
	rowWidth() int
	// project makes of the normed rows what attend reads, and notes what later rows
	// will see of them.
	project(s *rowShard)
	// attend makes of that what is added to the residual stream, y.
	attend(s *rowShard)
}
