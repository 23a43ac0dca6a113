/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mlp.c - data-parallel training of a multi-layer perceptron: as soon as a
 * layer's gradient is there, an MPI_Iallreduce of it goes off, while the layers
 * below compute theirs.
 *
 * -l layers -w width -b batch per rank -s steps; -d 1: every rank has its own
 * data, 0: all have the same.
 */
#include "bed.h"

typedef struct layer {
    float *w, *dw;   /* (width, width) */
    float *in, *out; /* (batch, width) */
} layer;

typedef struct mlp {
    int n, width, batch;
    layer *layer;                     /* [n] */
    float *x, *target, *grad, *below; /* (batch, width) */
    MPI_Request *flying;
} mlp;

static mlp make(int n, int width, int batch, uint64_t data_seed)
{
    uint64_t seed = 1;
    size_t ww = (size_t)width * (size_t)width;
    size_t bw = (size_t)batch * (size_t)width;
    mlp m = {.n = n, .width = width, .batch = batch};
    m.layer = bed_alloc((size_t)n, sizeof *m.layer);
    m.flying = bed_alloc((size_t)n, sizeof *m.flying);
    for (int i = 0; i < n; i++) {
        layer *l = &m.layer[i];
        l->w = bed_floats(ww, sqrtf(3.0f / (float)width), &seed);
        l->dw = bed_alloc(ww, sizeof(float));
        l->out = bed_alloc(bw, sizeof(float));
    }
    m.x = bed_floats(bw, 1, &data_seed);
    m.target = bed_floats(bw, 0.5f, &data_seed);
    m.grad = bed_alloc(bw, sizeof(float));
    m.below = bed_alloc(bw, sizeof(float));
    return m;
}

static double forward(mlp *m)
{
    size_t bw = (size_t)m->batch * (size_t)m->width;
    float *x = m->x;
    for (int i = 0; i < m->n; i++) {
        layer *l = &m->layer[i];
        l->in = x;
        memset(l->out, 0, bw * sizeof(float));
        bed_mul(l->out, x, l->w, m->batch, m->width, m->width);
        for (size_t j = 0; j < bw && i + 1 < m->n; j++)
            l->out[j] = l->out[j] > 0 ? l->out[j] : 0.1f * l->out[j];
        x = l->out;
    }
    double loss = 0;
    for (size_t j = 0; j < bw; j++) {
        float d = x[j] - m->target[j];
        loss += (double)d * (double)d;
        m->grad[j] = 2 * d / (float)bw;
    }
    return loss / (double)bw;
}

static void backward(mlp *m)
{
    size_t bw = (size_t)m->batch * (size_t)m->width;
    size_t ww = (size_t)m->width * (size_t)m->width;
    for (int i = m->n - 1; i >= 0; i--) {
        layer *l = &m->layer[i];
        memset(l->dw, 0, ww * sizeof(float));
        bed_mul_ta(l->dw, l->in, m->grad, m->batch, m->width, m->width);
        MPI_Iallreduce(MPI_IN_PLACE, l->dw, (int)ww, MPI_FLOAT, MPI_SUM,
                       MPI_COMM_WORLD, &m->flying[i]);
        if (i == 0) break;
        memset(m->below, 0, bw * sizeof(float));
        bed_mul_tb(m->below, m->grad, l->w, m->batch, m->width, m->width);
        for (size_t j = 0; j < bw; j++)
            m->grad[j] = m->below[j] * (l->in[j] > 0 ? 1.0f : 0.1f);
    }
}

static void update(mlp *m, float rate, int ranks)
{
    size_t ww = (size_t)m->width * (size_t)m->width;
    for (int i = m->n - 1; i >= 0; i--) {
        MPI_Wait(&m->flying[i], MPI_STATUS_IGNORE);
        layer *l = &m->layer[i];
        for (size_t j = 0; j < ww; j++)
            l->w[j] -= rate / (float)ranks * l->dw[j];
    }
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int steps = (int)bed_option(argc, argv, "-s", 30);
    long own = bed_option(argc, argv, "-d", 0);
    mlp m = make((int)bed_option(argc, argv, "-l", 6),
                 (int)bed_option(argc, argv, "-w", 256),
                 (int)bed_option(argc, argv, "-b", 32),
                 own ? 1000 + (uint64_t)rank : 1000);
    double *s = bed_alloc((size_t)steps, sizeof *s), loss = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < steps; i++) {
        double t = MPI_Wtime();
        loss = forward(&m);
        backward(&m);
        update(&m, 20, ranks);
        s[i] = MPI_Wtime() - t;
    }
    double mean = 0;
    MPI_Allreduce(&loss, &mean, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    bed_report("mlp", s, steps, mean / ranks);
    MPI_Finalize();
    return 0;
}
