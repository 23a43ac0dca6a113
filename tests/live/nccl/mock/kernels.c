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

static void mark(const item *i)
{
    slot *s = (slot *)(uintptr_t)i->arg[0];
    uint32_t gen = (uint32_t)i->arg[1];
    if (!gen) gen = atomic_load(&s->started) + 1;
    atomic_store(&s->time, (uint64_t)(mock_time() + AHEAD));
    atomic_store(&s->started, gen);
}

static bool held(const item *i)
{
    slot *s = (slot *)(uintptr_t)i->arg[0];
    uint32_t gen = (uint32_t)i->arg[1];
    if (!gen) gen = atomic_load(&s->started);
    return (int32_t)(atomic_load(&s->released) - gen) >= 0;
}

static void spread(const item *i)
{
    char *to = (char *)(uintptr_t)i->arg[0];
    const char *from = (const char *)(uintptr_t)i->arg[1];
    for (uint32_t k = 0; k < (uint32_t)i->arg[3]; k++)
        if (to + k * i->arg[2] != from)
            memcpy(to + k * i->arg[2], from, i->arg[2]);
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

static void scale(const item *i, const char *type)
{
    char *to = (char *)(uintptr_t)i->arg[0];
    const char *from = (const char *)(uintptr_t)i->arg[1];
    size_t size = size_of(type);
    double factor =
        type[0] == 'i' ? (double)(int64_t)i->arg[3] : as_double(i->arg[3]);
    if (i->arg[4]) factor *= load(type, (const char *)(uintptr_t)i->arg[4]);
    if (strcmp(type, "f32") == 0 && !i->arg[5]) { /* most are, and large */
        const float *x = (const float *)(uintptr_t)i->arg[1];
        float *y = (float *)(uintptr_t)i->arg[0];
        for (uint64_t k = 0; k < i->arg[2]; k++)
            y[k] = (float)((double)x[k] * factor);
        return;
    }
    for (uint64_t k = 0; k < i->arg[2]; k++) {
        double x = load(type, from + k * size), y = x * factor;
        if (i->arg[5]) y = pow(x, (double)(uint32_t)i->arg[5]);
        store(type, to + k * size, y);
    }
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

bool kernel_run(const item *i)
{
    const char *name = i->f->name + strlen("stepcast_");
    if (strcmp(name, "mark") == 0)
        mark(i);
    else if (strcmp(name, "hold") == 0)
        return held(i);
    else if (strcmp(name, "spread") == 0)
        spread(i);
    else if (strncmp(name, "scale_", 6) == 0)
        scale(i, name + 6);
    else if (strncmp(name, "moments_", 8) == 0)
        moments(i, name + 8);
    else if (strncmp(name, "noise_", 6) == 0)
        noise(i, name + 6);
    else
        abort();
    return true;
}
