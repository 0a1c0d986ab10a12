// The float instructions of chips: qfloat, for V73 and V75 (LUTRA_ARCH below 79) and for V79 and V81. None is IEEE's
// of V68, which V79 no longer has. Each number is converted as soon as it is made.
//
// V73, V75: a significand of 24 bits with its sign, behind which a bit stands that is always one, so zero has none and of four
// float32 in a row one has no equal. A sum is wrong by a unit of the last place of the larger operand, however small
// the sum.
// V79, V81: four bits behind say how the number is rounded, and the conversion rounds as IEEE does. Memory does not have these
// bits, and clang 19 does not know them: it would store a number between two instructions, so they are one piece.
#pragma once
#include "hvx.h"

#if defined(LUTRA_ARCH) && defined(LUTRA_STANDIN) // wrong numbers, but an instruction for each of V75's
INLINE V qf32_mul_sf(V a, V b) { return Q6_Vw_vmpyie_VwVuh(a, b); }
INLINE V qf32_add_sf(V a, V b) { return Q6_Vw_vadd_VwVw(a, b); }
INLINE V qf32_add(V a, V b) { return Q6_Vw_vadd_VwVw(a, b); }
INLINE W qf32_mul_hf(V a, V b) { return Q6_Ww_vmpy_VhVh(a, b); }
INLINE V sf_of_qf32(V a) { return Q6_Vw_vnormamt_Vw(a); }
INLINE V hf_of_qf32(W a) { return Q6_Vh_vshuffe_VhVh(HI(a), LO(a)); }
#elif defined(LUTRA_ARCH) && defined(LUTRA_EMULATED)
#if LUTRA_ARCH >= 79
#error "the emulator's own arithmetic is V79's"
#endif
#include "../emulator/qfloat.h"
#elif defined(LUTRA_ARCH) && LUTRA_ARCH >= 79
#define CONVERTED(name, op, qf, type)                                                                             \
  INLINE V name(V a, V b) {                                                                                       \
    V r;                                                                                                          \
    __asm__("{ %0." qf " = " op "(%1." type ",%2." type ") }\n{ %0." type " = %0." qf " }" : "=v"(r) : "v"(a), "v"(b)); \
    return r;                                                                                                     \
  }
#elif defined(LUTRA_ARCH)
INLINE V qf32_mul_sf(V a, V b) { return Q6_Vqf32_vmpy_VsfVsf(a, b); }
INLINE V qf32_add_sf(V a, V b) { return Q6_Vqf32_vadd_VsfVsf(a, b); }
INLINE V qf32_add(V a, V b) { return Q6_Vqf32_vadd_Vqf32Vqf32(a, b); }
INLINE W qf32_mul_hf(V a, V b) { return Q6_Wqf32_vmpy_VhfVhf(a, b); } // even lanes in the low vector
INLINE V sf_of_qf32(V a) { return Q6_Vsf_equals_Vqf32(a); }
INLINE V hf_of_qf32(W a) { return Q6_Vhf_equals_Wqf32(a); }
#endif
