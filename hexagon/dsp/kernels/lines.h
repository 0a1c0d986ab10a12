// Lookups of two or four rows of activations, which share what a line of codes takes beside them: its load,
// and the shift of its high nibbles. That is 5 packets a line for two rows and 9 for four, where each by
// itself takes 3. They are written as packets: a compiler that has loads early runs out of registers, and
// has none of them for one packet alone (.tmp), beside which a lookup and an addition have room.
//
// A step is a row's part of a line: two packets, of a lookup and of half of the additions of the step
// before it. Even rows have v19:16, odd ones v23:20; v24 are codes, v25 their high nibbles.
#pragma once
#include "hvx.h"

// Sums of the strip's rows: vector i, word j is row 4j+i.
struct sums {
  W a01, a23;
};

#define ADDED(sums, x, y) "%[" sums "].w+=vadd(" x ".h," y ".h)\n"
#define LOOKED_UP(x, codes, table, at, select) "v28.tmp=vmem(%[" table "]+#" #at ")\n" x ".h=vlut16(" codes ".b,v28.h,%[" select "]):nomatch\n"
#define STEP(x, y, table, at, low, up, first, second) "{" LOOKED_UP(x, "v24", table, at, low) first "}\n{" LOOKED_UP(y, "v25", table, at, up) second "}\n"
#define EVEN(table, at, low, up, before) STEP("v17:16", "v19:18", table, at, low, up, ADDED(before "01", "v20", "v22"), ADDED(before "23", "v21", "v23"))
#define ODD(table, at, low, up, before) STEP("v21:20", "v23:22", table, at, low, up, ADDED(before "01", "v16", "v18"), ADDED(before "23", "v17", "v19"))
#define CODES(w, line, more) "{v24.cur=vmem(%[" w "]+#" #line ")\nv25.ub=vlsr(v24.ub,%[four])\n" more "}\n"

// A line of rows a to b, or a to d, whose tables lie at; then comes the next one.
#define LINE_2(low, up, at) EVEN("t0", at, low, up, "b") ODD("t1", at, low, up, "a")
#define LINE_4(low, up, at) EVEN("t0", at, low, up, "d") ODD("t1", at, low, up, "a") EVEN("t2", at, low, up, "b") ODD("t3", at, low, up, "c")

// The lines of one tile, of both of a block, of two blocks, which read the same tables, and of all four of 256
// columns. The first finds zeros to add; behind the last come its own additions.
#define FIRST CODES("w0", 0, "v20=vxor(v20,v20)\nv21=vxor(v21,v21)") "{v22=vxor(v22,v22)\nv23=vxor(v23,v23)}\n"
#define LAST(before) "{" ADDED(before "01", "v20", "v22") "}\n{" ADDED(before "23", "v21", "v23") "}\n"
#define TILE_LINES(N, low, up, w, a0, a1, a2, a3, c1, c2, c3) \
  LINE_##N(low, up, a0) CODES(w, c1, "") LINE_##N(low, up, a1) CODES(w, c2, "") LINE_##N(low, up, a2) CODES(w, c3, "") LINE_##N(low, up, a3)
#define BLOCK_LINES(N, low, up, w) TILE_LINES(N, low, up, w, -8, -7, -6, -5, 1, 2, 3) CODES(w, 4, "") TILE_LINES(N, low, up, w, 0, 1, 2, 3, 5, 6, 7)
#define OTHER_LINES(N, low, up, w) TILE_LINES(N, low, up, w, -4, -3, -2, -1, 1, 2, 3) CODES(w, 4, "") TILE_LINES(N, low, up, w, 4, 5, 6, 7, 5, 6, 7)
#define LINES_4(N) TILE_LINES(N, "s0", "s2", "w0", -8, -7, -6, -5, 1, 2, 3)
#define LINES_8(N) BLOCK_LINES(N, "s0", "s2", "w0")
#define LINES_16(N) LINES_8(N) CODES("w1", 0, "") BLOCK_LINES(N, "s1", "s3", "w1")
#define LINES_32(N) LINES_16(N) CODES("w2", 0, "") OTHER_LINES(N, "s0", "s2", "w2") CODES("w3", 0, "") OTHER_LINES(N, "s1", "s3", "w3")

#define SUMS(name, sums) [name##01] "+v"((sums).a01), [name##23] "+v"((sums).a23)
#define READ [w0] "r"(w), [w1] "r"(w + next), [w2] "r"(w + 2 * next), [w3] "r"(w + 3 * next), [s0] "r"(s0), [s1] "r"(s1), [s2] "r"(s2), [s3] "r"(s3), [four] "r"(4), [t0] "r"(t[0] + 8), [t1] "r"(t[1] + 8)
#define WRITTEN "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v28", "memory"
#define SELECTS register int s0 __asm__("r0") = select, s1 __asm__("r1") = 1, s2 __asm__("r2") = select | 2, s3 __asm__("r3") = 3; // VLUT16 has no others
#define LINES(N)                                                                                                    \
  INLINE void two_##N(struct sums *a, const V *w, int next, const V *const *t, int select) {                        \
    SELECTS                                                                                                         \
    __asm__(FIRST LINES_##N(2) LAST("b") : SUMS(a, a[0]), SUMS(b, a[1]) : READ : WRITTEN);                          \
  }                                                                                                                 \
  INLINE void four_##N(struct sums *a, const V *w, int next, const V *const *t, int select) {                       \
    SELECTS                                                                                                         \
    __asm__(FIRST LINES_##N(4) LAST("d")                                                                            \
            : SUMS(a, a[0]), SUMS(b, a[1]), SUMS(c, a[2]), SUMS(d, a[3])                                            \
            : READ, [t2] "r"(t[2] + 8), [t3] "r"(t[3] + 8)                                                          \
            : WRITTEN);                                                                                             \
  }
LINES(4) LINES(8) LINES(16) LINES(32)
