package tokenizer

import (
	"math"
	"strings"
)

// fillPieces works out the text of every token. text appends the text of an
// ordinary one.
func (v *vocab) fillPieces(text func(dst []byte, token string) []byte) {
	v.ends = make([]uint32, len(v.tokens))
	for i, token := range v.tokens {
		switch k := v.kinds[i]; {
		case k&(control|unknown) != 0:
		case k&userDefined != 0:
			v.pieces = append(v.pieces, token...)
		case k&byteToken != 0:
			if b, ok := byteOf(token); ok {
				v.pieces = append(v.pieces, b)
			}
		default:
			v.pieces = text(v.pieces, token)
		}
		// A file's strings are far smaller than 4 GiB; the cut only keeps the
		// offsets sound.
		v.ends[i] = uint32(min(len(v.pieces), math.MaxUint32))
	}
}

// Piece returns the bytes that a token adds to a text; nothing for a control or
// unknown token and for an id out of range. They may end within a UTF-8
// character. The slice belongs to the tokenizer.
func (v *vocab) Piece(id int32) []byte {
	if !v.valid(id) {
		return nil
	}
	lo := uint32(0)
	if id > 0 {
		lo = v.ends[id-1]
	}
	hi := v.ends[id]
	return v.pieces[lo:hi:hi]
}

// Decode returns the text of a sequence. With special, control and unknown tokens
// are written out as the file names them, else they give nothing. Where the
// encoder puts a space before a text, one is taken off a sequence that begins
// with text. The result is not valid UTF-8 when ids stop within a character.
func (v *vocab) Decode(ids []int32, special bool) string {
	size := 0
	for _, id := range ids {
		size += len(v.Piece(id))
	}
	var b strings.Builder
	b.Grow(size)
	for i, id := range ids {
		piece := v.Piece(id)
		if special && v.valid(id) && v.kinds[id]&(control|unknown) != 0 {
			b.WriteString(v.tokens[id])
			continue
		}
		if i == 0 && v.stripFirst && len(piece) > 0 && piece[0] == ' ' {
			piece = piece[1:]
		}
		b.Write(piece)
	}
	return b.String()
}

// decodeByteLevel appends the bytes of a token of byte-level BPE. A character
// outside its alphabet stands for itself.
func decodeByteLevel(dst []byte, token string) []byte {
	for _, r := range token {
		if b, ok := alphabetByte[r]; ok {
			dst = append(dst, b)
		} else {
			dst = append(dst, string(r)...)
		}
	}
	return dst
}

// decodeSpaces appends a SentencePiece token with its spaces made plain.
func decodeSpaces(dst []byte, token string) []byte {
	return append(dst, strings.ReplaceAll(token, spaceMark, " ")...)
}
