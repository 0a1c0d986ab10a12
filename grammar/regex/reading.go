package regex

// numbers holds Numbers in units of the last digit that may be other than zero.
type numbers struct {
	decimals int           // of that digit after the point
	digits   int           // before the point
	pointed  bool          // a point may be there
	modulus  int64         // of which the units are a multiple
	others   []int64       // of which they are none
	all      int64         // the least common multiple of these
	interval [2]magnitudes // of numbers without and with a sign
}

// magnitudes bounds numbers without a sign, in digits: those before the point, then those
// after it.
type magnitudes struct {
	none            bool
	least, most     string // empty: no such bound
	leastAt, mostAt int    // digits before the point
}

// reading tracks how far a number has been read.
type reading struct {
	of          int32
	phase       numberPhase
	signed      bool
	whole       int8  // digits before the point, while there is none
	fraction    int8  // digits after it
	least, most int8  // how it compares with the bounds, digit by digit
	rest        int64 // of all digits, divided by numbers.all
}

// numberPhase says what has been read last.
type numberPhase uint8

const (
	numberBegins numberPhase = iota
	numberSigned
	numberZero // its only digit before the point
	numberWhole
	numberPoint // and the digits after it
)
