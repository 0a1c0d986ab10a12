package models

import (
	"fmt"
	"sync/atomic"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/models/expertcache"
)

// expertStore has the experts of mixtures that are larger than the memory they may take. They stay in the
// file. Each is read and packed when a row needs it, into one of the slots, which all have the size of the
// largest expert. expertcache.LFU chooses the expert that it replaces. An expert's packing depends on its
// weights alone, so answers have the same bits whatever is in memory.
type expertStore struct {
	from     *expertMatrices
	layers   []layerSpec
	mixtures int // of layers, those that have one
	slots    [][]byte
	packed   []expert // [slots]
	cache    *expertcache.LFU
	ids      []int32 // scratch: experts of a step, numbered through all layers
	err      error   // sticks: which weights are the old ones is not known any more

	hits, misses, read, held atomic.Int64
}

// newExpertStore makes a place where the experts of all layers are packed on demand: nil where all
// of them fit into the memory that they may take.
func newExpertStore(from *expertMatrices, m *spec, opt *LoadOptions) *expertStore {
	t := from.t
	if max(opt.ExpertMemory, opt.WeightMemory) <= 0 || m.Experts == 0 || t.Err() != nil {
		return nil
	}
	all, slot, others := from.sizes(m)
	room := opt.ExpertMemory
	if room <= 0 {
		room = max(slot, opt.WeightMemory-others)
	}
	if all <= room || t.Err() != nil {
		return nil
	}
	if !t.Local() {
		t.Fail("experts that are not all in memory are multiplied by the CPU alone: the backend needs %d bytes for them, of %d", all, room)
		return nil
	}
	n := int(min(room/slot, int64(m.mixtures()*m.Experts)))
	if n < 1 {
		t.Fail("the memory for experts, %d bytes, does not hold one of %d bytes", room, slot)
		return nil
	}
	s := &expertStore{from: from, layers: m.layers, mixtures: m.mixtures(), cache: expertcache.New(m.Layers*m.Experts, n), packed: make([]expert, n)}
	memory, err := t.Memory().Bytes(n * int(slot))
	if err != nil {
		t.Fail("%w", err)
		return nil
	}
	for i := range int64(n) {
		s.slots = append(s.slots, memory[i*slot:(i+1)*slot:(i+1)*slot])
	}
	t.Params += int64(s.mixtures) * int64(m.Experts) * int64(len(from.made)+1) * int64(from.width) * int64(from.reads)
	t.Bytes += int64(n) * slot
	return s
}

// sizes returns how many bytes all experts take at most in memory, how many the largest, and how many
// the file has of other tensors.
func (x *expertMatrices) sizes(m *spec) (all, largest, others int64) {
	for i := range x.t.File().Tensors {
		others += int64(x.t.File().Tensors[i].Bytes())
	}
	for i := range m.layers {
		y := &m.layers[i]
		for e := 0; y.mixes && e < x.count; e++ {
			size := int64(0)
			for _, part := range x.parts(y, e) {
				t := x.t.Tensor(part.tensor, part.dims...)
				if t == nil {
					return 0, 0, 0
				}
				size += int64(cpu.RoundUp(x.t.MostBytes(t, part.rows, part.cols), cpu.CacheLine))
				others -= int64(t.Bytes()) * int64(part.rows) / int64(t.Rows())
			}
			all, largest = all+size, max(largest, size)
		}
	}
	return all, largest, others
}

// begin begins a step of a layer whose rows chose experts. It puts those first that
// are multiplied now, n of them, and has them in memory.
func (s *expertStore) begin(layer int, chosen []int32) (n int) {
	if s.err != nil {
		return 0
	}
	first := int32(layer * s.from.count)
	s.ids = s.ids[:0]
	for _, e := range chosen {
		s.ids = append(s.ids, first+e)
	}
	n = s.cache.BeginStep(s.ids)
	for i, id := range s.ids {
		chosen[i] = id - first
	}
	for _, id := range s.ids[:n] { // reads of all are under way while the first is packed
		if _, ok := s.cache.Slot(id); !ok {
			s.expect(id)
		}
	}
	for _, id := range s.ids[:n] {
		if _, ok := s.cache.Slot(id); ok {
			s.hits.Add(1)
			continue
		}
		s.misses.Add(1)
		if s.err = s.load(id); s.err != nil {
			return 0
		}
	}
	return n
}

// expect says that an expert will be read.
func (s *expertStore) expect(id int32) {
	y, e := s.expert(id)
	for _, part := range s.from.parts(y, e) {
		s.from.t.File().Tensor(part.tensor).Expect(part.lo, part.lo+part.rows)
	}
}

// expert returns the layer of an expert, and its number there.
func (s *expertStore) expert(id int32) (y *layerSpec, e int) {
	return &s.layers[int(id)/s.from.count], int(id) % s.from.count
}

// load reads an expert into the slot of another.
func (s *expertStore) load(id int32) error {
	slot, t := s.cache.Assign(id), s.from.t
	y, e := s.expert(id)
	before := t.Read()
	t.Into(cpu.Within(s.slots[slot]))
	s.packed[slot] = s.from.pack(y, e)
	s.read.Add(t.Read() - before)
	if err := t.Err(); err != nil {
		return fmt.Errorf("models: expert %d of layer %d: %w", e, y.index, err)
	}
	s.held.Store(min(s.misses.Load(), int64(len(s.slots))))
	return nil
}

// at returns an expert of the step.
func (s *expertStore) at(layer int, e int32) *expert {
	slot, _ := s.cache.Slot(int32(layer*s.from.count) + e)
	return &s.packed[slot]
}
