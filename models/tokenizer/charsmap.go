package tokenizer

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/models/gguf"
)

// charsmap is the rules by which SentencePiece normalises texts: which beginning of a text
// becomes which other text. The beginnings are a double array of darts-clone (Yata et al.
// 2007), the others texts that end with a zero byte:
//
//	bytes of the array (4, little-endian) · array · texts
//
// The zero value changes nothing.
type charsmap struct {
	units []uint32
	texts string
}

// The bounds of the rules, in bytes, and of the text that one of them writes. NFKC's have 250,000 bytes, and write up
// to 33.
const (
	maxCharsmap = 1 << 24
	maxRule     = 1 << 8
)

// readCharsmap reads a file's rules, if it has any.
func readCharsmap(md gguf.Metadata) (c charsmap, err error) {
	const key = "tokenizer.ggml.precompiled_charsmap"
	if _, given := md[key]; !given {
		return c, nil
	}
	raw, err := bytesOf(md, key)
	if err != nil || len(raw) == 0 {
		return c, err
	}
	if len(raw) < 4 {
		return c, fmt.Errorf("tokenizer: %s has %d bytes, too few", key, len(raw))
	}
	size := binary.LittleEndian.Uint32(raw)
	raw = raw[4:]
	if size%4 != 0 || int64(size) > int64(len(raw)) {
		return c, fmt.Errorf("tokenizer: %s has %d bytes and an array of %d", key, len(raw), size)
	}
	c.units = make([]uint32, size/4)
	for i := range c.units {
		c.units[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	c.texts = string(raw[size:])
	for to := range strings.SplitSeq(c.texts, "\x00") {
		if len(to) > maxRule {
			return c, fmt.Errorf("tokenizer: %s has a rule that writes %d bytes, at most %d are allowed", key, len(to), maxRule)
		}
	}
	return c, nil
}

// bytesOf reads an array of bytes, signed or not.
func bytesOf(md gguf.Metadata, key string) ([]byte, error) {
	var raw []byte
	switch v := md[key].(type) {
	case []uint8:
		raw = v
	case []int8:
		for _, b := range v {
			raw = append(raw, byte(b))
		}
	default:
		return nil, fmt.Errorf("tokenizer: %s is no array of bytes", key)
	}
	if len(raw) > maxCharsmap {
		return nil, fmt.Errorf("tokenizer: %s has %d bytes, at most %d are allowed", key, len(raw), maxCharsmap)
	}
	return raw, nil
}

// normalise applies the rules from left to right, at each place the one with the longest
// beginning. Bytes that are no UTF-8 become U+FFFD.
func (c *charsmap) normalise(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if len(c.units) == 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); {
		if to, n := c.longest(text[i:]); n > 0 {
			b.WriteString(to)
			i += n
			continue
		}
		_, n := utf8.DecodeRuneInString(text[i:])
		b.WriteString(text[i : i+n])
		i += n
	}
	return b.String()
}

// longest replaces the longest beginning of text that has a rule, and returns its length; 0: none has. The bits of a
// unit of the array are, from the lowest, the byte that leads to it (8), whether a beginning ends there (1), whether
// the offset of its children is multiplied by 256 (1), and the offset (22). The highest bit of the offset marks a
// value in place of all.
func (c *charsmap) longest(text string) (to string, n int) {
	offset := func(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }
	at := offset(c.units[0])
	for i := range len(text) {
		at ^= uint32(text[i])
		if text[i] == 0 || int(at) >= len(c.units) || c.units[at]&(1<<31|0xff) != uint32(text[i]) {
			break
		}
		unit := c.units[at]
		at ^= offset(unit)
		if unit&(1<<8) == 0 {
			continue
		}
		if int(at) >= len(c.units) {
			break
		}
		if value := int(c.units[at] & (1<<31 - 1)); value < len(c.texts) {
			end := strings.IndexByte(c.texts[value:], 0)
			if end < 0 {
				end = len(c.texts) - value
			}
			to, n = c.texts[value:value+end], i+1
		}
	}
	// A rule that ended within a character would leave no UTF-8.
	if n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		return "", 0
	}
	return strings.ToValidUTF8(to, "\ufffd"), n
}
