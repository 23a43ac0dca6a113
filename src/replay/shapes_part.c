/* SPDX-License-Identifier: Apache-2.0 */
/* shapes_part.c - the kernels of an operator that launches several. */
#include "replay/shapes.h"

#include <math.h>
#include <string.h>

static const char *found(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strstr(text, *words)) return *words;
    return NULL;
}

/* Names that only kernels beside the main one of an operator have: they move
 * tensors into other orders, prepare addresses, or add up parts. */
static const char *const of_result[] = {"splitKreduce", "splitkreduce",
                                        "splitK_reduce", NULL};
static const char *const of_nothing[] = {"Offsets", "ScanInit",
                                         "generateWinogradTiles", NULL};
static const char *const of_tensors[] = {"ranspose",
                                         "nchwToNhwc",
                                         "nhwcToNchw",
                                         "SubTensorOp",
                                         "scalePackedTensor",
                                         "winogradForwardData",
                                         "winogradForwardOutput",
                                         "winogradForwardFilter",
                                         "winogradWgrad",
                                         "elementwise_kernel",
                                         "im2col",
                                         "fft2d_r2c",
                                         "fft2d_c2r",
                                         NULL};

static uint64_t most_of(const shape_inputs *in)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < in->n; i++) {
        uint64_t n = shape_elements(&in->tensor[i]);
        if (n > most) most = n;
    }
    return most;
}

static bool product(const sc_kernel *k)
{
    return k->kind == SC_K_GEMM || k->kind == SC_K_CONV;
}

/* Of a derivative, each element-wise kernel reads two tensors and writes one. */
static double tensors_each(const sc_kernel *k)
{
    return k->backward ? 3 : 2;
}

static sc_kernel moved(const sc_kernel *k, double elements)
{
    double e = sc_precision_bytes(k->precision);
    return sc_kernel_moves(SC_K_ELEMENT, k->precision, fmax(1, e * elements));
}

/* Batch norm in two kernels: sums over each channel, then a pass over all. */
static sc_kernel batch_norm(const char *kernel, const sc_kernel *k)
{
    double n = (double)k->m * (double)k->k;
    if (strstr(kernel, "collect_statistics")) return moved(k, n);
    if (strstr(kernel, "transform_input")) return moved(k, 2 * n);
    return *k;
}

/* The sums of a layer norm's scale and shift read the gradient and the input. */
static sc_kernel norm(const char *kernel, const sc_kernel *k)
{
    double n = (double)k->m * (double)k->k;
    return strstr(kernel, "GammaBeta") ? moved(k, 2 * n) : *k;
}

sc_precision shape_kernel_precision(const char *kernel, sc_precision p)
{
    bool half = strstr(kernel, "f16") != NULL;
    bool tf32 =
        strstr(kernel, "tf32") || (strstr(kernel, "tensorop_s1688") && !half);
    return p == SC_FP32 && tf32 ? SC_TF32 : p;
}

/* PyTorch has these for operands that are not all in one order without gaps. */
static const char *const one_by_one[] = {"::elementwise_kernel<",
                                         "elementwise_kernel_manual_unroll",
                                         "CatArrayBatchedCopy", NULL};

void shape_part(const char *kernel, const shape_inputs *in, sc_kernel *inout)
{
    sc_kernel *k = inout;
    bool rows = k->kind == SC_K_SOFTMAX || k->kind == SC_K_NORM ||
                k->kind == SC_K_RMS_NORM || k->kind == SC_K_BATCH_NORM;
    if (k->kind == SC_K_ELEMENT && found(kernel, one_by_one))
        k->m = most_of(in);
    if (!product(k) && !rows) return;
    double result = (double)k->batch * (double)k->m * (double)k->n;
    if (rows) result = (double)k->m * (double)k->k;
    double most = fmax(result, (double)most_of(in));
    if (found(kernel, of_nothing))
        *k = moved(k, 0);
    else if (found(kernel, of_result))
        *k = moved(k, 4 * result);
    else if (found(kernel, of_tensors))
        *k = moved(k, tensors_each(k) * most);
    else if (k->kind == SC_K_BATCH_NORM)
        *k = batch_norm(kernel, k);
    else if (k->kind == SC_K_NORM)
        *k = norm(kernel, k);
}
