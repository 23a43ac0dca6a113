/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c - the library's kernels in C, from their description alone. */
#include "mock/mock.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The device's clock is another one than the host's. */
#define AHEAD 7000000123

typedef struct slot {
    _Atomic uint64_t time;
    _Atomic uint32_t started, released;
} slot;

/* A piece of an operation's data. */
typedef struct piece {
    uint64_t dst, src, n, factor, scalar;
    uint32_t copies, power;
} piece;

enum { MARK = 1, WAIT = 2, RING = 4096 };

static void announce(const item *i)
{
    uint32_t *tickets = (uint32_t *)(uintptr_t)i->arg[3];
    _Atomic uint64_t *ring = (_Atomic uint64_t *)(uintptr_t)i->arg[2];
    if (!tickets) return;
    uint32_t k = (*tickets)++;
    atomic_store(&ring[k % RING], i->arg[6] << 32 | (uint32_t)(k + 1));
}

static void mark(item *i)
{
    slot *s = (slot *)(uintptr_t)i->arg[0];
    uint32_t *count = (uint32_t *)(uintptr_t)i->arg[1];
    if (count) {
        i->gen = (uint32_t)i->arg[4] + *count / i->blocks + 1;
        *count += i->blocks;
    }
    atomic_store(&s->time, (uint64_t)(mock_time() + AHEAD));
    atomic_store(&s->started, i->gen);
    announce(i);
}

static bool held(item *i)
{
    slot *s = (slot *)(uintptr_t)i->arg[0];
    if (!i->gen) i->gen = atomic_load(&s->started);
    return (int32_t)(atomic_load(&s->released) - i->gen) >= 0;
}

static void spread(const piece *f)
{
    char *to = (char *)(uintptr_t)f->dst;
    const char *from = (const char *)(uintptr_t)f->src;
    for (uint32_t k = 0; k < f->copies; k++, to += f->n) {
        if (!from)
            memset(to, 0, f->n);
        else if (to != from)
            memcpy(to, from, f->n);
    }
}

static float bf16_to_float(uint16_t h)
{
    uint32_t b = (uint32_t)h << 16;
    float f;
    memcpy(&f, &b, 4);
    return f;
}

static uint16_t float_to_bf16(float f)
{
    uint32_t b;
    memcpy(&b, &f, 4);
    return (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

static double load(const char *type, const char *at)
{
    float f;
    double d;
    int32_t w;
    uint16_t h;
    if (strcmp(type, "f32") == 0) return memcpy(&f, at, 4), (double)f;
    if (strcmp(type, "f64") == 0) return memcpy(&d, at, 8), d;
    if (strcmp(type, "i32") == 0) return memcpy(&w, at, 4), (double)w;
    if (strcmp(type, "bf16") == 0)
        return memcpy(&h, at, 2), (double)bf16_to_float(h);
    abort();
}

static void store(const char *type, char *at, double v)
{
    float f = (float)v;
    int32_t w = (int32_t)v;
    uint16_t h = float_to_bf16(f);
    if (strcmp(type, "f32") == 0)
        memcpy(at, &f, 4);
    else if (strcmp(type, "f64") == 0)
        memcpy(at, &v, 8);
    else if (strcmp(type, "i32") == 0)
        memcpy(at, &w, 4);
    else
        memcpy(at, &h, 2);
}

static size_t size_of(const char *type)
{
    return strcmp(type, "f64") == 0 ? 8 : strcmp(type, "bf16") == 0 ? 2 : 4;
}

static double as_double(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, 8);
    return d;
}

/* b32: as on the device, only integers are */
static void scale(const piece *f, const char *type)
{
    char *to = (char *)(uintptr_t)f->dst;
    const char *from = (const char *)(uintptr_t)f->src;
    bool whole = type[0] == 'b' && type[1] != 'f';
    if (whole) type = "i32";
    size_t size = size_of(type);
    double factor = whole ? (double)(int64_t)f->factor : as_double(f->factor);
    if (f->scalar) factor *= load(type, (const char *)(uintptr_t)f->scalar);
    if (strcmp(type, "f32") == 0 && !f->power) { /* most are, and large */
        const float *x = (const float *)(uintptr_t)f->src;
        float *y = (float *)(uintptr_t)f->dst;
        for (uint64_t k = 0; k < f->n; k++)
            y[k] = (float)((double)x[k] * factor);
        return;
    }
    for (uint64_t k = 0; k < f->n; k++) {
        double x = load(type, from + k * size), y = x * factor;
        if (f->power) y = pow(x, (double)f->power);
        store(type, to + k * size, y);
    }
}

static bool operation(item *i, const char *type)
{
    const piece *f = (const piece *)(const void *)i->blob;
    if (!i->begun) {
        i->gen = (uint32_t)i->arg[4];
        if (i->arg[5] & MARK) mark(i);
        for (uint32_t k = 0; k < (uint32_t)i->arg[7]; k++) {
            if (f[k].copies)
                spread(&f[k]);
            else
                scale(&f[k], type);
        }
    }
    i->begun = true;
    return !(i->arg[5] & WAIT) || held(i);
}

static void moments(const item *i, const char *type)
{
    const char *from = (const char *)(uintptr_t)i->arg[0];
    double *out = (double *)(uintptr_t)i->arg[2];
    memset(out, 0, 16 * i->blocks);
    for (uint64_t k = 0; k < i->arg[1]; k++) {
        double x = load(type, from + k * size_of(type));
        out[0] += x;
        out[1] += x * x;
    }
}

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static void noise(const item *i, const char *type)
{
    char *to = (char *)(uintptr_t)i->arg[0];
    const double *m = (const double *)(uintptr_t)i->arg[2];
    double s = 0, ss = 0, n = (double)i->arg[4];
    uint64_t state = i->arg[6] ^ i->arg[0];
    for (uint32_t k = 0; k < (uint32_t)i->arg[3]; k++) {
        s += m[2 * k];
        ss += m[2 * k + 1];
    }
    double sigma = sqrt(fmax(0, ss / n - s / n * (s / n)));
    for (uint64_t k = 0; k < i->arg[1]; k++) {
        char *at = to + k * size_of(type);
        double r = sqrt(-2 * log(uniform(&state)));
        double e = r * cos(6.283185307179586 * uniform(&state));
        store(type, at, load(type, at) + as_double(i->arg[5]) * sigma * e);
    }
}

bool kernel_run(item *i)
{
    const char *name = i->f->name + strlen("stepcast_");
    if (strncmp(name, "op_", 3) == 0) return operation(i, name + 3);
    if (strncmp(name, "moments_", 8) == 0)
        moments(i, name + 8);
    else if (strncmp(name, "noise_", 6) == 0)
        noise(i, name + 6);
    else
        abort();
    return true;
}
