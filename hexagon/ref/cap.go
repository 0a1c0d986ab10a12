package ref

// SoftCap replaces numbers by the entries of a table at their bits without the sign, which they keep.
func SoftCap(s, table []uint16) {
	for i, x := range s {
		s[i] = table[x&0x7fff] | x&0x8000
	}
}
