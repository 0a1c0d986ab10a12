package device

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// AnswerBytes is the size of an answer. Packets go to a device in requests of 16
// bytes and 64 a packet; hexagon/dsp/dispatch has both forms.
const AnswerBytes = 16 + 8*18

const magic = 0x4c555452

// AppendRequest appends request number to b: a header, which gives count, and packets.
// begins says that they are a run's first if it is not 0.
func AppendRequest(b []byte, number, count, begins uint32, packets []Packet) []byte {
	for _, v := range [...]uint32{magic, number, count, begins} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	for _, p := range packets {
		b = binary.LittleEndian.AppendUint32(b, uint32(p.Op))
		for _, a := range p.Args {
			b = binary.LittleEndian.AppendUint32(b, a)
		}
	}
	return b
}

// Answer says how many packets of a request went well, and the status of the next.
type Answer struct {
	Done   int
	Status Status
	Counts Counts
}

// MaxRequest is the most packets of a request.
const MaxRequest = 256

// wanted is the status of an answer that asks for a product.
const wanted = 0x100

// ParseWanted reads what the emulator sends before it answers request number: the packet whose product,
// of the tile unit, it wants now. ok is false for anything else.
func ParseWanted(b []byte, number uint32, packets []Packet) (at int, ok bool) {
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
	if len(b) != AnswerBytes || word(0) != magic || word(1) != number || word(3) != wanted || word(2) >= uint32(len(packets)) {
		return 0, false
	}
	return int(word(2)), packets[word(2)].OfTileUnit()
}

// AppendDone appends the word that says that a wanted product is done.
func AppendDone(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, magic) }

// ParseAnswer reads the answer to request number, of packets packets. One that cannot be
// true is an error.
func ParseAnswer(b []byte, number uint32, packets int) (Answer, error) {
	if len(b) != AnswerBytes {
		return Answer{}, fmt.Errorf("an answer has %d bytes, not %d", AnswerBytes, len(b))
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
	long := func(i int) uint64 { return binary.LittleEndian.Uint64(b[16+8*i:]) }
	a := Answer{int(word(2)), Status(word(3)), Counts{long(0), long(1), long(2), long(3), long(4), long(5), long(6), long(7), long(8), long(9), long(10), long(11), long(12), long(13), long(14), long(15), long(16), long(17)}}
	switch {
	case word(0) != magic || word(1) != number || a.Status > StatusNumber:
		return Answer{}, errors.New("the answer is none")
	case word(2) > uint32(packets) || packets > 0 && (a.Done == packets) != (a.Status == StatusOK):
		return Answer{}, fmt.Errorf("the answer says that %d of %d packets went well, with status %d", word(2), packets, a.Status)
	}
	return a, nil
}

// Add adds counts.
func (c *Counts) Add(d Counts) {
	c.Packets += d.Packets
	c.Instructions += d.Instructions
	c.Vector += d.Vector
	c.Transfers += d.Transfers
	c.Moved += d.Moved
	c.Flying = max(c.Flying, d.Flying)
	c.Gathers += d.Gathers
	c.Exposed += d.Exposed
	c.WeightsDDR += d.WeightsDDR
	c.WeightsTCM += d.WeightsTCM
	c.SumsDDR += d.SumsDDR
	c.SumsTCM += d.SumsTCM
	c.Longest += d.Longest
	c.Barriers += d.Barriers
	c.Products += d.Products
	c.Queued = max(c.Queued, d.Queued)
	c.HidesDMA += d.HidesDMA
	c.HidesTiles += d.HidesTiles
}
