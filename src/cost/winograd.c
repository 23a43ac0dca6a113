/* SPDX-License-Identifier: Apache-2.0 */
/*
 * winograd.c - convolutions with fewer multiplications.
 *
 * F(t x t, r x r) computes a tile of t x t results with (t + r - 1)^2 products
 * instead of t^2 r^2.  Tiles of the input and the window are transformed; each
 * of the (t + r - 1)^2 elements is one product of (tiles, channels in, channels
 * out), whose results are transformed back (Lavin and Gray 2016).  Both
 * gradients work the same way. cuDNN has these algorithms for devices without
 * matrix units: one kernel for tiles of 2, and separate transform kernels for
 * larger tiles.
 */
#include "cost/winograd.h"

#include <math.h>
#include <string.h>

typedef struct algorithm {
    uint8_t side, tile;
    bool fused;
} algorithm;

/* Names in profiles: winograd_128x128, winograd_nonfused 4x4 and 9x9_5x5. */
static const algorithm algorithms[] = {
    {3, 2, true}, {3, 4, false}, {5, 5, false}};

/* The transforms lose accuracy on matrix units, so convolutions run there
 * without them. */
static bool without_matrix_units(const sc_device *d, sc_precision p)
{
    bool half = p == SC_FP16 || p == SC_BF16;
    if (d->array || !d->vendor || strcmp(d->vendor, "nvidia") != 0)
        return false;
    if (p == SC_FP32) return d->peak[p] <= d->vector_flops;
    return half && d->peak[p] > 0 && d->peak[p] <= 2 * d->vector_flops;
}

/* Gradients of weights use the algorithms with separate transforms. */
static const algorithm *find(const sc_kernel *k, uint32_t i)
{
    for (size_t a = 0; a < SC_COUNT(algorithms); a++) {
        if (algorithms[a].side != k->window.side) continue;
        if (algorithms[a].fused && k->window.weights) continue;
        if (i-- == 0) return &algorithms[a];
    }
    return NULL;
}

bool kernel_winograd_of(const sc_device *d, const sc_kernel *k, uint32_t i,
                        kernel_winograd *out)
{
    const sc_window *w = &k->window;
    if (w->side == 0 || k->batch > 1) return false;
    if (!without_matrix_units(d, k->precision)) return false;
    const algorithm *a = find(k, i);
    if (!a) return false;
    double area = (double)w->side * w->side, t = a->tile;
    double products = pow(t + w->side - 1, 2);
    double positions = (double)(w->weights ? k->k : k->m);
    double samples = positions / ((double)w->rows * w->cols);
    double tiles = samples * ceil(w->rows / t) * ceil(w->cols / t);
    double from = round((double)(w->weights ? k->n : k->k) / area);
    double to = (double)(w->weights ? k->m : k->n);
    double e = sc_precision_bytes(k->precision);
    *out = (kernel_winograd){.fused = a->fused, .product = *k};
    sc_kernel *p = &out->product;
    p->window = (sc_window){0};
    p->batch = (uint64_t)products;
    p->m = (uint64_t)(w->weights ? to : ceil(tiles));
    p->n = (uint64_t)(w->weights ? from : to);
    p->k = (uint64_t)(w->weights ? ceil(tiles) : from);
    if (p->m == 0 || p->n == 0 || p->k == 0) return false;
    /* all transformed elements of a window, and of a tile */
    double window = e * products * from * to;
    if (a->fused) {
        p->bytes += 2 * window;
        return true;
    }
    p->kind = SC_K_GEMM;
    p->bytes = 0;
    out->transforms = 3;
    out->moved = k->bytes + window + e * products * tiles * (from + to);
    return true;
}
