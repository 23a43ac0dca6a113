/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_data.h - what emulated ranks contribute to a collective, in host memory.
 *
 * mirror: every peer has the data of a real rank (the real members in turn), so
 * a sum over n ranks is n times x, a mean or maximum is x, and products are
 * powers. none: nothing is written.
 *
 * noise: an emulated peer p has x + sigma * s * e(p), where s is the standard
 * deviation of x's elements and e is standard normal, drawn anew from the seed
 * for each operation and element; real ranks keep their data. The mean over n
 * ranks of which one is real then deviates from x by sigma * s * sqrt(n - 1) /
 * n per element, for many ranks sigma * s / sqrt(n): like the mean over n
 * independent batches from the expected gradient (McCandlish et al., arXiv
 * 1812.06162, eq. 2.6), with x instead of the expected gradient. The sum is
 * drawn directly, not its terms; for a maximum or minimum, the extreme value of
 * the peers' numbers is drawn. Products, integers and single elements never get
 * noise.
 */
#ifndef SC_EMU_DATA_H
#define SC_EMU_DATA_H

#include "emu/emu.h"

typedef enum sc_emu_type {
    SC_EMU_I8,
    SC_EMU_U8,
    SC_EMU_I16,
    SC_EMU_U16,
    SC_EMU_I32,
    SC_EMU_U32,
    SC_EMU_I64,
    SC_EMU_U64,
    SC_EMU_F16,
    SC_EMU_BF16,
    SC_EMU_F32,
    SC_EMU_F64,
    SC_EMU_BYTES, /* a byte without a numeric value */
    SC_N_EMU_TYPES
} sc_emu_type;

size_t sc_emu_type_size(sc_emu_type t);

typedef enum sc_emu_reduce {
    SC_EMU_SUM,
    SC_EMU_PROD,
    SC_EMU_MIN,
    SC_EMU_MAX,
    SC_EMU_AVG,
    SC_EMU_BAND,
    SC_EMU_BOR,
    SC_EMU_BXOR,
    SC_EMU_LAND,
    SC_EMU_LOR,
    SC_EMU_LXOR,
    SC_N_EMU_REDUCES
} sc_emu_reduce;

/* The state of peers' data: one per process, advanced with every call, so that
 * a run can be repeated. */
typedef struct sc_emu_data {
    sc_emu_data_kind kind;
    double sigma;
    uint64_t state; /* state of the random numbers; starts as the seed */
} sc_emu_data;

/* The reduction over n ranks: `n_real` >= 1 of them have contributed real[i]
 * ([count] elements each), the others mirror them in turn. `out` may be one of
 * them. Floating types are summed in double precision and rounded once, to
 * nearest even; if n is a power of two, the bits equal those of repeated
 * doubling. Integers wrap; their mean is the sum over n, truncated towards 0.
 * False: no such reduction of such a type (bitwise and logical ones of floats;
 * all but bitwise ones of SC_EMU_BYTES), or n < n_real. */
bool sc_emu_data_reduce(sc_emu_data *d, const void *const *real,
                        uint32_t n_real, uint32_t n, size_t count,
                        sc_emu_type type, sc_emu_reduce op, void *out);

/* The buffer of one emulated peer, mirrored from `mine`. */
void sc_emu_data_peer(sc_emu_data *d, const void *mine, size_t count,
                      sc_emu_type type, void *out);
#endif
