package device

import "slices"

// A Lines is a part of the memory that packets touch after TCM, in whole lines of caches.
type Lines struct {
	From, End int
	// Streamed lines are only read, past the device's caches.
	Streamed bool
}

// Bounds of what Touched returns: a part is whole lines, and lies in one mapping.
const (
	LineBytes     = 64
	MaxLines      = 62
	maxUnstreamed = 40
)

// Touched returns what packets read and write of a memory of so many bytes, in order: what the device's caches have of it, and what
// it streams. Parts that lie near each other are one where there are more than MaxLines. Of a packet that no device takes, and of those
// after it, it returns nothing.
func Touched(packets []Packet, memory int) []Lines {
	var cached, streamed []Lines
	for i := range packets {
		operands, status := packets[i].Operands(memory)
		if status != StatusOK {
			break
		}
		for _, o := range operands {
			if o.Offset < TCMBytes {
				continue
			}
			l := Lines{int(o.Offset) &^ (LineBytes - 1), int(uint64(o.Offset)+o.Size()+LineBytes-1) &^ (LineBytes - 1), o.Rule&Streamed != 0}
			if l.Streamed {
				streamed = append(streamed, l)
			} else {
				cached = append(cached, l)
			}
		}
	}
	const splits = 6 // at ends of mappings, of both
	return append(joined(cached, maxUnstreamed), joined(streamed, MaxLines-maxUnstreamed-splits)...)
}

// joined returns parts in order, at most so many, none of which meets another; then it cuts them at ends of mappings.
func joined(parts []Lines, most int) []Lines {
	if len(parts) == 0 {
		return nil
	}
	slices.SortFunc(parts, func(a, b Lines) int { return a.From - b.From })
	// apart joins parts less than so many bytes apart.
	apart := func(bytes int) []Lines {
		all := parts[:1]
		for _, p := range parts[1:] {
			if last := &all[len(all)-1]; p.From-last.End <= bytes {
				last.End = max(last.End, p.End)
			} else {
				all = append(all, p)
			}
		}
		return all
	}
	if parts = apart(0); len(parts) > most {
		gaps := make([]int, 0, len(parts))
		for i, p := range parts[1:] {
			gaps = append(gaps, p.From-parts[i].End)
		}
		slices.Sort(gaps)
		parts = apart(gaps[len(parts)-most-1])
	}
	var cut []Lines
	for _, p := range parts {
		for p.From/MappingBytes != (p.End-1)/MappingBytes {
			end := (p.From/MappingBytes + 1) * MappingBytes
			cut = append(cut, Lines{p.From, end, p.Streamed})
			p.From = end
		}
		cut = append(cut, p)
	}
	return cut
}
