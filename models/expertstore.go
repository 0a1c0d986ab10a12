package models

import (
	"fmt"
	"sync/atomic"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/models/expertcache"
)

// expertStore has the experts of mixtures that are larger than the memory they may
// take. They stay in the file. Each is read and packed when a row wants it, into one
// of the slots, which all have the size of the largest expert; what expertcache.LFU
// says goes out for it. An expert's packing depends on its weights alone, so that
// answers have the same bits whatever is in memory.
type expertStore struct {
	loader  *loader
	slots   [][]byte
	packed  []expert // [slots]
	cache   *expertcache.LFU
	ids     []int32 // scratch: experts of a step, numbered through all layers
	experts int     // a layer
	err     error   // sticks: which weights are the old ones is not known any more

	hits, misses, read, held atomic.Int64
}

// expertStore makes a place where the experts of all layers are packed on demand: nil where all
// of them fit into the memory that they may take.
func (l *loader) expertStore() *expertStore {
	layers, experts := l.cfg.Layers, l.cfg.Experts
	if max(l.opt.ExpertMemory, l.opt.WeightMemory) <= 0 || experts == 0 || l.Err() != nil {
		return nil
	}
	all, slot, others := int64(0), 0, int64(0)
	for i := range l.file.Tensors {
		others += int64(l.file.Tensors[i].Bytes())
	}
	for i := range layers {
		if !l.mixes(i) {
			continue
		}
		for e := range experts {
			size := 0
			for _, part := range l.expertParts(layerNames(i), e) {
				t := l.Tensor(part.tensor, part.dims...)
				if t == nil {
					return nil
				}
				size += cpu.RoundUp(l.MostBytes(t, part.rows, part.cols), cpu.CacheLine)
				others -= int64(t.Bytes()) * int64(part.rows) / int64(t.Rows())
			}
			all, slot = all+int64(size), max(slot, size)
		}
	}
	room := l.opt.ExpertMemory
	if room <= 0 {
		room = max(int64(slot), l.opt.WeightMemory-others)
	}
	if all <= room {
		return nil
	}
	if !l.Local() {
		l.Fail("experts that are not all in memory are multiplied by the CPU alone: the backend needs %d bytes for them, of %d", all, room)
		return nil
	}
	n := int(min(room/int64(slot), int64(l.mixtures()*experts)))
	if n < 1 {
		l.Fail("the memory for experts, %d bytes, does not hold one of %d bytes", room, slot)
		return nil
	}
	s := &expertStore{loader: l, experts: experts, cache: expertcache.New(layers*experts, n), packed: make([]expert, n)}
	memory, err := l.Memory().Bytes(n * slot)
	if err != nil {
		l.Fail("%w", err)
		return nil
	}
	for i := range n {
		s.slots = append(s.slots, memory[i*slot:(i+1)*slot:(i+1)*slot])
	}
	l.Params += int64(l.mixtures()) * int64(experts) * int64(len(l.made())+1) * int64(l.cfg.ExpertFFN) * int64(l.cfg.reads)
	l.Bytes += int64(n * slot)
	return s
}

// begin begins a step of a layer whose rows chose experts. It puts those first that
// are multiplied now, n of them, and has them in memory.
func (s *expertStore) begin(layer int, chosen []int32) (n int) {
	if s.err != nil {
		return 0
	}
	first := int32(layer * s.experts)
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
	for _, part := range s.loader.expertParts(layerNames(int(id)/s.experts), int(id)%s.experts) {
		s.loader.file.Tensor(part.tensor).Expect(part.lo, part.lo+part.rows)
	}
}

// load reads an expert into the slot of another.
func (s *expertStore) load(id int32) error {
	slot, l := s.cache.Assign(id), s.loader
	layer, e := int(id)/s.experts, int(id)%s.experts
	before := l.Read()
	l.Into(cpu.Within(s.slots[slot]))
	s.packed[slot] = l.packExpert(layerNames(layer), e)
	s.read.Add(l.Read() - before)
	if err := l.Err(); err != nil {
		return fmt.Errorf("models: expert %d of layer %d: %w", e, layer, err)
	}
	s.held.Store(min(s.misses.Load(), int64(len(s.slots))))
	return nil
}

// at returns an expert of the step.
func (s *expertStore) at(layer int, e int32) *expert {
	slot, _ := s.cache.Slot(int32(layer*s.experts) + e)
	return &s.packed[slot]
}
