// Package expertcache decides which experts of a model are in memory where not all of them
// fit, and which go out for others.
package expertcache

// LFU tracks which experts occupy the limited slots. A layer's step wants some of them, in
// memory together. For one that is not there the one goes out that the fewest steps have
// wanted of late. Of equals it is the one that was wanted last: layers have their steps in
// a circle, so that it will be wanted again the latest. An LFU is for one goroutine.
type LFU struct {
	slot   []int32  // [experts] none: it has no slot
	expert []int32  // [slots] none: the slot is free
	uses   []uint32 // [experts] steps that wanted it, halved every so many steps
	last   []uint64 // [experts] the last such step
	step   uint64
}

const none = -1

// halved is after how many steps what counted so far counts half.
const halved = 1 << 12

// New makes an LFU in which all slots are free. There is at least one.
func New(experts, slots int) *LFU {
	c := &LFU{slot: make([]int32, experts), expert: make([]int32, slots), uses: make([]uint32, experts), last: make([]uint64, experts)}
	for i := range c.slot {
		c.slot[i] = none
	}
	for i := range c.expert {
		c.expert[i] = none
	}
	return c
}

// BeginStep begins a step of the first n of the wanted experts, as many as there are
// slots; the others want a later step. It changes their order: those that are in
// memory come first, so that none of them goes out for another.
func (c *LFU) BeginStep(wanted []int32) (n int) {
	for i, e := range wanted {
		if c.slot[e] == none {
			continue
		}
		copy(wanted[n+1:i+1], wanted[n:i])
		wanted[n] = e
		n++
	}
	n = min(len(wanted), len(c.expert))
	if c.step++; c.step%halved == 0 {
		for i := range c.uses {
			c.uses[i] /= 2
		}
	}
	for _, e := range wanted[:n] {
		c.uses[e]++
		c.last[e] = c.step
	}
	return n
}

// Slot finds an expert; ok is false if it is not in memory.
func (c *LFU) Slot(expert int32) (slot int, ok bool) {
	return int(c.slot[expert]), c.slot[expert] != none
}

// Assign gives a slot to an expert of the step that has none. It is free, or belonged to an expert that the step does not
// need.
func (c *LFU) Assign(expert int32) (slot int) {
	slot = none
	for i, e := range c.expert {
		if e == none {
			slot = i
			break
		}
		if c.last[e] != c.step && (slot == none || c.before(e, c.expert[slot])) {
			slot = i
		}
	}
	if out := c.expert[slot]; out != none {
		c.slot[out] = none
	}
	c.expert[slot], c.slot[expert] = expert, int32(slot)
	return slot
}

// before tells whether a goes out before b.
func (c *LFU) before(a, b int32) bool {
	if c.uses[a] != c.uses[b] {
		return c.uses[a] < c.uses[b]
	}
	return c.last[a] > c.last[b]
}
