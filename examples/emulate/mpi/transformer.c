/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transformer.c - data-parallel training of a small decoder: embeddings,
 * blocks of causal attention and GELU, a cross-entropy loss; every gradient is
 * true, and each block's is reduced as soon as it is there.
 *
 * -l blocks -c channels -a heads -t tokens -b sequences per rank -v vocabulary
 * -s steps; -d 1: every rank has its own data; -g 1: checks gradients against
 * differences instead of training.
 */
#include "bed.h"

typedef struct dims {
    int L, C, H, T, B, V, N; /* blocks channels heads tokens batch words; B T */
} dims;

/* Parameters of a block, or their gradients, side by side. */
typedef struct block {
    float *all;
    float *g1, *b1, *qkv, *proj; /* (C) (C) (C, 3C) (C, C) */
    float *g2, *b2, *up, *down;  /* (C) (C) (C, 4C) (4C, C) */
} block;

typedef struct kept {                   /* of the forward pass */
    float *x, *n1, *r1, *qkv, *att, *y; /* (N,C) (N,C) (N) (N,3C) (B,H,T,T) */
    float *mid, *n2, *r2, *h, *act;     /* (N,C) (N,C) (N) (N,4C) (N,4C) */
} kept;

typedef struct ends { /* embeddings and head: the first and the last chunk */
    float *all, *word, *place, *head; /* (V, C) (T, C) (C, V) */
} ends;

typedef struct net {
    dims d;
    block *p, *g;
    kept *k;
    ends pe, ge;
    float *x, *nf, *rf, *logits; /* (N,C) (N,C) (N) (N,V) */
    float *dx, *a, *b, *wide;    /* (N,C) (N,C) (N,C) (N,4C) */
    int *in, *out;               /* (N) */
    MPI_Request *flying;         /* [L + 1] */
} net;

static size_t block_size(const dims *d)
{
    size_t c = (size_t)d->C;
    return 4 * c + 12 * c * c;
}

static size_t ends_size(const dims *d)
{
    return (size_t)d->C * (size_t)(2 * d->V + d->T);
}

static block make_block(const dims *d)
{
    size_t c = (size_t)d->C;
    block b = {.all = bed_alloc(block_size(d), sizeof(float))};
    float *p = b.all;
    b.g1 = p, p += c;
    b.b1 = p, p += c;
    b.g2 = p, p += c;
    b.b2 = p, p += c;
    b.qkv = p, p += 3 * c * c;
    b.proj = p, p += c * c;
    b.up = p, p += 4 * c * c;
    b.down = p;
    return b;
}

static ends make_ends(const dims *d)
{
    size_t c = (size_t)d->C;
    ends e = {.all = bed_alloc(ends_size(d), sizeof(float))};
    e.word = e.all;
    e.place = e.word + (size_t)d->V * c;
    e.head = e.place + (size_t)d->T * c;
    return e;
}

static float *floats(size_t n, size_t m)
{
    return bed_alloc(n * m, sizeof(float));
}

static kept make_kept(const dims *d)
{
    size_t n = (size_t)d->N, c = (size_t)d->C;
    kept k = {.x = floats(n, c), .n1 = floats(n, c), .r1 = floats(n, 1)};
    k.qkv = floats(n, 3 * c);
    k.att = floats((size_t)d->H * (size_t)d->T, n);
    k.y = floats(n, c);
    k.mid = floats(n, c);
    k.n2 = floats(n, c);
    k.r2 = floats(n, 1);
    k.h = floats(n, 4 * c);
    k.act = floats(n, 4 * c);
    return k;
}

static void draw(float *p, size_t n, float scale, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++) p[i] = scale * bed_uniform(seed);
}

static net make(dims d, uint64_t data)
{
    size_t n = (size_t)d.N, c = (size_t)d.C, l = (size_t)d.L;
    uint64_t seed = 3;
    float s = 1.0f / sqrtf((float)d.C);
    net m = {.d = d};
    m.p = bed_alloc(l, sizeof *m.p);
    m.g = bed_alloc(l, sizeof *m.g);
    m.k = bed_alloc(l, sizeof *m.k);
    for (int i = 0; i < d.L; i++) {
        m.p[i] = make_block(&d);
        m.g[i] = make_block(&d);
        m.k[i] = make_kept(&d);
        draw(m.p[i].all, block_size(&d), s, &seed);
        for (size_t j = 0; j < c; j++) m.p[i].g1[j] += 1, m.p[i].g2[j] += 1;
    }
    m.pe = make_ends(&d);
    m.ge = make_ends(&d);
    draw(m.pe.all, ends_size(&d), s, &seed);
    m.x = floats(n, c);
    m.nf = floats(n, c);
    m.rf = floats(n, 1);
    m.logits = floats(n, (size_t)d.V);
    m.dx = floats(n, c);
    m.a = floats(n, c);
    m.b = floats(n, c);
    m.wide = floats(n, 4 * c);
    m.in = bed_alloc(n, sizeof *m.in);
    m.out = bed_alloc(n, sizeof *m.out);
    m.flying = bed_alloc(l + 1, sizeof *m.flying);
    for (size_t i = 0; i < n; i++) {
        m.in[i] = (int)(bed_next(&data) % (uint64_t)d.V);
        m.out[i] = (m.in[i] * 7 + 3) % d.V; /* something to learn */
    }
    return m;
}

/* ---- layers -------------------------------------------------------------------- */

/* z = (x - mean) * r; r = 1 / standard deviation; both kept. */
static void normalize(float *z, float *r, const float *x, int n, int c)
{
    for (int i = 0; i < n; i++) {
        const float *row = x + (size_t)i * (size_t)c;
        float *out = z + (size_t)i * (size_t)c, mean = 0, var = 0;
        for (int j = 0; j < c; j++) mean += row[j];
        mean /= (float)c;
        for (int j = 0; j < c; j++) var += (row[j] - mean) * (row[j] - mean);
        r[i] = 1 / sqrtf(var / (float)c + 1e-5f);
        for (int j = 0; j < c; j++) out[j] = (row[j] - mean) * r[i];
    }
}

static void scale_shift(float *y, const float *z, const float *g,
                        const float *b, int n, int c)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < c; j++) y[i * c + j] = z[i * c + j] * g[j] + b[j];
}

/* dx += gradient through z of dz. */
static void normalize_back(float *dx, const float *dz, const float *z,
                           const float *r, int n, int c)
{
    for (int i = 0; i < n; i++) {
        const float *d = dz + (size_t)i * (size_t)c;
        const float *v = z + (size_t)i * (size_t)c;
        float mean = 0, along = 0;
        for (int j = 0; j < c; j++) mean += d[j], along += d[j] * v[j];
        mean /= (float)c;
        along /= (float)c;
        for (int j = 0; j < c; j++)
            dx[i * c + j] += r[i] * (d[j] - mean - v[j] * along);
    }
}

/* dy -> dg, db, and dz in its place. */
static void scale_shift_back(float *dy, const float *z, const float *g,
                             float *dg, float *db, int n, int c)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < c; j++) {
            float d = dy[i * c + j];
            dg[j] += d * z[i * c + j];
            db[j] += d;
            dy[i * c + j] = d * g[j];
        }
}

/* One head of one sequence: rows of q, k, v are 3C apart. */
static void attend(const dims *d, const float *qkv, float *att, float *y)
{
    int hs = d->C / d->H, row = 3 * d->C;
    float s = 1 / sqrtf((float)hs);
    for (int t = 0; t < d->T; t++) {
        const float *q = qkv + t * row;
        float *a = att + t * d->T, max = -1e30f, sum = 0;
        for (int u = 0; u <= t; u++) {
            const float *k = qkv + u * row + d->C;
            float dot = 0;
            for (int j = 0; j < hs; j++) dot += q[j] * k[j];
            a[u] = dot * s;
            if (a[u] > max) max = a[u];
        }
        for (int u = 0; u <= t; u++) sum += a[u] = expf(a[u] - max);
        float *out = y + t * d->C;
        for (int j = 0; j < hs; j++) out[j] = 0;
        for (int u = 0; u <= t; u++) {
            const float *v = qkv + u * row + 2 * d->C;
            a[u] /= sum;
            for (int j = 0; j < hs; j++) out[j] += a[u] * v[j];
        }
    }
}

static void attend_back(const dims *d, const float *qkv, const float *att,
                        const float *dy, float *dqkv, float *da)
{
    int hs = d->C / d->H, row = 3 * d->C;
    float s = 1 / sqrtf((float)hs);
    for (int t = 0; t < d->T; t++) {
        const float *a = att + t * d->T, *dout = dy + t * d->C;
        const float *q = qkv + t * row;
        float along = 0;
        for (int u = 0; u <= t; u++) {
            const float *v = qkv + u * row + 2 * d->C;
            float *dv = dqkv + u * row + 2 * d->C;
            da[u] = 0;
            for (int j = 0; j < hs; j++) {
                da[u] += dout[j] * v[j];
                dv[j] += a[u] * dout[j];
            }
            along += da[u] * a[u];
        }
        for (int u = 0; u <= t; u++) {
            float ds = a[u] * (da[u] - along) * s;
            const float *k = qkv + u * row + d->C;
            for (int j = 0; j < hs; j++) {
                dqkv[t * row + j] += ds * k[j];
                dqkv[u * row + d->C + j] += ds * q[j];
            }
        }
    }
}

static void heads(const dims *d, const float *qkv, float *att, float *y)
{
    int hs = d->C / d->H;
    for (int b = 0; b < d->B; b++)
        for (int h = 0; h < d->H; h++)
            attend(d, qkv + b * d->T * 3 * d->C + h * hs,
                   att + (b * d->H + h) * d->T * d->T,
                   y + b * d->T * d->C + h * hs);
}

static void heads_back(const dims *d, const kept *k, const float *dy,
                       float *dqkv)
{
    int hs = d->C / d->H;
    float *da = floats((size_t)d->T, 1);
    for (int b = 0; b < d->B; b++)
        for (int h = 0; h < d->H; h++)
            attend_back(d, k->qkv + b * d->T * 3 * d->C + h * hs,
                        k->att + (b * d->H + h) * d->T * d->T,
                        dy + b * d->T * d->C + h * hs,
                        dqkv + b * d->T * 3 * d->C + h * hs, da);
    free(da);
}

#define GELU_A 0.7978845608f /* sqrt(2 / pi); the tanh form of GELU */
#define GELU_B 0.044715f

static float gelu(float x)
{
    return 0.5f * x * (1 + tanhf(GELU_A * (x + GELU_B * x * x * x)));
}

static float gelu_slope(float x)
{
    float t = tanhf(GELU_A * (x + GELU_B * x * x * x));
    return 0.5f * (1 + t) +
           0.5f * x * (1 - t * t) * GELU_A * (1 + 3 * GELU_B * x * x);
}

/* ---- passes -------------------------------------------------------------------- */

static void add(float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] += y[i];
}

static void zero(float *x, size_t n)
{
    memset(x, 0, n * sizeof *x);
}

/* m->x becomes the block's output. */
static void block_forward(net *m, int i)
{
    const dims *d = &m->d;
    const block *p = &m->p[i];
    kept *k = &m->k[i];
    int N = d->N, C = d->C;
    size_t nc = (size_t)N * (size_t)C;
    memcpy(k->x, m->x, nc * sizeof(float));
    normalize(k->n1, k->r1, m->x, N, C);
    scale_shift(m->a, k->n1, p->g1, p->b1, N, C);
    zero(k->qkv, 3 * nc);
    bed_mul(k->qkv, m->a, p->qkv, N, C, 3 * C);
    heads(d, k->qkv, k->att, k->y);
    bed_mul(m->x, k->y, p->proj, N, C, C);
    memcpy(k->mid, m->x, nc * sizeof(float));
    normalize(k->n2, k->r2, m->x, N, C);
    scale_shift(m->a, k->n2, p->g2, p->b2, N, C);
    zero(k->h, 4 * nc);
    bed_mul(k->h, m->a, p->up, N, C, 4 * C);
    for (size_t j = 0; j < 4 * nc; j++) k->act[j] = gelu(k->h[j]);
    bed_mul(m->x, k->act, p->down, N, 4 * C, C);
}

static double forward(net *m)
{
    const dims *d = &m->d;
    int N = d->N, C = d->C, V = d->V;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < C; j++)
            m->x[i * C + j] =
                m->pe.word[m->in[i] * C + j] + m->pe.place[i % d->T * C + j];
    for (int i = 0; i < d->L; i++) block_forward(m, i);
    normalize(m->nf, m->rf, m->x, N, C);
    zero(m->logits, (size_t)N * (size_t)V);
    bed_mul(m->logits, m->nf, m->pe.head, N, C, V);
    double loss = 0;
    for (int i = 0; i < N; i++) { /* logits become their gradient */
        float *z = m->logits + (size_t)i * (size_t)V, max = z[0], sum = 0;
        for (int j = 1; j < V; j++) max = z[j] > max ? z[j] : max;
        for (int j = 0; j < V; j++) sum += z[j] = expf(z[j] - max);
        loss -= log((double)(z[m->out[i]] / sum));
        for (int j = 0; j < V; j++) z[j] /= sum * (float)N;
        z[m->out[i]] -= 1 / (float)N;
    }
    return loss / N;
}

/* m->dx: gradient by the block's output -> by its input. */
static void block_backward(net *m, int i)
{
    const dims *d = &m->d;
    const block *p = &m->p[i];
    block *g = &m->g[i];
    kept *k = &m->k[i];
    int N = d->N, C = d->C;
    size_t nc = (size_t)N * (size_t)C;
    zero(g->all, block_size(d));
    bed_mul_ta(g->down, k->act, m->dx, N, 4 * C, C);
    zero(m->wide, 4 * nc);
    bed_mul_tb(m->wide, m->dx, p->down, N, C, 4 * C);
    for (size_t j = 0; j < 4 * nc; j++) m->wide[j] *= gelu_slope(k->h[j]);
    scale_shift(m->a, k->n2, p->g2, p->b2, N, C);
    bed_mul_ta(g->up, m->a, m->wide, N, C, 4 * C);
    zero(m->b, nc);
    bed_mul_tb(m->b, m->wide, p->up, N, 4 * C, C);
    scale_shift_back(m->b, k->n2, p->g2, g->g2, g->b2, N, C);
    normalize_back(m->dx, m->b, k->n2, k->r2, N, C);

    bed_mul_ta(g->proj, k->y, m->dx, N, C, C);
    zero(m->b, nc);
    bed_mul_tb(m->b, m->dx, p->proj, N, C, C);
    zero(m->wide, 3 * nc);
    heads_back(d, k, m->b, m->wide);
    scale_shift(m->a, k->n1, p->g1, p->b1, N, C);
    bed_mul_ta(g->qkv, m->a, m->wide, N, C, 3 * C);
    zero(m->b, nc);
    bed_mul_tb(m->b, m->wide, p->qkv, N, 3 * C, C);
    scale_shift_back(m->b, k->n1, p->g1, g->g1, g->b1, N, C);
    normalize_back(m->dx, m->b, k->n1, k->r1, N, C);
}

static void reduce(net *m, float *gradient, size_t n, int i)
{
    MPI_Iallreduce(MPI_IN_PLACE, gradient, (int)n, MPI_FLOAT, MPI_SUM,
                   MPI_COMM_WORLD, &m->flying[i]);
}

static void backward(net *m)
{
    const dims *d = &m->d;
    int N = d->N, C = d->C, V = d->V;
    zero(m->ge.all, ends_size(d));
    bed_mul_ta(m->ge.head, m->nf, m->logits, N, C, V);
    zero(m->b, (size_t)N * (size_t)C);
    bed_mul_tb(m->b, m->logits, m->pe.head, N, V, C);
    zero(m->dx, (size_t)N * (size_t)C);
    normalize_back(m->dx, m->b, m->nf, m->rf, N, C);
    for (int i = d->L - 1; i >= 0; i--) {
        block_backward(m, i);
        reduce(m, m->g[i].all, block_size(d), i);
    }
    for (int i = 0; i < N; i++) {
        add(m->ge.word + m->in[i] * C, m->dx + i * C, (size_t)C);
        add(m->ge.place + i % d->T * C, m->dx + i * C, (size_t)C);
    }
    reduce(m, m->ge.all, ends_size(d), d->L);
}

static void descend(float *p, const float *g, size_t n, float rate)
{
    for (size_t i = 0; i < n; i++) p[i] -= rate * g[i];
}

static void update(net *m, float rate)
{
    MPI_Waitall(m->d.L + 1, m->flying, MPI_STATUSES_IGNORE);
    for (int i = 0; i < m->d.L; i++)
        descend(m->p[i].all, m->g[i].all, block_size(&m->d), rate);
    descend(m->pe.all, m->ge.all, ends_size(&m->d), rate);
}

/* The largest deviation of a few derivatives from central differences. */
static double check_gradient(net *m, float *p, const float *g, size_t n)
{
    double worst = 0;
    for (size_t i = 0; i < n; i += n / 40 + 1) {
        float was = p[i], h = 1e-2f;
        p[i] = was + h;
        double up = forward(m);
        p[i] = was - h;
        double slope = (up - forward(m)) / (2 * (double)h);
        p[i] = was;
        double off = fabs(slope - (double)g[i]) / (1e-3 + fabs(slope));
        if (off > worst) worst = off;
    }
    return worst;
}

static int check_gradients(net *m)
{
    forward(m);
    backward(m);
    MPI_Waitall(m->d.L + 1, m->flying, MPI_STATUSES_IGNORE);
    double worst = check_gradient(m, m->pe.all, m->ge.all, ends_size(&m->d));
    for (int i = 0; i < m->d.L; i++) {
        double w =
            check_gradient(m, m->p[i].all, m->g[i].all, block_size(&m->d));
        if (w > worst) worst = w;
    }
    printf("transformer: gradients deviate by %.2g at most\n", worst);
    return worst > 0.05;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    dims d = {.L = (int)bed_option(argc, argv, "-l", 3),
              .C = (int)bed_option(argc, argv, "-c", 96),
              .H = (int)bed_option(argc, argv, "-a", 4),
              .T = (int)bed_option(argc, argv, "-t", 32),
              .B = (int)bed_option(argc, argv, "-b", 4),
              .V = (int)bed_option(argc, argv, "-v", 128)};
    d.N = d.B * d.T;
    int steps = (int)bed_option(argc, argv, "-s", 30);
    long own = bed_option(argc, argv, "-d", 0);
    net m = make(d, own ? 50 + (uint64_t)rank : 50);
    if (bed_option(argc, argv, "-g", 0)) {
        int wrong = ranks == 1 && check_gradients(&m);
        MPI_Finalize();
        return wrong;
    }
    double *s = bed_alloc((size_t)steps, sizeof *s), loss = 0, mean = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < steps; i++) {
        double t = MPI_Wtime();
        loss = forward(&m);
        backward(&m);
        update(&m, 0.5f / (float)ranks);
        s[i] = MPI_Wtime() - t;
    }
    MPI_Allreduce(&loss, &mean, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    bed_report("transformer", s, steps, mean / ranks);
    MPI_Finalize();
    return 0;
}
