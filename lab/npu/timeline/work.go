package timeline

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/hexagon/pipeline"
)

// Unit computes packets. The vector threads compute theirs in order. Packets of the other units start, and a later one
// waits if it touches what they read or write.
type Unit int

// The units.
const (
	Vectors Unit = iota
	DMA
	Tiles
)

// Work has the counts of a device's packet.
type Work struct {
	Op       string
	Unit     Unit
	Packets  float64 // of instructions, of its longest shard
	Barriers float64 // of the threads that share it
	Moved    float64 // bytes, by DMA
	Products float64 // of tiles of 32×32×32
	Reads    float64 // of a tile of 64×32 sums, of products in bytes
	Tiles    int     // of a product by lookups, of the thread with the most of them; 0: it is none
	Ahead    bool    // the first of these come while the product by lookups before ends
	// Wait counts packets back to the last one, of DMA and of the tile unit, that this one waits for; 0: it waits for none.
	Wait [2]int
}

const workForm = "%s %d %g %g %g %g %g %d %t %d %d\n"

func (w *Work) String() string {
	return strings.TrimSuffix(fmt.Sprintf(workForm, strings.ReplaceAll(w.Op, " ", "_"), w.Unit, w.Packets, w.Barriers, w.Moved, w.Products, w.Reads, w.Tiles, w.Ahead, w.Wait[0], w.Wait[1]), "\n")
}

// longest bounds the packets that Write looks for repetitions of.
const longest = 80

// Write writes packets, a line each; what repeats once, behind how many lines it is and how often.
func Write(w io.Writer, list []Work) error {
	lines := make([]string, len(list))
	for i := range list {
		lines[i] = list[i].String()
	}
	for at := 0; at < len(lines); {
		length, times := 1, 1
		for n := 1; n <= longest && at+2*n <= len(lines); n++ {
			k := 1
			for at+(k+1)*n <= len(lines) && slices.Equal(lines[at:at+n], lines[at+k*n:at+(k+1)*n]) {
				k++
			}
			if (k-1)*n > (times-1)*length {
				length, times = n, k
			}
		}
		if times > 1 {
			fmt.Fprintf(w, "repeat %d %d\n", length, times)
		}
		if _, err := fmt.Fprintln(w, strings.Join(lines[at:at+length], "\n")); err != nil {
			return err
		}
		at += length * times
	}
	return nil
}

// Read reads what Write has written.
func Read(lines []string) (list []Work, err error) {
	from, left, times := 0, 0, 0 // of a repetition: where it begins, lines of it to come, and how often it is there
	for _, line := range lines {
		var n int
		if k, _ := fmt.Sscanf(line, "repeat %d %d", &n, &times); k == 2 {
			if n < 1 || n > longest || times < 1 || times > 1<<16 {
				return nil, fmt.Errorf("timeline: line %.80q", line)
			}
			from, left = len(list), n
			continue
		}
		var w Work
		if _, err := fmt.Sscanf(line, strings.TrimSuffix(workForm, "\n"), &w.Op, &w.Unit, &w.Packets, &w.Barriers, &w.Moved, &w.Products, &w.Reads, &w.Tiles, &w.Ahead, &w.Wait[0], &w.Wait[1]); err != nil {
			return nil, fmt.Errorf("timeline: line %.80q: %w", line, err)
		}
		list = append(list, w)
		if left--; left == 0 {
			for block := list[from:]; times > 1; times-- {
				list = append(list, block...)
			}
		}
	}
	return list, nil
}

// Rates are a chip's seconds for a packet of instructions, a barrier, a byte, a product of tiles, and a read of sums.
type Rates struct{ Packet, Barrier, Byte, Product, ByteProduct, Read float64 }

func (r *Rates) product(w *Work) float64 {
	if w.Reads > 0 {
		return w.Products*r.ByteProduct + w.Reads*r.Read
	}
	return w.Products * r.Product
}

// Busy has the seconds that each unit works, and those until the last packet is done.
type Busy struct{ Vectors, DMA, Tiles, Total float64 }

// Run returns when packets are done, each of which begins when its unit is free and what it waits for is there.
func Run(list []Work, r Rates) Busy {
	var b Busy
	var now, dma, tiles float64 // until when the vector threads, DMA and the tile unit work
	ends := make([]float64, len(list))
	for i := range list {
		w := &list[i]
		for _, back := range w.Wait {
			if back > 0 && back <= i {
				now = max(now, ends[i-back])
			}
		}
		vector, moved := w.Packets*r.Packet+w.Barriers*r.Barrier, w.Moved*r.Byte
		b.Vectors, b.DMA, b.Tiles = b.Vectors+vector, b.DMA+moved, b.Tiles+r.product(w)
		switch {
		case w.Unit == DMA:
			now += vector
			dma = max(dma, now) + moved
			ends[i] = dma
		case w.Unit == Tiles:
			now += vector
			tiles = max(tiles, now) + r.product(w)
			ends[i] = tiles
		case w.Tiles > 0:
			each := moved / float64(w.Tiles)
			from := max(dma, now)
			if w.Ahead {
				from = max(dma, now-pipeline.Buffers*each)
			}
			// A tile is looked up when it has come: the vectors end a tile behind DMA, or DMA is hidden but for its first tile.
			dma = from + moved
			now = max(max(now, from+each)+vector, dma+vector/float64(w.Tiles))
			ends[i] = now
		default:
			now += max(vector, moved)
			ends[i] = now
		}
	}
	b.Total = max(now, dma, tiles)
	return b
}

// InTurn has each packet wait for the one before it.
func InTurn(list []Work) []Work {
	list = slices.Clone(list)
	for i := range list {
		list[i].Wait = [2]int{1, 1}
	}
	return list
}

// Without leaves packets out, and what waits for them.
func Without(list []Work, leave func(i int) bool) (kept []Work) {
	at := make([]int, len(list))
	for i, w := range list {
		if at[i] = -1; leave(i) {
			continue
		}
		for k, back := range w.Wait {
			w.Wait[k] = 0
			if from := i - back; back > 0 && from >= 0 && at[from] >= 0 {
				w.Wait[k] = len(kept) - at[from]
			}
		}
		at[i] = len(kept)
		kept = append(kept, w)
	}
	return kept
}
