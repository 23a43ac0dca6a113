/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.c - one model over all ranks, a stage each: activations go up and
 * gradients come down as messages, micro-batch by micro-batch (all forward,
 * then all backward).
 *
 * -l layers per stage -w width -b rows of a micro-batch -m micro-batches
 * -s steps
 */
#include "bed.h"

typedef struct stage {
    int n, width, rows, micro, rank, ranks;
    float **w, **dw; /* [n] (width, width) */
    float *act;      /* (micro, n + 1, rows, width) */
    float *target;   /* (micro, rows, width) */
    float *grad, *below;
} stage;

static size_t block(const stage *p)
{
    return (size_t)p->rows * (size_t)p->width;
}

static float *act(const stage *p, int micro, int layer)
{
    return p->act + (size_t)(micro * (p->n + 1) + layer) * block(p);
}

static void forward(stage *p, int k)
{
    if (p->rank > 0)
        MPI_Recv(act(p, k, 0), (int)block(p), MPI_FLOAT, p->rank - 1, k,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < p->n; i++) {
        float *out = act(p, k, i + 1);
        memset(out, 0, block(p) * sizeof *out);
        bed_mul(out, act(p, k, i), p->w[i], p->rows, p->width, p->width);
        for (size_t j = 0; j < block(p); j++) out[j] = tanhf(out[j]);
    }
    if (p->rank + 1 < p->ranks)
        MPI_Send(act(p, k, p->n), (int)block(p), MPI_FLOAT, p->rank + 1, k,
                 MPI_COMM_WORLD);
}

/* The loss's gradient of the last stage, or what came down. */
static double gradient(stage *p, int k)
{
    if (p->rank + 1 < p->ranks) {
        MPI_Recv(p->grad, (int)block(p), MPI_FLOAT, p->rank + 1, k,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return 0;
    }
    double loss = 0;
    const float *y = act(p, k, p->n), *t = p->target + (size_t)k * block(p);
    for (size_t j = 0; j < block(p); j++) {
        float d = y[j] - t[j];
        loss += (double)d * (double)d;
        p->grad[j] = 2 * d / (float)block(p);
    }
    return loss / (double)block(p);
}

static double backward(stage *p, int k)
{
    double loss = gradient(p, k);
    for (int i = p->n - 1; i >= 0; i--) {
        const float *y = act(p, k, i + 1);
        for (size_t j = 0; j < block(p); j++) p->grad[j] *= 1 - y[j] * y[j];
        bed_mul_ta(p->dw[i], act(p, k, i), p->grad, p->rows, p->width,
                   p->width);
        memset(p->below, 0, block(p) * sizeof *p->below);
        bed_mul_tb(p->below, p->grad, p->w[i], p->rows, p->width, p->width);
        float *swap = p->grad;
        p->grad = p->below;
        p->below = swap;
    }
    if (p->rank > 0)
        MPI_Send(p->grad, (int)block(p), MPI_FLOAT, p->rank - 1, k,
                 MPI_COMM_WORLD);
    return loss;
}

static double step(stage *p)
{
    size_t ww = (size_t)p->width * (size_t)p->width;
    double loss = 0;
    for (int i = 0; i < p->n; i++) memset(p->dw[i], 0, ww * sizeof(float));
    for (int k = 0; k < p->micro; k++) forward(p, k);
    for (int k = 0; k < p->micro; k++) loss += backward(p, k);
    for (int i = 0; i < p->n; i++)
        for (size_t j = 0; j < ww; j++)
            p->w[i][j] -= 2.0f / (float)p->micro * p->dw[i][j];
    return loss / p->micro;
}

int main(int argc, char **argv)
{
    stage p = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p.ranks);
    p.n = (int)bed_option(argc, argv, "-l", 3);
    p.width = (int)bed_option(argc, argv, "-w", 192);
    p.rows = (int)bed_option(argc, argv, "-b", 16);
    p.micro = (int)bed_option(argc, argv, "-m", 4);
    int steps = (int)bed_option(argc, argv, "-s", 30);
    size_t ww = (size_t)p.width * (size_t)p.width;
    uint64_t seed = 7 + (uint64_t)p.rank, data = 99;
    p.w = bed_alloc((size_t)p.n, sizeof *p.w);
    p.dw = bed_alloc((size_t)p.n, sizeof *p.dw);
    for (int i = 0; i < p.n; i++) {
        p.w[i] = bed_floats(ww, sqrtf(3.0f / (float)p.width), &seed);
        p.dw[i] = bed_alloc(ww, sizeof(float));
    }
    p.act = bed_alloc((size_t)(p.micro * (p.n + 1)) * block(&p), sizeof(float));
    p.target = bed_floats((size_t)p.micro * block(&p), 0.5f, &data);
    for (int k = 0; k < p.micro; k++)
        for (size_t j = 0; j < block(&p); j++)
            act(&p, k, 0)[j] = bed_uniform(&data);
    p.grad = bed_alloc(block(&p), sizeof(float));
    p.below = bed_alloc(block(&p), sizeof(float));
    double *s = bed_alloc((size_t)steps, sizeof *s), loss = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < steps; i++) {
        double t = MPI_Wtime();
        loss = step(&p);
        s[i] = MPI_Wtime() - t;
    }
    MPI_Bcast(&loss, 1, MPI_DOUBLE, p.ranks - 1, MPI_COMM_WORLD);
    bed_report("pipeline", s, steps, loss);
    MPI_Finalize();
    return 0;
}
