package cpu

// TileSizes are the sizes of AMX's tiles, as LDTILECFG reads them.
type TileSizes [64]byte

// Set gives a tile some rows, 16 at most, of some bytes each, 64 at most.
func (s *TileSizes) Set(tile, rows, bytes int) {
	s[0] = 1 // the one palette there is
	s[16+2*tile] = byte(bytes)
	s[48+tile] = byte(rows)
}
