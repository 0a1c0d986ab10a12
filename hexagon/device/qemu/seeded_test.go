package qemu

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	drawn "github.com/lutra-lm/lutra/hexagon/device/exercise"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// seeded are faults of the C sources: in a file, of dsp, a text and what replaces it.
// Tests that do not see each of them do not test the kernels.
var seeded = []struct{ file, from, to string }{
	{"kernels/precompute.c", "t[2] = HI(s0), t[4] = LO(s1)", "t[4] = HI(s0), t[2] = LO(s1)"},
	{"kernels/precompute.c", "0x01010101", "0x01010100"},
	{"kernels/precompute.c", "Q6_Q_vsetq2_R(at + 32)", "Q6_Q_vsetq2_R(128)"},
	{"kernels/recurrent.c", "i - behind + tap", "i - tap"},
	{"kernels/recurrent.c", "n - behind + i", "n - behind"},
	{"kernels/recurrent.c", "key + 1 < d->keys", "key + 1 <= d->keys"},
	{"kernels/recurrent.c", "if (++of == d->share)", "if (++of > d->share)"},
	{"kernels/recurrent.c", "i++, before = state", "i++"},
	{"kernels/recurrent.c", "d->keys * width / 16 + panel", "d->keys * width / 32 + panel"},
	{"kernels/sigmoid.h", "1.0f / 9", "1.0f / 8"},
	{"dispatch/dispatch.c", "MOVED(2, 128), MOVED(3, 128), 4 * a[5]", "MOVED(2, 128), AT(3), 4 * a[5]"},
	{"kernels/gemv.c", "(tile >> 2 & 1) << 2", "(tile >> 1 & 1) << 2"},
	{"kernels/gemv.c", "table, sel | 2)", "table, sel)"},
	{"kernels/gemv.c", "splat_w(s << 3)", "splat_w(s << 2)"},
	{"kernels/gemv.c", "g->A == 2 ? ~0u", "g->A == 1 ? ~0u"},
	{"kernels/gemv.c", "Q6_Vw_vmpyo_VwVh_s1_rnd_sat", "Q6_Vw_vmpyo_VwVh_s1_sat"},
	{"kernels/gemv.c", "Q6_W_vshuff_VVR(LO(r23), LO(r01), -8)", "Q6_W_vshuff_VVR(LO(r01), LO(r23), -8)"},
	{"kernels/gemv.c", "dma_wait(g->engine, now->number);", ""},
	{"kernels/gemv.c", "(uint32_t)l->free * g->buffer", "0 * g->buffer"},
	{"kernels/gemv.c", "fetched < tile + GEMV_BUFFERS", "fetched <= tile + GEMV_BUFFERS"},
	{"kernels/gemv.c", "  dma_wait(g->engine, number);\n}", "  (void)number;\n}"},
	{"kernels/gemv.c", "V *sums = (V *)g->spill;", "V *sums = (V *)g->y;"},
	{"kernels/gemv.c", "(uint32_t)(k >> shift) * STRIP * 2", "(uint32_t)(k >> shift) * STRIP"},
	{"kernels/gemv.c", "(V *)g->spill + 4 * m", "(V *)g->spill"},
	{"kernels/dequant.c", "0x30201000u", "0x30102000u"},
	{"kernels/dequant.c", "0x0c080400u, second2)\nHALF(half_2", "0x0c040800u, second2)\nHALF(half_2"},
	{"kernels/dequant.c", "exchange(a, b, 64)", "exchange(b, a, 64)"},
	{"kernels/dequant.c", "hf_of_int(offsets[0], 12)", "hf_of_int(offsets[0], 11)"},
	{"kernels/dequant.c", "column * 32 >> shift", "column * 16 >> shift"},
	{"kernels/dequant.c", "T(0), T(1)}", "T(1), T(0)}"},
	{"kernels/dequant.c", "{1, 2 | 8}, {1, 1 | 4}", "{1, 1 | 4}, {1, 2 | 8}"},
	{"kernels/dequant.c", "(uint32_t)all * 4 * TILE", "(uint32_t)all * 2 * TILE"},
	{"kernels/dequant.c", "Q6_Vb_vdeal_Vb(Q6_Vh_vdeal_Vh(", "Q6_Vb_vdeal_Vb(Q6_Vb_vdeal_Vb("},
	{"kernels/dequant.c", "splat_h(0xe480)", "splat_h(0xe400)"},
	{"kernels/gemv.c", "Q6_Vuw_vrmpyacc_VuwVubRub", "Q6_Vw_vrmpyacc_VwVubRb"},
	{"kernels/gemv.c", "Q6_V_vror_VR(once, -32)", "once"},
	{"kernels/precompute.c", "Q6_Vb_vpacko_VhVh", "Q6_Vb_vpacke_VhVh"},
	{"kernels/hf.h", "splat_w(20)", "splat_w(21)"},
	{"kernels/hf.h", "Q6_Vw_vadd_VwVw(rest, Q6_V_vand_VV(mant, one))", "rest"},
	{"kernels/hf.h", "splat_w(0x7bff)", "splat_w(0x7c00)"},
	{"kernels/hf.h", "splat_w(5)", "splat_w(6)"},
	{"kernels/vlut16.c", "splat_b(4)", "splat_b(3)"},
	{"kernels/softmax.c", "n - from < 32 ?", "n - from < 31 ?"},
	{"kernels/softmax.c", "-4 * p->row", "-4 * p->row - 4"},
	{"kernels/softmax.c", "t % 64 == 63", "t % 512 == 511"},
	{"kernels/softmax.c", "st[1].max << 16", "st[0].max << 16"},
	{"kernels/exp.c", "int i = 17", "int i = 4"},
	{"kernels/softmax.c", "gather(s, table,", "gather((V *)table - TILE, table,"},
	// Rows: a store that is not aligned, which a chip makes at the address below; what is left of
	// an element before; lanes, orders and roundings.
	{"kernels/rows.c", "(uintptr_t)row * r->stride", "(uintptr_t)row * (r->stride - 64)"},
	{"kernels/rows.c", "Q6_V_vand_VV(*line, other)", "Q6_V_vor_VV(*line, Q6_V_vand_VV(*line, other))"},
	{"kernels/rows.c", "words[2 * j] | words[2 * j + 1] << 16", "words[2 * j + 1] | words[2 * j] << 16"},
	{"kernels/rows.c", "words[2 * j] = two & 0xffff, words[2 * j + 1] = two >> 16", "words[j] = two & 0xffff, words[16 + j] = two >> 16"},
	{"kernels/rows.c", "if (2 * k + j < vectors)", ""},
	{"kernels/rows.c", "x[k + apart] = sf_add(sf_mul(hi, c[k + apart])", "x[k + apart] = sf_add(sf_mul(x[k], c[k + apart])"},
	{"kernels/rows.c", "begins ? sum :", "!begins ? sum :"},
	{"kernels/rows.c", "next[i].max = states[i].max", "next[i].max = next[i].max"},
	{"kernels/rows.c", "splat_w(0x7bfe)", "splat_w(0x7bff)"},
	// Soft caps: signs of other numbers, numbers that no gather has brought. LayerNorm: a row that is
	// not centred.
	{"kernels/cap.c", "end(s, even);", "end(s, odd);"},
	{"kernels/cap.c", "if (t + 1 < tiles) begin(", "if (t + 2 < tiles) begin("},
	{"kernels/rows.c", "sf_sub(x[k], mean)", "sf_add(x[k], mean)"},
	// Rows to tiles and back: vectors in another order, columns behind the rows', another scale, what was
	// there before; of a shard another's scales and rows.
	{"kernels/turn.c", "v[i] = LO(w), v[i | bit] = HI(w)", "v[i] = HI(w), v[i | bit] = LO(w)"},
	{"kernels/turn.c", "if (2 * k + j < vectors)", ""},
	{"kernels/turn.c", "(254 - e) << 23", "(253 - e) << 23"},
	{"kernels/turn.c", "more ? sf_add(y[j], f) : f", "more ? f : f"},
	{"dispatch/dispatch.c", "MOVED(1, TILE_BYTES), MOVED(2, 128)", "MOVED(1, TILE_BYTES), AT(2)"},
	{"dispatch/dispatch.c", "MOVED_ROWS(2, 6, 32 * a[6])", "MOVED_ROWS(2, 6, a[6])"},
	// The clamped unit: a bound of one side alone, signs that are lost, what is added before the bound.
	{"kernels/rows.c", "g = Q6_Vw_vmin_VwVw(g, limit);", ""},
	{"kernels/rows.c", "sf_sign(u), Q6_Vw_vmin_VwVw(sf_abs(u), limit)", "zero(), Q6_Vw_vmin_VwVw(u, limit)"},
	{"kernels/rows.c", "sf_mul(sf_mul(p, t), exp_minus(", "sf_mul(p, exp_minus("},
	{"kernels/rows.c", "x), q, sf_sub(splat_f(1), q))", "x), sf_sub(splat_f(1), q), q)"},
	{"kernels/rows.c", "if (unit == GLU_ERF_GELU || unit == GLU_ERF_ALONE) return", "if (unit == GLU_ERF_ALONE) return"},
	{"kernels/rows.c", "u = Q6_V_vor_VV(sf_sign(u)", "u = sf_add(u, plus), u = Q6_V_vor_VV(sf_sign(u)"},
	// Gathers of what is in DDR.
	{"kernels/softmax.c", "gather(s, table,", "gather((V *)p->st, table,"},
	{"kernels/softmax.c", "gather(s, table,", "gather(s, table ? (const uint16_t *)p->st : table,"},
	// Copies and pieces of kept keys: an address that is not aligned, a piece that is
	// not brought, one that is in TCM.
	{"dispatch/dispatch.c", "n++, to += a[5]", "n++, to += a[5] - 64"},
	{"dispatch/dispatch.c", "n < a[2]; n++, to", "n + 1 < a[2]; n++, to"},
	// What is under way: no wait in the end, for what is read, for what is written, for all but what began last,
	// for weights of a strip, for tiles and their results; transfers that are waited for twice.
	{"dispatch/dispatch.c", "flow_drain(m);", "(void)m;"},
	{"dispatch/flow.c", "((a->span[i].rule | b->span[j].rule) & WRITES)", "(b->span[j].rule & WRITES)"},
	{"dispatch/flow.c", "((a->span[i].rule | b->span[j].rule) & WRITES)", "(a->span[i].rule & WRITES)"},
	{"dispatch/flow.c", "retire(l, m, end);\n  }", "if (end == l->begun) retire(l, m, end);\n  }"},
	// Of tiles that come before their product: what is written between, what is under way, where they go; their rest, and no wait where there is no product.
	{"dispatch/flow.c", "operands_of(q, m->size, &between) || meet(&tiles, &between, 0)", "operands_of(q, m->size, &between)"},
	{"dispatch/flow.c", "i < OF_GEMV_WEIGHTS", "i < tiles.n"},
	{"dispatch/flow.c", "  settle(&tiles, 0, m);", ""},
	{"dispatch/flow.c", "tiles.span[OF_GEMV_SCRATCH].from += (uint32_t)gemv_sums(next->args);", "tiles.span[OF_GEMV_SCRATCH].end = 0;"},
	{"dispatch/dispatch.c", "  gemv_forget();", ""},
	{"kernels/gemv.c", "fetch_next(next, behind, 1)", "fetch_next(g, behind, 1)"},
	{"kernels/gemv.c", "unload(l);\n  uint32_t number", "uint32_t number"},
	{"dispatch/dispatch.c", "strip * a[7] * 8 + part.from", "part.from"},
	{"dispatch/dispatch.c", "INT(5) + (int)strip", "INT(5)"},
	{"dispatch/flow.c", "else m->tiles->wait(number);", "else (void)m;"},
	{"dispatch/flow.c", "l->pending[(end - 1) % DEPTH].number", "l->pending[l->ended % DEPTH].number"},
	{"kernels/dma.c", "r->ended = number;", ""},
	{"kernels/dma.c", "r->pushed == r->ended ? 0 :", ""},
	{"dispatch/dispatch.c", "begin ? begin : TCM_BYTES", "begin"},
	// Several rows of activations: sums in TCM that another operation left, those of the row
	// before, a store that is not aligned, the tables of another row, a buffer that DMA fills.
	{"kernels/gemv.c", "i < g->rows * (g->M / 32)", "i < g->M / 32"},
	{"kernels/gemv.c", "return sums + row * (g->M / 32)", "return (V *)((uint8_t *)sums + row * (g->M * 4 - 64))"},
	{"kernels/gemv.c", "(uint32_t)row * g->row", "0 * row"},
	{"kernels/gemv.c", "look_up(g, &now->part,", "look_up(g, &l->loads[(at + 1) % GEMV_BUFFERS].part,"},
	// Rows that share codes: more than there are, the first one's tables or sums alone, an addition that is not
	// made, codes of another block, half of the tables, a line twice, other nibbles.
	{"kernels/gemv.c", "left >= 4 ?", "left >= 3 ?"},
	{"kernels/gemv.c", "tables_of(g, row + r) + all", "tables_of(g, row) + all"},
	{"kernels/gemv.c", "z += apart", "z += 0 * apart"},
	{"kernels/lines.h", "LAST(\"d\")", "\"\""},
	{"kernels/lines.h", "\"r\"(w + next)", "\"r\"(w)"},
	{"kernels/lines.h", "select | 2", "select"},
	{"kernels/lines.h", "0, 1, 2, 3, 5, 6, 7", "0, 1, 2, 3, 4, 6, 7"},
	{"kernels/lines.h", "[four] \"r\"(4)", "[four] \"r\"(3)"},
	{"dispatch/dispatch.c", "(const int16_t *)AT(2) + row * a[3]", "(const int16_t *)AT(2)"},
	// Bytes: a store that is not aligned.
	{"kernels/precompute.c", "to[1] = HI(words)", "*(V *)((uint8_t *)to + 64) = HI(words)"},
	{"dispatch/operations.c", "(n > 0) && ((n % ALIGN) == 0)", "n > 0"},
	{"dispatch/dispatch.c", "n++, to += a[5]", "n++, to += a[3]"},
	{"dispatch/operands.h", "end > TCM_BYTES || (rule & IN_DDR)", "rule & IN_DDR"},
	{"dispatch/operations.c", "((n - 1) * table_row(K, in_bytes)) + table(K, in_bytes)", "table(K, in_bytes)"},
	// Shards: another's buffers, sums, vector of sums, units, rows; with several rows of activations,
	// results that lie as if a shard were the matrix, and units of another row.
	{"dispatch/dispatch.c", "(uint32_t)shard * GEMV_BUFFERS * tile", "0 * tile"},
	{"dispatch/dispatch.c", "MOVED(12, 4 * unit * a[3])", "MOVED(12, 4 * unit)"},
	{"kernels/gemv.c", "(uint32_t)row * g->stride", "(uint32_t)(row * g->M) * 4"},
	{"dispatch/dispatch.c", "from = begin > first ? begin - first : 0", "from = begin"},
	{"dispatch/shards.h", "TABLES_UNIT = 1024", "TABLES_UNIT = 256"},
	{"dispatch/shards.h", "(i < more ? i : more)", "0 * more"},
	{"kernels/softmax.c", "if (i > first)", "if (i)"},
	{"kernels/dequant.c", "const uint32_t stride = (uint32_t)d->row", "const uint32_t stride = (uint32_t)d->n"},
}

// seededThreads are faults that emulator/mistakes.c shows, and which of its cases: of the pool, a missing barrier, and turns
// that are the same for all; of the tile unit's queue and DMA's ring, no wait for a product, and none for room;
// of the tile unit's instructions, boundaries that one operand alone is cut at.
var seededThreads = []struct{ file, from, to, shows string }{
	{"device/workers.c", "left = changed(&pool.left, left)", "left = 0 * changed(&pool.left, ~0u)", "z"},
	{"device/workers.c", "if (me >= (turn & (TURN - 1))) continue;", "", "z"},
	{"device/queue.c", "while ((int32_t)(number - done) > 0)", "while (number - done > 99)", "N"},
	{"device/queue.c", "wait(n + 1 - RING);", "", "N"},
	{"device/queue.c", "if (locked) tile_mul(t);", "if (locked) platform_unlock_tiles(), tile_mul(t), platform_lock_tiles();", "N"},
	{"device/queue.c", "platform_lock_tiles() : platform_unlock_tiles()", "platform_lock_tiles() : (void)0", "N"},
	{"kernels/dma.c", "r->pushed - r->ended == DMA_RING", "!r", "D"},
	{"device/hmx.c", "within(act, TILE_BITS,", "within(act ? wgt : act, bits,", "V"},
	{"device/hmx.c", "within(wgt, bits, k <", "within(wgt ? act : wgt, bits, k <", "V"},
}

// seededGathers are gathers that are read before they are waited for, which the strict program shows.
var seededGathers = []struct{ file, from, to string }{
	{"kernels/softmax.c", "V e = gathered(s + t * 16);", "V e = s[t * 16];"},
	{"kernels/softmax.c", "const V decay = gathered(p->diag);", "const V decay = *p->diag;"},
	{"kernels/cap.c", "gathered(s + i), signs[i]", "s[i], signs[i]"},
}

// seededMappings are operands across the end of a mapping, or looked for in another one: of memory with several.
var seededMappings = []struct{ file, from, to string }{
	{"dispatch/operands.h", "(!(rule & (MAPPED | IN_TCM)) && (from ^ (uint32_t)(end - 1)) >> MAPPING_BITS) || ", ""},
	{"dispatch/operands.h", "end > o->size || ", ""},
	{"dispatch/dispatch.h", "m->base[offset >> MAPPING_BITS]", "m->base[0]"},
	{"dispatch/dispatch.c", "(uint64_t)begin + (1u << MAPPING_BITS)", "o->size"},
	{"dispatch/dispatch.c", "m->base[where.from >> MAPPING_BITS]", "m->base[0]"},
}

// seededLines are lines of the DSP's caches that are not forgotten, or not written back. Parts end a line early, begin a
// line late, or are left out.
var seededLines = []struct{ file, from, to string }{
	{"device/lines.c", "at < end; at += CACHE_LINE", "at + CACHE_LINE < end; at += CACHE_LINE"},
	{"device/lines.c", "& ~(uint32_t)(CACHE_LINE - 1), end", "+ CACHE_LINE, end"},
	{"device/lines.c", "if (all > MOST) platform_lines(drop);", "if (all > MOST) (void)drop;"},
	{"device/lines.c", "platform_line((void *)(uintptr_t)at, drop)", "platform_line((void *)(uintptr_t)at, 0)"},
	{"device/lines.c", "+ b->offset;", "+ b->offset + CACHE_LINE;"},
	{"device/lines.c", "(!(b[i].flags & INVALIDATE_SENDER)) continue;", "(b[i].flags == FLUSH_SENDER || kept) continue;"},
	{"device/skel.c", "lines_write_back(touched, n, 1);", ""},
	{"device/skel.c", "lines_write_back(touched, n, 0);", ""},
}

// seededQfloat are faults of what chips round, which V75's program shows.
var seededQfloat = []struct{ file, from, to string }{
	{"kernels/sf.h", "splat_w(150), e", "splat_w(149), e"},
	{"kernels/sf.h", "Q6_Vw_vadd_VwVw(rest, Q6_V_vand_VV(n, splat_w(1)))", "rest"},
	{"kernels/sf.h", "defined(LUTRA_ARCH) && LUTRA_ARCH < 79\nINLINE V round_to_int", "0\nINLINE V round_to_int"},
	{"kernels/hf.h", "splat_h(0x3c00)), y", "splat_h(0x3800)), y"},
	{"kernels/hf.h", "qf32_add(HI(x), HI(y)), qf32_add(LO(x), LO(y))", "qf32_add(LO(x), LO(y)), qf32_add(HI(x), HI(y))"},
	{"emulator/qfloat.h", "rest <= (3ll << BEHIND) / 2", "rest < (3ll << BEHIND) / 2"},
	{"emulator/qfloat.h", "rest <= quarter / 2", "rest < quarter / 2"},
	{"emulator/qfloat.h", "rest == half && (kept & 1)", "rest == half"},
	{"emulator/qfloat.h", "(v & ((1ll << places) - 1)) != 0", "0"},
}

// An exercise is a little of everything: packets, and the memory that they begin with.
type exercise struct {
	packets []device.Packet
	memory  []byte
	wants   sync.Map // by operations: see want
}

func newExercise() *exercise {
	memory := make([]byte, testMemory)
	r := rand.New(rand.NewPCG(10, 1))
	a := &arena{memory, 1 << 17}
	const m, k, table = 512, 512, 1 << 16 // four strips: of three shards one has two tiles of one, or the last tile fewer
	var packets []device.Packet
	add := func(op device.Op, args ...uint32) { packets = append(packets, packet(op, args...)) }
	const rows = 7 // of activations: four, two and one share codes
	x := a.int16s(extreme(r, rows*k))
	tables := a.alloc(rows*device.TableStride(k, false), 128)
	add(device.OpPrecompute, tables, rows, x, k)
	const long = 2560 // columns of three units of tables a row: shards are of one row, or of both
	for form := range uint32(2) {
		add(device.OpPrecompute, a.alloc(rows*device.TableStride(long, form == 1), 128), rows, a.int16s(extreme(r, rows*long)), long, form)
	}
	behind := &arena{memory, device.TCMBytes}
	codes, sc, of := behind.bytes(randomBytes(r, m*k/2), 128), behind.int16s(scales(r, m*k/32, false)), behind.int16s(scales(r, m*k/32, true))
	v := randomHalves(r, 16)
	v[0], v[1], v[2] = 0x8000, 0x7bff, 0x0001
	values := a.uint16s(v)
	for _, bits := range []uint32{1, 2, 4} {
		for _, group := range []uint32{32, 64, 128, k} {
			packets = append(packets, multiplication(a.alloc(rows*4*m, 128), codes, tables, rows, sc, of, m, k, bits, group, 2, 9))
			more := group / 128 % 2 // of one group halves of two strips
			add(device.OpDequant, a.alloc(8*8*2048, 128), codes, sc, of, values, 0, 4*more, k/64/(1+more), k, bits, group, 0, more)
		}
	}
	packets = append(packets, followed(r, behind, codes, tables, rows)...)
	split, listed := a.alloc(rows*device.TableStride(k, true), 128), a.bytes(randomBytes(r, 16), 128)
	add(device.OpPrecompute, split, rows, x, k/2, 1)
	for _, form := range []struct{ bits, one, b uint32 }{{8, 1, layout.ByteZero}, {4, 0, listed}} {
		for _, group := range []uint32{32, 64, 128} {
			packets = append(packets, multiplication(a.alloc(rows*4*m, 128), codes, split, rows, sc, of, m, k/2, form.bits, group, form.one, form.b))
			add(device.OpDequant, behind.alloc(8*4*2048, 128), codes, sc, of, values, 0, 0, k/2/64, k/2, form.bits, group, 1)
		}
	}
	groups := randomBytes(r, 8*layout.SuperGroupBytes)
	for i := range groups {
		groups[i] &^= 0x40
	}
	add(device.OpVLUT16, a.alloc(8*512, 128), a.bytes(groups, 16), 8, values)
	add(device.OpExpTable, table)
	const keys = 290
	s := make([]uint16, keys*1024)
	for i := range 3 * 1024 {
		s[i] = layout.F16(-float32(math.Abs(r.NormFloat64())))
	}
	states := behind.alloc(32*device.StateBytes, 128) // in DDR, as the host's are
	for i := range 32 {
		st := device.View[uint32](memory, states+uint32(i*device.StateBytes), 2)
		st[ref.StateMax], st[ref.StateValid] = 0xfbff, uint32(i*31)
		if i%3 == 0 {
			st[ref.StateMax] = uint32(layout.F16(-r.Float32())) // and all keys: their sums are beyond a word
			st[ref.StateValid] = 1 << 20
		}
	}
	add(device.OpSoftmax, a.uint16s(s), table, states, a.alloc(2048, 128), 1, keys)

	caps := a.alloc(device.ExpTableBytes, device.ExpTableBytes)
	copy(device.View[uint16](memory, caps, 1<<15), randomHalves(r, 1<<15))
	add(device.OpSoftCap, a.uint16s(randomHalves(r, 40*1024)), caps, 40)

	pieces, list := behind.bytes(randomBytes(r, 4096), 128), behind.alloc(128, 128)
	copy(device.View[uint32](memory, list, 3), []uint32{pieces + 1024, pieces, pieces + 128})
	add(device.OpCollect, a.alloc(3*512, 128), list, 3, 256, 128, 512)

	// Three strips through the same buffers, the next one unpacked before the results of the last leave: each packet waits for
	// what the one before it does, or an older one.
	const strip, wide = 128 * k / 4, 2 // columns of tiles
	rowsOf, packed, made := behind.uint16s(randomHalves(r, wide*k*32)), a.alloc(strip, 128), a.alloc(4*k/32*2048, 2048)
	act, out, columns := a.alloc(wide*k*64, 2048), a.alloc(4*wide*2048, 2048), a.alloc(device.ColumnsBytes, device.ColumnsBytes)
	store := func() { add(device.OpCopy, behind.alloc(4*wide*2048, 128), out, 4*wide*2048) }
	for i := range uint32(3) {
		add(device.OpCopy, packed, codes+i*strip, strip)
		if i == 0 {
			add(device.OpCopy, act, rowsOf, wide*k*64)
		}
		add(device.OpDequant, made, packed, 0, 0, values, 0, 0, k/64, k, 2, k)
		if i > 0 {
			store()
		}
		add(device.OpTileMul, out, made, act, k/32, 0, 0, 0, 4, wide, 0x2c00, columns)
	}
	store()

	// Tiles of bytes, of each number of bits, and products of them with more columns than are multiplied at once: a
	// strip in the buffer of the one before.
	lanes, bytes64, planes := a.alloc(wide*k*32, 2048), a.alloc(k*128, 2048), a.alloc(2*wide*device.BytePlanes*2048, 2048)
	scales24 := a.alloc(device.ByteColumnsBytes, device.ByteColumnsBytes)
	for _, bits := range []uint32{1, 2, 4} {
		add(device.OpCopy, packed, codes, 128*k/8*min(bits, 2))
		add(device.OpByteTiles, bytes64, packed, k/64/bits*min(bits, 2), bits)
		add(device.OpCopy, lanes, behind.bytes(randomBytes(r, wide*k*32), 128), wide*k*32)
		add(device.OpTileMulBytes, planes, bytes64, lanes, k/32, 2, wide, scales24)
		add(device.OpCopy, behind.alloc(2*wide*device.BytePlanes*2048, 128), planes, 2*wide*device.BytePlanes*2048)
	}

	packets = append(packets, rowOperations(r, behind, 2, 2, 64, 1)...)
	packets = append(packets, rowOperations(r, a, 3, 1, 192, 2)...)
	add(device.OpCopy, a.alloc(1024, 128), pieces, 1024) // nothing waits behind it

	if a.next > scratchAt {
		panic("operands lie in scratch")
	}
	return &exercise{packets: packets, memory: memory}
}

// followed are products by lookups, of k = 512 columns, before each of which stands another whose end its first tiles may
// come beside: where nothing keeps them, where codes are copied, by a packet between them or by one before both, and
// where a copy has been where the tiles go.
func followed(r *rand.Rand, behind *arena, codes, tables uint32, rows int) []device.Packet {
	const m, k, size = 512, 512, 512 * 512 / 4
	product := func(codes uint32) device.Packet {
		return multiplication(behind.alloc(rows*4*m, 128), codes, tables, uint32(rows), 0, 0, m, k, 2, k, 1, 1)
	}
	apart := func(p device.Packet) device.Packet {
		p.Args[12] += 1 << 21
		return p
	}
	fresh := func() uint32 { return behind.bytes(randomBytes(r, size), 128) }
	other, second, third := fresh(), fresh(), fresh()
	copied := func(to uint32) device.Packet { return packet(device.OpCopy, to, other, size) }
	first, fourth, sums := product(codes), apart(product(other)), uint32(4*m*rows+device.Page-1)&^(device.Page-1)
	return []device.Packet{first, copied(behind.alloc(size, 128)), apart(product(other)),
		first, copied(second), apart(product(second)),
		copied(third), first, apart(product(third)),
		first, copied(fourth.Args[12] + sums), fourth}
}

// some are the packets of ops, or all.
func (e *exercise) some(ops []device.Op) []device.Packet {
	if ops == nil {
		return e.packets
	}
	return slices.DeleteFunc(slices.Clone(e.packets), func(p device.Packet) bool { return !slices.Contains(ops, p.Op) })
}

// want is the memory that the packets of ops leave, made once.
func (e *exercise) want(ops []device.Op) []byte {
	once, _ := e.wants.LoadOrStore(fmt.Sprint(ops), sync.OnceValue(func() []byte {
		want := bytes.Clone(e.memory)
		for _, p := range e.some(ops) {
			device.Define(want, p)
		}
		return want
	}))
	return once.(func() []byte)()
}

// run has d compute the packets of ops, and says whether all of it is as defined; of no ops all packets,
// and others that it must refuse.
func (e *exercise) run(t *testing.T, d *Device, ops ...device.Op) error {
	copy(d.Memory(), e.memory)
	packets, want := e.some(ops), bytes.Clone(e.want(ops))
	if _, err := d.Run(t.Context(), packets); err != nil {
		return err
	}
	for _, p := range packets {
		for _, s := range drawn.Scratch(p) {
			clear(d.Memory()[s[0]:][:s[1]])
			clear(want[s[0]:][:s[1]])
		}
	}
	if !bytes.Equal(d.Memory(), want) {
		return errors.New("results differ")
	}
	if ops != nil {
		return nil
	}
	with := func(op device.Op, arg int, v uint32) device.Packet {
		p := e.packets[slices.IndexFunc(e.packets, func(p device.Packet) bool { return p.Op == op })]
		p.Args[arg] = v
		return p
	}
	collect := with(device.OpCollect, 3, 256)
	pieces := device.View[uint32](d.Memory(), collect.Args[1], 3)
	pieces[1] = 256 // in TCM
	// Tiles that are on their way where a packet before their product is refused, for a piece in TCM.
	products := followed(rand.New(rand.NewPCG(10, 3)), &arena{make([]byte, testMemory), device.TCMBytes}, device.TCMBytes, 1<<17, 1)
	var refused *device.PacketError
	between := collect
	between.Args[0] = 0
	if _, err := d.Run(t.Context(), []device.Packet{products[0], between, products[2]}); !errors.As(err, &refused) || refused.Index != 1 {
		return fmt.Errorf("a collection of what is in TCM between products: %v", err)
	}
	// That piece; scores and tables in DDR, and those of which a second row's reach beyond TCM.
	return refuses(t, d, collect, with(device.OpSoftmax, 0, ddr), with(device.OpSoftCap, 1, ddr), with(device.OpGEMV, 2, ddr),
		with(device.OpGEMV, 2, ddr-uint32(device.TableStride(512, false))))
}

// refuses says whether packets, and others that are made at random, are refused as they should be.
func refuses(t *testing.T, d *Device, bad ...device.Packet) error {
	r := rand.New(rand.NewPCG(10, 2))
	for i := range 2000 {
		p := mutated(r)
		if i < len(bad) {
			p = bad[i]
		}
		status := p.Check(d.Memory())
		if status == device.StatusOK || p.Op == device.OpTileMul {
			continue
		}
		var refused *device.PacketError
		if _, err := d.Run(t.Context(), []device.Packet{p}); !errors.As(err, &refused) || refused.Status != status {
			return errors.New("a bad packet is not refused as it should be")
		}
	}
	return nil
}

func TestTheProgramPassesItsExercise(t *testing.T) {
	workers := []int{1, 2, 3, 4, 6}
	if !sweep.All(t) {
		workers = []int{3}
	}
	e := newExercise()
	for i, n := range workers {
		if err := e.run(t, open(t, Options{KeepTCM: true, Workers: n, Seed: uint32(i + 1)})); err != nil {
			t.Errorf("%d workers: %v", n, err)
		}
	}
}

func TestAWrongBitOfPackedWeightsIsNoticed(t *testing.T) {
	d := open(t, Options{KeepTCM: true})
	r := rand.New(rand.NewPCG(11, 1))
	const m, k = 128, 256
	a := &arena{d.Memory(), device.Align}
	x := a.int16s(random16(r, k, device.MaxActivation))
	tables, y := a.alloc(device.TableStride(k, false), 128), a.alloc(4*m, 128)
	behind := &arena{d.Memory(), device.TCMBytes}
	codes, sc := behind.bytes(randomBytes(r, m*k/4), 128), behind.int16s(scales(r, m*k/32, false))
	packets := []device.Packet{packet(device.OpPrecompute, tables, 1, x, k),
		multiplication(y, codes, tables, 1, sc, 0, m, k, 2, 32, 1, 1)}
	both(t, d, packets...)
	right := bytes.Clone(d.Memory()[y:][:4*m])
	for range 50 {
		at, bit := codes+uint32(r.IntN(m*k/4)), byte(1)<<r.IntN(8)
		d.Memory()[at] ^= bit
		if _, err := d.Run(t.Context(), packets); err != nil {
			t.Fatal(err)
		}
		differ := 0
		for i, b := range d.Memory()[y:][:4*m] {
			if b != right[i] {
				differ |= 1 << (i / 4 % 32)
			}
		}
		// A code of a small scale may round away; none of these do.
		if differ == 0 {
			t.Errorf("bit %#x at %#x makes no difference", bit, at)
		}
		d.Memory()[at] ^= bit
	}
}
