// Instructions Go's arm64 assembler has no name for. Register arguments are
// numbers, in the order of the Arm manual: destination first. A name says the
// arrangement where the instruction has several.

#define RRR(op, d, n, m) WORD $(op | (m)<<16 | (n)<<5 | (d))
#define RR(op, d, n) WORD $(op | (n)<<5 | (d))
#define RRL(op, d, n, m, i) WORD $(op | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d))

// d.4S[i] += Σ n.16B[4i..] · m.4B[lane], signed (FEAT_DotProd)
#define SDOT(d, n, m, lane) RRL(0x4f80e000, d, n, m, lane)

// d.4S += the products of two rows n.8B and two rows m.8B, signed (FEAT_I8MM):
// n0·m0, n0·m1, n1·m0, n1·m1
#define SMMLA(d, n, m) RRR(0x4e80a400, d, n, m)

// d = the 16 bytes at base + index, general registers both
#define LDRQ(d, base, index) RRR(0x3ce06800, d, base, index)

// Bytes.
#define UMULL(d, n, m) RRR(0x2e20c000, d, n, m)
#define UMULL2(d, n, m) RRR(0x6e20c000, d, n, m)
#define MLS(d, n, m) RRR(0x6e209400, d, n, m)
#define UZP2(d, n, m) RRR(0x4e005800, d, n, m)
#define USHR(d, n, bits) RR(0x6f080400 | (8-(bits))<<16, d, n)
#define SHL(d, n, bits) RR(0x4f085400 | (bits)<<16, d, n)
#define TBL(d, table, m) RRR(0x4e000000, d, table, m)
#define TBL2(d, table, m) RRR(0x4e002000, d, table, m)
#define TBL3(d, table, m) RRR(0x4e004000, d, table, m)
#define AND_B16(d, n, m) RRR(0x4e201c00, d, n, m)
#define ORR_B16(d, n, m) RRR(0x4ea01c00, d, n, m)
#define ORN_B16(d, n, m) RRR(0x4ee01c00, d, n, m)
#define SUB_B16(d, n, m) RRR(0x6e208400, d, n, m)
#define USHL_B16(d, n, m) RRR(0x6e204400, d, n, m)

// d.16B[i] = n.16B[i] & m.16B[i] != 0 ? -1 : 0
#define CMTST(d, n, m) RRR(0x4e208c00, d, n, m)

// Widening and narrowing.
#define UXTL_H8(d, n) RR(0x2f08a400, d, n)
#define UXTL2_H8(d, n) RR(0x6f08a400, d, n)
#define UXTL_S4(d, n) RR(0x2f10a400, d, n)
#define UXTL2_S4(d, n) RR(0x6f10a400, d, n)
#define SXTL_H8(d, n) RR(0x0f08a400, d, n)
#define SXTL2_H8(d, n) RR(0x4f08a400, d, n)
#define SXTL_S4(d, n) RR(0x0f10a400, d, n)
#define SXTL2_S4(d, n) RR(0x4f10a400, d, n)
#define SADDW(d, n, m) RRR(0x0e601000, d, n, m)
#define SADDW2(d, n, m) RRR(0x4e601000, d, n, m)
#define SADDLP_H8(d, n) RR(0x4e202800, d, n)
#define SADALP_S4(d, n) RR(0x4e606800, d, n)
#define ADDV(d, n) RR(0x4eb1b800, d, n)
#define XTN(d, n) RR(0x0e612800, d, n)
#define XTN2(d, n) RR(0x4e612800, d, n)
#define FCVTL(d, n) RR(0x0e217800, d, n)
#define FCVTL2(d, n) RR(0x4e217800, d, n)
#define FCVTN(d, n) RR(0x0e216800, d, n)
#define FCVTN2(d, n) RR(0x4e216800, d, n)
#define FCVTL_D2(d, n) RR(0x0e617800, d, n)
#define FCVTL2_D2(d, n) RR(0x4e617800, d, n)

// Words and pairs of words.
#define ZIP1_S4(d, n, m) RRR(0x4e803800, d, n, m)
#define ZIP2_S4(d, n, m) RRR(0x4e807800, d, n, m)
#define UZP1_S4(d, n, m) RRR(0x4e801800, d, n, m)
#define UZP2_S4(d, n, m) RRR(0x4e805800, d, n, m)
#define ZIP1_D2(d, n, m) RRR(0x4ec03800, d, n, m)
#define ZIP2_D2(d, n, m) RRR(0x4ec07800, d, n, m)

// Four int32.
#define MUL(d, n, m) RRR(0x4ea09c00, d, n, m)
#define MLA(d, n, m) RRR(0x4ea09400, d, n, m)
#define ADDI(d, n, m) RRR(0x4ea08400, d, n, m)
#define SUBI(d, n, m) RRR(0x6ea08400, d, n, m)
#define SSHRI(d, n, bits) RR(0x4f000400 | (64-(bits))<<16, d, n)
#define SSRAI(d, n, bits) RR(0x4f001400 | (64-(bits))<<16, d, n)
#define SHLI(d, n, bits) RR(0x4f005400 | (32+(bits))<<16, d, n)
#define BIC(d, n, m) RRR(0x4e601c00, d, n, m)

// Four float32.
#define SCVTF(d, n) RR(0x4e21d800, d, n)
#define FADD(d, n, m) RRR(0x4e20d400, d, n, m)
#define FSUB(d, n, m) RRR(0x4ea0d400, d, n, m)
#define FMUL(d, n, m) RRR(0x6e20dc00, d, n, m)
#define FMLA(d, n, m) RRR(0x4e20cc00, d, n, m)
#define FMLS(d, n, m) RRR(0x4ea0cc00, d, n, m)
#define FMULL(d, n, m, lane) RRL(0x4f809000, d, n, m, lane)
#define FMLAL(d, n, m, lane) RRL(0x4f801000, d, n, m, lane)
#define FMLSL(d, n, m, lane) RRL(0x4f805000, d, n, m, lane)
#define FADDP(d, n, m) RRR(0x6e20d400, d, n, m)
#define FMAXNM(d, n, m) RRR(0x4e20c400, d, n, m)
#define FMAX(d, n, m) RRR(0x4e20f400, d, n, m)
#define FMAXNMV(d, n) RR(0x6e30c800, d, n)
#define FMIN(d, n, m) RRR(0x4ea0f400, d, n, m)
#define FDIV(d, n, m) RRR(0x6e20fc00, d, n, m)
#define FNEG(d, n) RR(0x6ea0f800, d, n)
#define FRINTN(d, n) RR(0x4e218800, d, n)
#define FCVTNS(d, n) RR(0x4e21a800, d, n)
#define FCMGT(d, n, m) RRR(0x6ea0e400, d, n, m)
#define FCMGE(d, n, m) RRR(0x6e20e400, d, n, m)
#define FABS(d, n) RR(0x4ea0f800, d, n)
#define UMAXV(d, n) RR(0x6eb0a800, d, n)

// Two float64.
#define FADD_D2(d, n, m) RRR(0x4e60d400, d, n, m)
#define FMLA_D2(d, n, m) RRR(0x4e60cc00, d, n, m)
