/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - the device code (PTX text), which the driver compiles; kernels.h
 * describes each kernel.
 */
#include "nccl/kernels.h"

#include <stddef.h>

/* clang-format off */

#define TEXT_(N)          #N
#define TEXT(N)           TEXT_(N)
#define KERNEL_RING_MASK  "4095"
#define KERNEL_FILL_BYTES TEXT(KERNEL_FILL_ROOM)

#define LINES_HEAD ".version 6.0\n.target sm_50\n.address_size 64\n"

/* %at: first index of this thread; %step: threads of the grid */
#define PLACE                                                                  \
    ".reg .b32 %ia, %ib, %ic;\n.reg .b64 %at, %step;\n"                        \
    "mov.u32 %ia, %ctaid.x;\nmov.u32 %ib, %ntid.x;\nmov.u32 %ic, %tid.x;\n"    \
    "mul.wide.u32 %at, %ia, %ib;\n"                                            \
    "cvt.u64.u32 %step, %ic;\nadd.u64 %at, %at, %step;\n"                      \
    "mov.u32 %ia, %nctaid.x;\nmul.wide.u32 %step, %ia, %ib;\n"

/* ---- one number: from the low bits of %w0 (64 bits: %z0) to %x and back to %b - */

#define FROM_F16  "cvt.u16.u32 %h, %w0;\ncvt.f32.f16 %x, %h;\n"
#define FROM_BF16 "shl.b32 %b, %w0, 16;\nmov.b32 %x, %b;\n"
#define FROM_F32  "mov.b32 %x, %w0;\n"
#define FROM_F64  "mov.b64 %x, %z0;\n"
/* The upper byte of a float16. */
#define FROM_E5M2                                                              \
    "and.b32 %b, %w0, 255;\nshl.b32 %b, %b, 8;\ncvt.u16.u32 %h, %b;\n"         \
    "cvt.f32.f16 %x, %h;\n"
/* Shifted into a float16, the exponent's bias is 8 too large. */
#define FROM_E4M3                                                              \
    "and.b32 %c, %w0, 128;\nshl.b32 %c, %c, 8;\n"                              \
    "and.b32 %b, %w0, 127;\nsetp.eq.u32 %q, %b, 127;\nshl.b32 %b, %b, 7;\n"    \
    "or.b32 %b, %b, %c;\ncvt.u16.u32 %h, %b;\ncvt.f32.f16 %x, %h;\n"           \
    "mul.f32 %x, %x, 0f43800000;\n@%q mov.f32 %x, 0f7FFFFFFF;\n"
#define FROM_B32 "mov.b32 %x, %w0;\n"
#define FROM_B64 "mov.b64 %x, %z0;\n"

#define TO_F16  "cvt.rn.f16.f32 %h, %x;\ncvt.u32.u16 %b, %h;\n"
#define TO_BF16                                                                \
    "mov.b32 %b, %x;\nsetp.nan.f32 %q, %x, %x;\nshr.u32 %c, %b, 16;\n"         \
    "and.b32 %c, %c, 1;\nadd.u32 %b, %b, %c;\nadd.u32 %b, %b, 32767;\n"        \
    "shr.u32 %b, %b, 16;\n@%q mov.u32 %b, 32767;\n"
#define TO_F32  "mov.b32 %b, %x;\n"
#define TO_F64  "mov.b64 %z0, %x;\n"
/* From a float16, to nearest even; too large values become the largest. */
#define TO_F8(SHIFT, HALF, MOST)                                               \
    "setp.nan.f32 %q, %x, %x;\ncvt.rn.f16.f32 %h, %x;\ncvt.u32.u16 %b, %h;\n"  \
    "shr.u32 %c, %b, 8;\nand.b32 %c, %c, 128;\nand.b32 %b, %b, 32767;\n"       \
    "shr.u32 %e, %b, " SHIFT ";\nand.b32 %e, %e, 1;\nadd.u32 %b, %b, %e;\n"    \
    "add.u32 %b, %b, " HALF ";\nshr.u32 %b, %b, " SHIFT ";\n"                  \
    "min.u32 %b, %b, " MOST ";\n@%q mov.u32 %b, 127;\nor.b32 %b, %b, %c;\n"
#define TO_E5M2 TO_F8("8", "127", "123")
#define TO_E4M3 "mul.f32 %x, %x, 0f3B800000;\n" TO_F8("7", "63", "126")
#define TO_B8   "and.b32 %b, %x, 255;\n"
#define TO_B32  "mov.b32 %b, %x;\n"
#define TO_B64  "mov.b64 %z0, %x;\n"

#define SCRATCH_REGISTERS                                                      \
    ".reg .pred %p, %q;\n.reg .b16 %h;\n"                                      \
    ".reg .b32 %b, %c, %e, %k, %w<16>;\n"                                      \
    ".reg .b64 %a, %dst, %src, %n, %z0, %z1;\n"

/* ---- an operation: its begin, its data, its end -------------------------------- */

/* slot: time at 0, started at 8, released at 12. One thread of each block gets
 * the generation into %g. */
#define OP_BEGIN                                                               \
    "ld.param.u32 %flags, [p_flags];\nld.param.u64 %slot, [p_slot];\n"         \
    "ld.param.u32 %g, [p_gen];\nsetp.ne.u32 %p, %ic, 0;\n@%p bra FILL;\n"      \
    "and.b32 %c, %flags, 1;\nsetp.eq.u32 %p, %c, 0;\n@%p bra FILL;\n"          \
    "mov.u32 %c, %ctaid.x;\nld.param.u64 %a, [p_count];\n"                     \
    "setp.eq.u64 %p, %a, 0;\n@%p bra EAGER;\n"                                 \
    "atom.global.add.u32 %c, [%a], 1;\nmov.u32 %k, %nctaid.x;\n"               \
    "div.u32 %b, %c, %k;\nrem.u32 %c, %c, %k;\nadd.u32 %g, %g, %b;\n"          \
    "add.u32 %g, %g, 1;\nEAGER:\n"                                             \
    "setp.ne.u32 %p, %c, 0;\n@%p bra FILL;\n"                                  \
    "mov.u64 %z0, %globaltimer;\nst.volatile.global.u64 [%slot], %z0;\n"       \
    "membar.sys;\nst.volatile.global.u32 [%slot+8], %g;\n"                     \
    "ld.param.u64 %a, [p_tickets];\nsetp.eq.u64 %p, %a, 0;\n@%p bra FILL;\n"   \
    "membar.sys;\natom.global.add.u32 %c, [%a], 1;\n"                          \
    "ld.param.u64 %a, [p_ring];\nand.b32 %k, %c, " KERNEL_RING_MASK ";\n"      \
    "mad.wide.u32 %a, %k, 8, %a;\nadd.u32 %c, %c, 1;\n"                        \
    "ld.param.u32 %k, [p_index];\ncvt.u64.u32 %z0, %k;\nshl.b64 %z0, %z0, 32;\n" \
    "cvt.u64.u32 %z1, %c;\nor.b64 %z0, %z0, %z1;\n"                            \
    "st.volatile.global.u64 [%a], %z0;\n"

/* Takes the next of the pieces of data. */
#define OP_NEXT                                                                \
    "FILL:\nmov.u32 %piece, 0;\nNEXT:\n"                                       \
    "ld.param.u32 %c, [p_n];\nsetp.ge.u32 %p, %piece, %c;\n@%p bra FILLED;\n"  \
    "mov.u64 %a, p_fill;\nmad.wide.u32 %a, %piece, 48, %a;\n"                  \
    "add.u32 %piece, %piece, 1;\n"                                             \
    "ld.param.u64 %dst, [%a];\nld.param.u64 %src, [%a+8];\n"                   \
    "ld.param.u64 %n, [%a+16];\nld.param.u64 %factor, [%a+24];\n"                 \
    "ld.param.u64 %scalar, [%a+32];\nld.param.u32 %copies, [%a+40];\n"         \
    "ld.param.u32 %power, [%a+44];\nmov.u64 %j, %at;\n"                        \
    "setp.eq.u32 %p, %copies, 0;\n@%p bra SCALE;\n"

/* In units of 16, 4 or 1 bytes, whichever divides both addresses and the
 * length; zeros if there is no source. */
#define COPY_LOOP(NAME, UNIT, GUARD, AFTER, LOAD, STORE)                       \
    NAME ":\n" GUARD                                                           \
    "mad.lo.s64 %a, %j, " UNIT ", %src;\n" LOAD                                \
    "mad.lo.s64 %a, %j, " UNIT ", %dst;\nmov.u64 %to, %dst;\nmov.u32 %k, 0;\n" \
    NAME "_EACH:\n"                                                            \
    "setp.ge.u32 %p, %k, %copies;\n@%p bra " NAME "_NEXT;\n"                   \
    "setp.eq.u64 %q, %to, %src;\n@%q bra " NAME "_SKIP;\n" STORE               \
    NAME "_SKIP:\n"                                                            \
    "add.u64 %a, %a, %n;\nadd.u64 %to, %to, %n;\nadd.u32 %k, %k, 1;\n"         \
    "bra " NAME "_EACH;\n"                                                     \
    NAME "_NEXT:\n" AFTER "bra " NAME ";\n"

#define COPY_ONE "setp.ge.u64 %p, %j, %units;\n@%p bra NEXT;\n"
#define STEP_ONE "add.u64 %j, %j, %step;\n"
/* Four at a time, so that enough of the memory's latency is covered. */
#define COPY_FOUR                                                              \
    "mad.lo.s64 %z1, %step, 3, %j;\nsetp.ge.u64 %p, %z1, %units;\n"            \
    "@%p bra WIDE;\nshl.b64 %stride, %step, 4;\n"
#define STEP_FOUR "mad.lo.s64 %j, %step, 4, %j;\n"
#define LOAD_WIDE(R)                                                           \
    "@%load ld.global.v4.u32 {" R "}, [%z0];\nadd.u64 %z0, %z0, %stride;\n"
#define STORE_WIDE(R)                                                          \
    "st.global.v4.u32 [%z0], {" R "};\nadd.u64 %z0, %z0, %stride;\n"
#define FOUR(F)                                                                \
    "mov.u64 %z0, %a;\n" F("%w0, %w1, %w2, %w3") F("%w4, %w5, %w6, %w7")       \
    F("%w8, %w9, %w10, %w11") F("%w12, %w13, %w14, %w15")
#define ZERO(D) "mov.u32 %w" D ", 0;\n"

#define OP_COPY                                                                \
    ZERO("0") ZERO("1") ZERO("2") ZERO("3") ZERO("4") ZERO("5") ZERO("6")      \
    ZERO("7") ZERO("8") ZERO("9") ZERO("10") ZERO("11") ZERO("12") ZERO("13")  \
    ZERO("14") ZERO("15")                                                      \
    "setp.ne.u64 %load, %src, 0;\n"                                            \
    "or.b64 %z1, %dst, %src;\nor.b64 %z1, %z1, %n;\n"                          \
    "and.b64 %a, %z1, 15;\nsetp.eq.u64 %p, %a, 0;\n"                           \
    "shr.u64 %units, %n, 4;\n@%p bra FOUR;\n"                                  \
    "and.b64 %a, %z1, 3;\nsetp.eq.u64 %p, %a, 0;\n"                            \
    "shr.u64 %units, %n, 2;\n@%p bra WORD;\n"                                  \
    "mov.u64 %units, %n;\n"                                                    \
    COPY_LOOP("BYTE", "1", COPY_ONE, STEP_ONE,                                 \
              "@%load ld.global.u8 %w0, [%a];\n", "st.global.u8 [%a], %w0;\n") \
    COPY_LOOP("WORD", "4", COPY_ONE, STEP_ONE,                                 \
              "@%load ld.global.u32 %w0, [%a];\n",                             \
              "st.global.u32 [%a], %w0;\n")                                    \
    COPY_LOOP("FOUR", "16", COPY_FOUR, STEP_FOUR, FOUR(LOAD_WIDE),             \
              FOUR(STORE_WIDE))                                                \
    COPY_LOOP("WIDE", "16", COPY_ONE, STEP_ONE,                                \
              "@%load ld.global.v4.u32 {%w0, %w1, %w2, %w3}, [%a];\n",         \
              "st.global.v4.u32 [%a], {%w0, %w1, %w2, %w3};\n")

/* %x times %f, or its power; AT makes labels differ. */
#define NUMBER(AT, REG, MUL, FROM, TO)                                         \
    FROM "setp.ne.u32 %p, %power, 0;\n@%p bra POWER" AT ";\n"                  \
    MUL " %x, %x, %f;\nbra DONE" AT ";\nPOWER" AT ":\n"                        \
    "mov." REG " %y, %x;\nmov.u32 %k, 1;\n"                                    \
    "TIMES" AT ":\nsetp.ge.u32 %p, %k, %power;\n@%p bra DONE" AT ";\n"         \
    MUL " %x, %x, %y;\nadd.u32 %k, %k, 1;\nbra TIMES" AT ";\n"                 \
    "DONE" AT ":\n" TO

/* All numbers of 16 bytes, each in its turn in the low bits of %w0. */
#define LOAD_WORDS  "ld.global.v4.u32 {%w0, %w1, %w2, %w3}, [%a];\n"
#define STORE_WORDS "st.global.v4.u32 [%a], {%w0, %w1, %w2, %w3};\n"
#define WORDS(WORD_)                                                           \
    "mov.u32 %w4, 0;\nQUARTER:\n" WORD_                                        \
    "mov.b32 %b, %w0;\nmov.b32 %w0, %w1;\nmov.b32 %w1, %w2;\n"                 \
    "mov.b32 %w2, %w3;\nmov.b32 %w3, %b;\nadd.u32 %w4, %w4, 1;\n"              \
    "setp.lt.u32 %p, %w4, 4;\n@%p bra QUARTER;\n"
#define WORD_OF(BITS, UP, N, NUMBER_)                                          \
    "mov.u32 %w5, 0;\nPART:\n" NUMBER_                                         \
    "shr.u32 %w0, %w0, " BITS ";\nshl.b32 %b, %b, " UP ";\n"                   \
    "or.b32 %w0, %w0, %b;\nadd.u32 %w5, %w5, 1;\n"                             \
    "setp.lt.u32 %p, %w5, " N ";\n@%p bra PART;\n"
#define LOAD_LONGS  "ld.global.v2.u64 {%z0, %z1}, [%a];\n"
#define STORE_LONGS "st.global.v2.u64 [%a], {%z0, %z1};\n"
#define LONGS(NUMBER_)                                                         \
    "mov.u32 %w4, 0;\nHALF:\n" NUMBER_                                         \
    "mov.b64 %to, %z0;\nmov.b64 %z0, %z1;\nmov.b64 %z1, %to;\n"                \
    "add.u32 %w4, %w4, 1;\nsetp.lt.u32 %p, %w4, 2;\n@%p bra HALF;\n"

/* Where both addresses are multiples of 16, 16 bytes at a time, of which those
 * of eight rounds later are fetched into the cache; the rest one by one. */
#define OP_SCALE(LOG, SIZE, FACTOR, SCALAR, LOAD, ALL, STORE, GET_, PUT_)      \
    "SCALE:\n" FACTOR                                                          \
    "setp.eq.u64 %p, %scalar, 0;\n@%p bra SCALED;\n"                           \
    "mov.u64 %a, %scalar;\n" SCALAR                                            \
    "SCALED:\nor.b64 %z0, %dst, %src;\nand.b64 %z0, %z0, 15;\n"                \
    "setp.ne.u64 %p, %z0, 0;\nshr.u64 %units, %n, " LOG ";\n"                  \
    "@%p mov.u64 %units, 0;\n"                                                 \
    "VECTOR:\nsetp.ge.u64 %p, %j, %units;\n@%p bra REST;\n"                    \
    "mad.lo.s64 %to, %step, 8, %j;\nsetp.ge.u64 %p, %to, %units;\n"            \
    "@%p bra NEAR;\nmad.lo.s64 %to, %to, 16, %src;\n"                          \
    "prefetch.global.L2 [%to];\nNEAR:\n"                                       \
    "mad.lo.s64 %a, %j, 16, %src;\n" LOAD ALL                                  \
    "mad.lo.s64 %a, %j, 16, %dst;\n" STORE                                     \
    "add.u64 %j, %j, %step;\nbra VECTOR;\n"                                    \
    "REST:\nshl.b64 %j, %units, " LOG ";\nadd.u64 %j, %j, %at;\n"              \
    "SINGLE:\nsetp.ge.u64 %p, %j, %n;\n@%p bra NEXT;\n"                        \
    "mad.lo.s64 %a, %j, " SIZE ", %src;\n" GET_                                \
    "mad.lo.s64 %a, %j, " SIZE ", %dst;\n" PUT_                                \
    "add.u64 %j, %j, %step;\nbra SINGLE;\n"

/* Eighty values stay live across the wait: NCCL's kernels use about 96
 * registers, so little else fits on their multiprocessors. */
#define TEN(F, D)                                                              \
    F(D "0") F(D "1") F(D "2") F(D "3") F(D "4")                               \
    F(D "5") F(D "6") F(D "7") F(D "8") F(D "9")
#define EIGHTY(F)                                                              \
    TEN(F, "1") TEN(F, "2") TEN(F, "3") TEN(F, "4")                            \
    TEN(F, "5") TEN(F, "6") TEN(F, "7") TEN(F, "8")
#define TAKE(R) "ld.volatile.shared.u32 %k" R ", [space+" R "00];\n"
#define USE(R)  "mad.lo.u32 %b, %b, %k" R ", %k" R ";\n"

/* All threads of a block stay until the first one has seen the release, so that
 * the block keeps its share of the multiprocessor. The values affect the number
 * at the end once in 2^32 times, which is harmless. */
#define OP_WAIT                                                                \
    "FILLED:\nand.b32 %c, %flags, 2;\nsetp.eq.u32 %p, %c, 0;\n@%p bra END;\n"  \
    EIGHTY(TAKE)                                                               \
    "setp.ne.u32 %p, %ic, 0;\n@%p bra ALL;\n"                                  \
    "setp.ne.u32 %p, %g, 0;\n@%p bra AGAIN;\n"                                 \
    "ld.volatile.global.u32 %g, [%slot+8];\nAGAIN:\n"                          \
    "ld.volatile.global.u32 %b, [%slot+12];\nsub.s32 %b, %b, %g;\n"            \
    "setp.lt.s32 %p, %b, 0;\n@%p bra AGAIN;\nmembar.sys;\n"                    \
    "ALL:\nbar.sync 0;\nmov.u32 %b, %clock;\n" EIGHTY(USE)                      \
    "setp.ne.u32 %p, %b, 0x5ca1ab1e;\n@%p bra END;\n"                          \
    "st.volatile.global.u32 [%slot+16], %b;\nEND:\nret;\n}\n"

/* SPECIFIC: registers %x, %y and %f, and constants */
#define OP(NAME, SPECIFIC, SCALE)                                              \
    ".visible .entry stepcast_op_" NAME "(.param .u64 p_slot,\n"               \
    "  .param .u64 p_count, .param .u64 p_ring, .param .u64 p_tickets,\n"      \
    "  .param .u32 p_gen, .param .u32 p_flags, .param .u32 p_index,\n"         \
    "  .param .u32 p_n, .param .align 8 .b8 p_fill[" KERNEL_FILL_BYTES "])\n"  \
    ".maxntid " TEXT(KERNEL_THREADS) ", 1, 1\n{\n" SCRATCH_REGISTERS SPECIFIC        \
    ".reg .pred %load;\n.reg .b32 %flags, %g, %piece, %copies, %power;\n"      \
    ".reg .b32 %k<90>;\n"                                                      \
    ".reg .b64 %slot, %factor, %scalar, %j, %to, %units, %stride;\n"              \
    ".shared .align 4 .b8 space[9216];\n" PLACE                                \
    OP_BEGIN OP_NEXT OP_COPY SCALE OP_WAIT

/* Sum and sum of squares of this block's share to out[2 * block].  WIDEN: %x
 * to the double %d. */
#define MOMENTS(NAME, SIZE, REG, GET_, WIDEN)                                  \
    ".visible .entry stepcast_moments_" NAME "(.param .u64 p_src,\n"           \
    "  .param .u64 p_n, .param .u64 p_out)\n.maxntid 256, 1, 1\n{\n"            \
    SCRATCH_REGISTERS                                                          \
    ".reg ." REG " %x;\n.reg .f64 %d, %s, %ss;\n"                              \
    ".shared .align 8 .b8 part[4096];\n"                                       \
    "ld.param.u64 %src, [p_src];\nld.param.u64 %n, [p_n];\n" PLACE             \
    "mov.f64 %s, 0d0000000000000000;\nmov.f64 %ss, 0d0000000000000000;\n"      \
    "LOOP:\nsetp.ge.u64 %p, %at, %n;\n@%p bra DONE;\n"                         \
    "mad.lo.s64 %a, %at, " SIZE ", %src;\n" GET_ WIDEN                        \
    "add.f64 %s, %s, %d;\nfma.rn.f64 %ss, %d, %d, %ss;\n"                      \
    "add.u64 %at, %at, %step;\nbra LOOP;\nDONE:\n"                             \
    "mov.u32 %b, part;\nmad.lo.u32 %c, %ic, 16, %b;\n"                         \
    "st.shared.f64 [%c], %s;\nst.shared.f64 [%c+8], %ss;\nbar.sync 0;\n"       \
    "setp.ne.u32 %p, %ic, 0;\n@%p bra END;\nmov.u32 %k, 1;\n"                  \
    "ADD:\nsetp.ge.u32 %p, %k, %ib;\n@%p bra OUT;\n"                           \
    "mad.lo.u32 %c, %k, 16, %b;\nld.shared.f64 %d, [%c];\n"                    \
    "add.f64 %s, %s, %d;\nld.shared.f64 %d, [%c+8];\nadd.f64 %ss, %ss, %d;\n"  \
    "add.u32 %k, %k, 1;\nbra ADD;\n"                                           \
    "OUT:\nld.param.u64 %dst, [p_out];\nmov.u32 %ia, %ctaid.x;\n"              \
    "mad.wide.u32 %a, %ia, 16, %dst;\n"                                        \
    "st.global.f64 [%a], %s;\nst.global.f64 [%a+8], %ss;\nEND:\nret;\n}\n"

/* e(i): Box and Muller over two halves of a hash of (seed, i), after Steele,
 * Lea and Flood's SplitMix64. */
#define NOISE(NAME, SIZE, REG, GET_, PUT_, WIDEN, NARROW)                      \
    ".visible .entry stepcast_noise_" NAME "(.param .u64 p_dst,\n"             \
    "  .param .u64 p_n, .param .u64 p_moments, .param .u32 p_parts,\n"         \
    "  .param .u64 p_count, .param .f64 p_k, .param .u64 p_seed)\n"             \
    ".maxntid 256, 1, 1\n{\n"                                                  \
    SCRATCH_REGISTERS                                                          \
    ".reg ." REG " %x;\n.reg .f64 %d, %s, %ss, %k64;\n.reg .f32 %u, %v;\n"     \
    ".reg .b64 %z, %t, %seed;\n.reg .b32 %parts;\n"                            \
    "ld.param.u64 %dst, [p_dst];\nld.param.u64 %n, [p_n];\n"                   \
    "ld.param.u64 %a, [p_moments];\nld.param.u32 %parts, [p_parts];\n"         \
    "ld.param.u64 %seed, [p_seed];\n" PLACE                                    \
    "mov.f64 %s, 0d0000000000000000;\nmov.f64 %ss, 0d0000000000000000;\n"      \
    "mov.u32 %k, 0;\n"                                                         \
    "PART:\nsetp.ge.u32 %p, %k, %parts;\n@%p bra SUMMED;\n"                    \
    "ld.global.f64 %d, [%a];\nadd.f64 %s, %s, %d;\n"                           \
    "ld.global.f64 %d, [%a+8];\nadd.f64 %ss, %ss, %d;\n"                       \
    "add.u64 %a, %a, 16;\nadd.u32 %k, %k, 1;\nbra PART;\nSUMMED:\n"            \
    "ld.param.u64 %t, [p_count];\ncvt.rn.f64.u64 %d, %t;\n"                    \
    "div.rn.f64 %s, %s, %d;\ndiv.rn.f64 %ss, %ss, %d;\n"                       \
    "mul.f64 %s, %s, %s;\nsub.f64 %ss, %ss, %s;\n"                             \
    "max.f64 %ss, %ss, 0d0000000000000000;\nsqrt.rn.f64 %ss, %ss;\n"           \
    "ld.param.f64 %k64, [p_k];\nmul.f64 %k64, %k64, %ss;\n"                    \
    "LOOP:\nsetp.ge.u64 %p, %at, %n;\n@%p bra END;\n"                          \
    "add.u64 %z, %at, 1;\nmul.lo.u64 %z, %z, 0x9E3779B97F4A7C15;\n"            \
    "add.u64 %z, %z, %seed;\n"                                                 \
    "shr.u64 %t, %z, 30;\nxor.b64 %z, %z, %t;\n"                               \
    "mul.lo.u64 %z, %z, 0xBF58476D1CE4E5B9;\n"                                 \
    "shr.u64 %t, %z, 27;\nxor.b64 %z, %z, %t;\n"                               \
    "mul.lo.u64 %z, %z, 0x94D049BB133111EB;\n"                                 \
    "shr.u64 %t, %z, 31;\nxor.b64 %z, %z, %t;\n"                               \
    "mov.b64 {%b, %c}, %z;\n"                                                  \
    "cvt.rn.f32.u32 %u, %b;\nadd.f32 %u, %u, 0f3F800000;\n"                    \
    "mul.f32 %u, %u, 0f2F800000;\nmin.f32 %u, %u, 0f3F800000;\n"               \
    "lg2.approx.f32 %u, %u;\nmul.f32 %u, %u, 0fBFB17218;\n"                    \
    "sqrt.approx.f32 %u, %u;\n"                                                \
    "cvt.rn.f32.u32 %v, %c;\nmul.f32 %v, %v, 0f30C90FDB;\n"                    \
    "cos.approx.f32 %v, %v;\nmul.f32 %u, %u, %v;\ncvt.f64.f32 %s, %u;\n"       \
    "mad.lo.s64 %a, %at, " SIZE ", %dst;\n" GET_ WIDEN                        \
    "fma.rn.f64 %d, %s, %k64, %d;\n" NARROW PUT_                               \
    "add.u64 %at, %at, %step;\nbra LOOP;\nEND:\nret;\n}\n"

#define WIDEN_F32  "cvt.f64.f32 %d, %x;\n"
#define NARROW_F32 "cvt.rn.f32.f64 %x, %d;\n"
#define WIDEN_F64  "mov.f64 %d, %x;\n"
#define NARROW_F64 "mov.f64 %x, %d;\n"

/* ---- the types ------------------------------------------------------------------- */

#define GET(WORD, FROM) "ld.global." WORD " %w0, [%a];\n" FROM
#define PUT(WORD, TO)   TO "st.global." WORD " [%a], %b;\n"
#define GET_LONG(FROM)  "ld.global.u64 %z0, [%a];\n" FROM
#define PUT_LONG(TO)    TO "st.global.u64 [%a], %z0;\n"

#define FACTOR_F32 "mov.b64 %fd, %factor;\ncvt.rn.f32.f64 %f, %fd;\n"
#define FACTOR_B32 "cvt.u32.u64 %f, %factor;\n"
#define REGISTERS_F32 ".reg .f32 %x, %y, %f;\n.reg .f64 %fd;\n"
#define REGISTERS_F64 ".reg .f64 %x, %y, %f;\n"
#define REGISTERS_B32 ".reg .b32 %x, %y, %f;\n"
#define REGISTERS_B64 ".reg .b64 %x, %y, %f;\n"

/* BITS, UP (32 less those), N (in a word), LOG (of those in 16 bytes) */
#define OP_PARTS(NAME, REGISTERS, FACTOR, REG, MUL, SIZE, BITS, UP, N, LOG,    \
                 WORD, FROM, TO)                                               \
    OP(NAME, REGISTERS,                                                        \
       OP_SCALE(LOG, SIZE, FACTOR, GET(WORD, FROM) MUL " %f, %f, %x;\n",       \
                LOAD_WORDS,                                                    \
                WORDS(WORD_OF(BITS, UP, N, NUMBER("1", REG, MUL, FROM, TO))),  \
                STORE_WORDS, GET(WORD, ""),                                    \
                NUMBER("2", REG, MUL, FROM, PUT(WORD, TO))))
#define OP_WORDS(NAME, REGISTERS, FACTOR, REG, MUL, FROM, TO)                  \
    OP(NAME, REGISTERS,                                                        \
       OP_SCALE("2", "4", FACTOR, GET("u32", FROM) MUL " %f, %f, %x;\n",       \
                LOAD_WORDS,                                                    \
                WORDS(NUMBER("1", REG, MUL, FROM, TO) "mov.b32 %w0, %b;\n"),   \
                STORE_WORDS, GET("u32", ""),                                   \
                NUMBER("2", REG, MUL, FROM, PUT("u32", TO))))
#define OP_LONGS(NAME, REGISTERS, REG, MUL, FROM, TO)                          \
    OP(NAME, REGISTERS,                                                        \
       OP_SCALE("1", "8", "mov.b64 %f, %factor;\n",                            \
                GET_LONG(FROM) MUL " %f, %f, %x;\n", LOAD_LONGS,               \
                LONGS(NUMBER("1", REG, MUL, FROM, TO)), STORE_LONGS,           \
                GET_LONG(""), NUMBER("2", REG, MUL, FROM, PUT_LONG(TO))))

#define OP_HALF(NAME, FROM, TO)                                                \
    OP_PARTS(NAME, REGISTERS_F32, FACTOR_F32, "f32", "mul.f32", "2", "16",     \
             "16", "2", "3", "u16", FROM, TO)
#define OP_BYTE(NAME, FROM, TO)                                                \
    OP_PARTS(NAME, REGISTERS_F32, FACTOR_F32, "f32", "mul.f32", "1", "8",      \
             "24", "4", "4", "u8", FROM, TO)

#define STATISTICS(NAME, SIZE, WORD, FROM, TO)                                 \
    MOMENTS(NAME, SIZE, "f32", GET(WORD, FROM), WIDEN_F32)                     \
    NOISE(NAME, SIZE, "f32", GET(WORD, FROM), PUT(WORD, TO), WIDEN_F32,        \
          NARROW_F32)

const char *const kernel_text =
    LINES_HEAD
    OP_PARTS("b8", REGISTERS_B32, FACTOR_B32, "b32", "mul.lo.s32", "1", "8",
             "24", "4", "4", "u8", FROM_B32, TO_B8)
    OP_WORDS("b32", REGISTERS_B32, FACTOR_B32, "b32", "mul.lo.s32", FROM_B32,
             TO_B32)
    OP_LONGS("b64", REGISTERS_B64, "b64", "mul.lo.s64", FROM_B64, TO_B64)
    OP_HALF("f16", FROM_F16, TO_F16)
    OP_HALF("bf16", FROM_BF16, TO_BF16)
    OP_WORDS("f32", REGISTERS_F32, FACTOR_F32, "f32", "mul.f32", FROM_F32,
             TO_F32)
    OP_LONGS("f64", REGISTERS_F64, "f64", "mul.f64", FROM_F64, TO_F64)
    OP_BYTE("e4m3", FROM_E4M3, TO_E4M3)
    OP_BYTE("e5m2", FROM_E5M2, TO_E5M2)
    STATISTICS("f16", "2", "u16", FROM_F16, TO_F16)
    STATISTICS("bf16", "2", "u16", FROM_BF16, TO_BF16)
    STATISTICS("f32", "4", "u32", FROM_F32, TO_F32)
    MOMENTS("f64", "8", "f64", GET_LONG(FROM_F64), WIDEN_F64)
    NOISE("f64", "8", "f64", GET_LONG(FROM_F64), PUT_LONG(TO_F64), WIDEN_F64,
          NARROW_F64)
    STATISTICS("e4m3", "1", "u8", FROM_E4M3, TO_E4M3)
    STATISTICS("e5m2", "1", "u8", FROM_E5M2, TO_E5M2);

/* clang-format on */

/* Integers of one size are multiplied in the same way. */
const char *const kernel_type_names[] = {"b8",   "b8",   "b32", "b32", "b64",
                                         "b64",  "f16",  "f32", "f64", "bf16",
                                         "e4m3", "e5m2", NULL};
