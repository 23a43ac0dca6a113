/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.c - contributions of emulated members to a collective.
 *
 * Gloo gets a function for its reduction, not a name. It is tried on a few
 * numbers: if its results equal those of sc_emu_data_reduce() for some type and
 * operation, this function is used; any other function is called, once per
 * doubling of the number of peers.
 */
#define _GNU_SOURCE
#include "inside.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* ---- which reduction it is ----------------------------------------------- */

typedef struct known {
    uint64_t function;
    uint32_t size;
    sc_emu_type type; /* SC_N_EMU_TYPES: unknown */
    sc_emu_reduce op;
} known;

#define MAX_KNOWN 64
static known kinds[MAX_KNOWN];
static _Atomic uint32_t n_kinds;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void apply(const cxx_function *f, void *out, const void *a,
                  const void *b, size_t n)
{
    f->call(f->target, &out, &a, &b, &n);
}

#define TRIES 8

/* Small numbers of both signs, as floating point numbers of that size, whose
 * bits are large integers. */
static void numbers(size_t size, uint64_t a[TRIES], uint64_t b[TRIES])
{
    static const float x[TRIES] = {3, -3, 5, -5, 2, 0.5F, -6, 1.5F};
    static const float y[TRIES] = {5, -5, -2, 3, 7, 1.5F, -1, -4};
    static const uint16_t hx[TRIES] = {0x4200, 0xC200, 0x4500, 0xC500,
                                       0x4000, 0x3800, 0xC600, 0x3E00};
    static const uint16_t hy[TRIES] = {0x4500, 0xC500, 0xC000, 0x4200,
                                       0x4700, 0x3E00, 0xBC00, 0xC400};
    unsigned char *pa = (unsigned char *)a, *pb = (unsigned char *)b;
    for (size_t i = 0; i < TRIES; i++) {
        double dx = x[i], dy = y[i];
        int8_t cx = (int8_t)(x[i] * 4), cy = (int8_t)(y[i] * 4);
        const void *from_x = size == 8   ? (const void *)&dx
                             : size == 4 ? (const void *)&x[i]
                             : size == 2 ? (const void *)&hx[i]
                                         : (const void *)&cx;
        const void *from_y = size == 8   ? (const void *)&dy
                             : size == 4 ? (const void *)&y[i]
                             : size == 2 ? (const void *)&hy[i]
                                         : (const void *)&cy;
        memcpy(pa + i * size, from_x, size);
        memcpy(pb + i * size, from_y, size);
    }
}

static known identify(const cxx_function *f, size_t size)
{
    static const sc_emu_type types[] = {SC_EMU_F32,  SC_EMU_F64, SC_EMU_F16,
                                        SC_EMU_BF16, SC_EMU_I8,  SC_EMU_U8,
                                        SC_EMU_I16,  SC_EMU_U16, SC_EMU_I32,
                                        SC_EMU_U32,  SC_EMU_I64, SC_EMU_U64};
    static const sc_emu_reduce ops[] = {SC_EMU_SUM,  SC_EMU_PROD, SC_EMU_MIN,
                                        SC_EMU_MAX,  SC_EMU_BAND, SC_EMU_BOR,
                                        SC_EMU_BXOR, SC_EMU_LAND, SC_EMU_LOR};
    known k = {f->target[0], (uint32_t)size, SC_N_EMU_TYPES, SC_EMU_SUM};
    uint64_t a[TRIES], b[TRIES], want[TRIES], got[TRIES];
    if (size != 1 && size != 2 && size != 4 && size != 8) return k;
    numbers(size, a, b);
    apply(f, want, a, b, TRIES);
    sc_emu_data d = {.kind = SC_EMU_DATA_MIRROR};
    const void *const real[] = {a, b};
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        if (sc_emu_type_size(types[t]) != size) continue;
        for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++)
            if (sc_emu_data_reduce(&d, real, 2, 2, TRIES, types[t], ops[o],
                                   got) &&
                memcmp(want, got, TRIES * size) == 0) {
                k.type = types[t];
                k.op = ops[o];
                return k;
            }
    }
    return k;
}

static known kind_of(const cxx_function *f, size_t size)
{
    uint32_t n = atomic_load_explicit(&n_kinds, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++)
        if (kinds[i].function == f->target[0] && kinds[i].size == size)
            return kinds[i];
    known k = identify(f, size);
    Dl_info info;
    void *at;
    memcpy(&at, f->target, sizeof(at));
    if (!at || !dladdr(at, &info)) return k; /* not a plain function */
    pthread_mutex_lock(&mutex);
    n = atomic_load_explicit(&n_kinds, memory_order_relaxed);
    if (n < MAX_KNOWN) {
        kinds[n] = k;
        atomic_store_explicit(&n_kinds, n + 1, memory_order_release);
    }
    pthread_mutex_unlock(&mutex);
    return k;
}

/* ---- a function of another kind ------------------------------------------ */

/* out = x combined with itself, n times in all. */
static void power(const cxx_function *f, const void *x, uint32_t n,
                  size_t count, size_t size, void *out, void *spare)
{
    memcpy(spare, x, count * size);
    bool any = false;
    for (; n; n >>= 1) {
        if (n & 1) {
            if (any)
                apply(f, out, out, spare, count);
            else
                memcpy(out, spare, count * size);
            any = true;
        }
        if (n > 1) apply(f, spare, spare, spare, count);
    }
}

static void reduce_by_function(gloo_call *c, const cxx_function *f,
                               const void *const *real, size_t n, size_t size,
                               void *out)
{
    uint32_t emulated = c->g->size - c->g->n_real;
    char *m = malloc(3 * n * size + 1);
    if (!m) live_die(c->l, "gloo: out of memory");
    char *one = m + n * size, *spare = one + n * size;
    for (uint32_t i = 0; i < c->g->n_real; i++) {
        uint32_t times =
            1 + emulated / c->g->n_real + (i < emulated % c->g->n_real ? 1 : 0);
        power(f, real[i], times, n, size, i ? one : m, spare);
        if (i) apply(f, m, m, one, n);
    }
    memcpy(out, m, n * size);
    free(m);
}

/* ---- for collectives ----------------------------------------------------- */

static bool is_float(sc_emu_type t)
{
    return t == SC_EMU_F16 || t == SC_EMU_BF16 || t == SC_EMU_F32 ||
           t == SC_EMU_F64;
}

/* Integers are counts, sizes and texts that the program needs unchanged: they
 * are always mirrored. */
static sc_emu_data *data_for(gloo_call *c, bool floats, sc_emu_data *mirror)
{
    *mirror = (sc_emu_data){.kind = SC_EMU_DATA_MIRROR};
    return floats ? live_data(c->l) : mirror;
}

void gloo_reduce_all(gloo_call *c, const cxx_function *f,
                     const void *const *real, size_t n, size_t size, void *out)
{
    known k = kind_of(f, size);
    if (k.type == SC_N_EMU_TYPES) {
        reduce_by_function(c, f, real, n, size, out);
        return;
    }
    sc_emu_data mirror, *d = data_for(c, is_float(k.type), &mirror);
    if (!sc_emu_data_reduce(d, real, c->g->n_real, c->g->size, n, k.type, k.op,
                            out))
        reduce_by_function(c, f, real, n, size, out);
}

void gloo_peer_data(gloo_call *c, const void *mine, size_t len, size_t size,
                    void *out)
{
    const gloo_work *w = gloo_work_now();
    sc_emu_type type = size == 2   ? SC_EMU_F16
                       : size == 4 ? SC_EMU_F32
                       : size == 8 ? SC_EMU_F64
                                   : SC_EMU_BYTES;
    bool floats = w && w->floats && type != SC_EMU_BYTES;
    if (!floats) {
        type = SC_EMU_BYTES;
        size = 1;
    }
    sc_emu_data mirror, *d = data_for(c, floats, &mirror);
    sc_emu_data_peer(d, mine, len / size, type, out);
}
