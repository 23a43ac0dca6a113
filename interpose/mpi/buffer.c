/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer.c - the program's buffers, of any datatype.  Predefined types without
 * gaps are their own bytes; all others go through the library's MPI_Pack.
 */
#include "mpi/handle.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TYPES 64

/* Predefined types; nothing changes after mp_types_start(). */
static struct {
    sc_arena memory;
    sc_map by_handle;
    mp_type type[MAX_TYPES]; /* [by_handle.n] */
} types;

static sc_emu_type integer(size_t size, bool is_signed)
{
    switch (size) {
    case 1: return is_signed ? SC_EMU_I8 : SC_EMU_U8;
    case 2: return is_signed ? SC_EMU_I16 : SC_EMU_U16;
    case 4: return is_signed ? SC_EMU_I32 : SC_EMU_U32;
    case 8: return is_signed ? SC_EMU_I64 : SC_EMU_U64;
    default: return SC_N_EMU_TYPES;
    }
}

enum { SIGNED, UNSIGNED, REAL, OTHER };

static void add(MPI_Datatype t, int nature)
{
    int size;
    MPI_Aint lb, extent;
    if (t == MPI_DATATYPE_NULL || PMPI_Type_size(t, &size) != MPI_SUCCESS ||
        size <= 0 || PMPI_Type_get_extent(t, &lb, &extent) != MPI_SUCCESS)
        return;
    sc_emu_type kind = SC_N_EMU_TYPES;
    if (nature == SIGNED || nature == UNSIGNED)
        kind = integer((size_t)size, nature == SIGNED);
    else if (nature == REAL)
        kind = size == 4 ? SC_EMU_F32 : SC_EMU_F64;
    uint32_t i = sc_map_get(&types.by_handle, handle_bits(t));
    if (i == SC_MAP_END) {
        i = types.by_handle.n;
        if (i == MAX_TYPES ||
            !sc_map_set(&types.by_handle, &types.memory, handle_bits(t), i))
            return; /* the library is asked again each time */
    }
    types.type[i] = (mp_type){(size_t)size, extent, extent == size, kind};
}

void mp_types_start(void)
{
    const MPI_Datatype is_signed[] = {
        MPI_SIGNED_CHAR, MPI_SHORT,   MPI_INT,     MPI_LONG,     MPI_LONG_LONG,
        MPI_INT8_T,      MPI_INT16_T, MPI_INT32_T, MPI_INT64_T,  MPI_AINT,
        MPI_OFFSET,      MPI_COUNT,   MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2,
        MPI_INTEGER4,    MPI_INTEGER8};
    const MPI_Datatype is_unsigned[] = {
        MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT,     MPI_UNSIGNED,
        MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T,
        MPI_UINT16_T,      MPI_UINT32_T,           MPI_UINT64_T,
        MPI_BYTE};
    const MPI_Datatype other[] = {MPI_CHAR,
                                  MPI_WCHAR,
                                  MPI_C_BOOL,
                                  MPI_LONG_DOUBLE,
                                  MPI_PACKED,
                                  MPI_C_FLOAT_COMPLEX,
                                  MPI_C_DOUBLE_COMPLEX,
                                  MPI_2INT,
                                  MPI_FLOAT_INT,
                                  MPI_DOUBLE_INT,
                                  MPI_LONG_INT,
                                  MPI_SHORT_INT,
                                  MPI_LONG_DOUBLE_INT,
                                  MPI_LOGICAL,
                                  MPI_CHARACTER,
                                  MPI_COMPLEX,
                                  MPI_DOUBLE_COMPLEX,
                                  MPI_2INTEGER,
                                  MPI_2REAL,
                                  MPI_2DOUBLE_PRECISION};
    const MPI_Datatype real[] = {MPI_FLOAT, MPI_DOUBLE,
                                 MPI_REAL,  MPI_DOUBLE_PRECISION,
                                 MPI_REAL4, MPI_REAL8};
    for (size_t i = 0; i < SC_COUNT(is_signed); i++) add(is_signed[i], SIGNED);
    for (size_t i = 0; i < SC_COUNT(is_unsigned); i++)
        add(is_unsigned[i], UNSIGNED);
    for (size_t i = 0; i < SC_COUNT(other); i++) add(other[i], OTHER);
    for (size_t i = 0; i < SC_COUNT(real); i++) add(real[i], REAL);
}

bool mp_type_is_named(MPI_Datatype t)
{
    int n[3], combiner = MPI_COMBINER_NAMED;
    PMPI_Type_get_envelope(t, &n[0], &n[1], &n[2], &combiner);
    return combiner == MPI_COMBINER_NAMED;
}

int mp_type_of(MPI_Datatype t, mp_type *out)
{
    uint32_t i = sc_map_get(&types.by_handle, handle_bits(t));
    if (i != SC_MAP_END) {
        *out = types.type[i];
        return MPI_SUCCESS;
    }
    int size = 0;
    MPI_Aint lb;
    *out = (mp_type){.kind = SC_N_EMU_TYPES};
    int code = PMPI_Type_size(t, &size);
    if (code == MPI_SUCCESS) code = PMPI_Type_get_extent(t, &lb, &out->extent);
    out->size = (size_t)size;
    return code;
}

sc_emu_reduce mp_op_of(MPI_Op op)
{
    const MPI_Op known[SC_N_EMU_REDUCES] = {
        [SC_EMU_SUM] = MPI_SUM,     [SC_EMU_PROD] = MPI_PROD,
        [SC_EMU_MIN] = MPI_MIN,     [SC_EMU_MAX] = MPI_MAX,
        [SC_EMU_AVG] = MPI_OP_NULL, [SC_EMU_BAND] = MPI_BAND,
        [SC_EMU_BOR] = MPI_BOR,     [SC_EMU_BXOR] = MPI_BXOR,
        [SC_EMU_LAND] = MPI_LAND,   [SC_EMU_LOR] = MPI_LOR,
        [SC_EMU_LXOR] = MPI_LXOR};
    for (int i = 0; i < SC_N_EMU_REDUCES; i++)
        if (known[i] == op && op != MPI_OP_NULL) return (sc_emu_reduce)i;
    return SC_N_EMU_REDUCES;
}

int mp_pack(const void *buf, int count, MPI_Datatype t, live_view *out)
{
    *out = (live_view){0};
    if (!count) return MPI_SUCCESS;
    mp_type y;
    int code = mp_type_of(t, &y);
    if (code != MPI_SUCCESS) return code;
    if (y.flat) {
        *out = (live_view){buf, (size_t)count * y.size, NULL};
        return MPI_SUCCESS;
    }
    int size, at = 0;
    code = PMPI_Pack_size(count, t, MPI_COMM_SELF, &size);
    if (code != MPI_SUCCESS) return code;
    out->own = mp_alloc((size_t)size);
    code = PMPI_Pack(buf, count, t, out->own, size, &at, MPI_COMM_SELF);
    out->p = out->own;
    out->len = (size_t)at;
    return code;
}

static void repeat(unsigned char *to, size_t n, const void *p, size_t len)
{
    if (!len) {
        memset(to, 0, n);
        return;
    }
    for (size_t at = 0; at < n; at += len)
        if (to + at != p) memmove(to + at, p, n - at < len ? n - at : len);
}

int mp_place(void *buf, int count, MPI_Datatype t, const void *p, size_t len)
{
    mp_type y;
    if (!count) return MPI_SUCCESS;
    int code = mp_type_of(t, &y);
    if (code != MPI_SUCCESS) return code;
    size_t n = (size_t)count * y.size;
    if (y.flat) {
        repeat(buf, n, p, len);
        return MPI_SUCCESS;
    }
    void *bytes = mp_alloc(n);
    int at = 0;
    repeat(bytes, n, p, len);
    code = PMPI_Unpack(bytes, (int)n, &at, buf, count, t, MPI_COMM_SELF);
    free(bytes);
    return code;
}

/* ---- reductions that emu_data.h does not know --------------------------------- */

/* An array of `count` elements as laid out by the datatype. */
typedef struct laid_out {
    void *own;
    void *p; /* the buffer's address: `own` minus the type's lower bound */
    size_t size;
} laid_out;

static int lay_out(int count, MPI_Datatype t, laid_out *out)
{
    MPI_Aint lb, extent, true_lb, true_extent;
    int code = PMPI_Type_get_extent(t, &lb, &extent);
    if (code == MPI_SUCCESS)
        code = PMPI_Type_get_true_extent(t, &true_lb, &true_extent);
    if (code != MPI_SUCCESS) return code;
    if (extent < 0) return MPI_ERR_TYPE;
    out->size = (size_t)(true_extent + (count - 1) * extent);
    out->own = mp_alloc(out->size);
    memset(out->own, 0, out->size);
    out->p = (char *)out->own - true_lb;
    return MPI_SUCCESS;
}

/* `a` to the power of `times`, into `out`; `a` and `tmp` are overwritten. */
static int power(laid_out *a, laid_out *out, laid_out *tmp, uint32_t times,
                 bool first, int count, MPI_Datatype t, MPI_Op op)
{
    int code = MPI_SUCCESS;
    while (times && code == MPI_SUCCESS) {
        if (times & 1) {
            if (first)
                memcpy(out->own, a->own, a->size);
            else
                code = PMPI_Reduce_local(a->p, out->p, count, t, op);
            first = false;
        }
        times >>= 1;
        if (times && code == MPI_SUCCESS) {
            memcpy(tmp->own, a->own, a->size);
            code = PMPI_Reduce_local(tmp->p, a->p, count, t, op);
        }
    }
    return code;
}

int mp_reduce_local(const void *const *x, const uint32_t *times, uint32_t n,
                    int count, MPI_Datatype t, MPI_Op op, void *out)
{
    laid_out a, sum, tmp;
    mp_type y;
    if (!count) return MPI_SUCCESS;
    int code = mp_type_of(t, &y);
    if (code == MPI_SUCCESS) code = lay_out(count, t, &a);
    if (code != MPI_SUCCESS) return code;
    lay_out(count, t, &sum);
    lay_out(count, t, &tmp);
    bool first = true;
    for (uint32_t i = 0; i < n && code == MPI_SUCCESS; i++) {
        if (!times[i]) continue;
        code = mp_place(a.p, count, t, x[i], (size_t)count * y.size);
        if (code == MPI_SUCCESS)
            code = power(&a, &sum, &tmp, times[i], first, count, t, op);
        first = false;
    }
    if (code == MPI_SUCCESS) {
        live_view v;
        code = mp_pack(sum.p, count, t, &v);
        if (code == MPI_SUCCESS) code = mp_place(out, count, t, v.p, v.len);
        free(v.own);
    }
    free(a.own);
    free(sum.own);
    free(tmp.own);
    return code;
}

/* ---- large counts --------------------------------------------------------- */

int mp_int(MPI_Count n, bool *fits)
{
    if (n < INT_MIN || n > INT_MAX) *fits = false;
    return (int)n;
}

int *mp_ints(const void *v, uint32_t n, bool *fits)
{
    const int64_t *x = v;
    int *out = v ? mp_alloc(n * sizeof *out) : NULL;
    for (uint32_t i = 0; out && i < n; i++) out[i] = mp_int(x[i], fits);
    return out;
}
