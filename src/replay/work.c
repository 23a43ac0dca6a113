/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - recorded kernels by pass, kind and layer. */
#include "replay/build.h"
#include "replay/replay_work.h"
#include "replay/shapes.h"

#include <stdlib.h>
#include <string.h>

const char *const sc_work_pass_names[] = {"forward", "backward", "update",
                                          "else", NULL};
const char *const sc_work_kind_names[] = {
    "products",      "attention", "norms", "other kernels",
    "communication", "copies",    NULL};

/* Of one pass of a micro-batch; more are not looked through. */
#define MOST_KERNELS 20000

typedef struct piece {
    sc_time launched, dur;
    uint32_t op;
    uint32_t name; /* of the kernel */
    uint8_t pass;  /* sc_work_pass */
    uint32_t step;
} piece;

typedef struct work {
    const replay_rank *r;
    sc_step_work *out;
    uint32_t n;
    piece *v; /* [n] kernels in the order of their launches */
    sc_arena *a;
    sc_err *err;
} work;

/* ---- kinds --------------------------------------------------------------- */

/* By words of the names of kernels; the first that is found counts. */
static const struct {
    const char *word;
    sc_work_kind kind;
} words[] = {
    {"LogSoftMax", SC_WORK_KERNELS}, /* of the loss */
    {"flash", SC_WORK_ATTENTION},     {"fmha", SC_WORK_ATTENTION},
    {"attention", SC_WORK_ATTENTION}, {"attn", SC_WORK_ATTENTION},
    {"oftmax", SC_WORK_ATTENTION},    {"SoftMax", SC_WORK_ATTENTION},
    {"gemm", SC_WORK_PRODUCTS},       {"Cijk_", SC_WORK_PRODUCTS},
    {"nvjet", SC_WORK_PRODUCTS},      {"cutlass", SC_WORK_PRODUCTS},
    {"conv", SC_WORK_PRODUCTS},       {"norm", SC_WORK_NORMS},
    {"Norm", SC_WORK_NORMS},
};

static bool kind_by_kernel(const char *name, sc_work_kind *out)
{
    for (size_t i = 0; i < SC_COUNT(words); i++)
        if (strstr(name, words[i].word)) {
            *out = words[i].kind;
            return true;
        }
    return false;
}

/* Softmax belongs to attention, but that of the loss does not. */
static bool kind_by_operator(const char *name, sc_work_kind *out)
{
    sc_kernel_kind kind;
    bool batched, known = shape_kind(name, &kind, &batched);
    *out = SC_WORK_KERNELS;
    if (!known) return false;
    switch (kind) {
    case SC_K_GEMM:
    case SC_K_CONV:
        *out = batched ? SC_WORK_ATTENTION : SC_WORK_PRODUCTS;
        break;
    case SC_K_FLASH: *out = SC_WORK_ATTENTION; break;
    case SC_K_SOFTMAX:
        if (!strstr(name, "log_softmax")) *out = SC_WORK_ATTENTION;
        break;
    case SC_K_NORM:
    case SC_K_RMS_NORM:
    case SC_K_BATCH_NORM: *out = SC_WORK_NORMS; break;
    default: break;
    }
    return true;
}

static uint32_t operator_of(const replay_rank *r, uint32_t op)
{
    uint32_t item = r->op[op].item;
    return item == REPLAY_NONE ? REPLAY_NONE : r->item[item].op;
}

static sc_work_kind kind_of(const replay_rank *r, uint32_t op)
{
    const sc_trace_span *s = replay_span(r, r->op[op].span);
    uint32_t inner = operator_of(r, op);
    sc_work_kind by_op = SC_WORK_KERNELS, by_kernel = SC_WORK_KERNELS;
    switch (replay_class_of(s)) {
    case SC_REPLAY_COMM: return SC_WORK_COLLS;
    case SC_REPLAY_MEMORY: return SC_WORK_COPIES;
    default: break;
    }
    bool of_kernel = kind_by_kernel(r->m->name[s->name], &by_kernel);
    bool of_op =
        inner != REPLAY_NONE &&
        kind_by_operator(r->m->name[replay_span(r, inner)->name], &by_op);
    if (!of_op) return by_kernel;
    /* other kernels of a product add its bias, or sum up its parts */
    return by_op == SC_WORK_PRODUCTS && !of_kernel ? SC_WORK_KERNELS : by_op;
}

/* ---- passes -------------------------------------------------------------- */

static sc_work_pass pass_of(const replay_rank *r, uint32_t op)
{
    uint32_t item = r->op[op].item;
    uint32_t span = item == REPLAY_NONE ? REPLAY_NONE : r->item[item].span;
    bool any = false;
    for (; span != REPLAY_NONE; span = r->parent[span]) {
        const sc_trace_span *s = replay_span(r, span);
        const char *name = r->m->name[s->name];
        if (s->kind == SC_SPAN_CALL || s->kind == SC_SPAN_STEP) continue;
        any = true;
        if (strncmp(name, "Optimizer.", 10) == 0) return SC_WORK_UPDATE;
        if (strstr(name, "Backward") || strstr(name, "backward") ||
            strncmp(name, "autograd::engine", 16) == 0 ||
            strncmp(name, "torch::autograd::", 17) == 0)
            return SC_WORK_BACKWARD;
    }
    return any ? SC_WORK_FORWARD : SC_WORK_ELSE;
}

/* ---- layers -------------------------------------------------------------- */

static int by_launch(const void *p, const void *q)
{
    const piece *a = p, *b = q;
    if (a->launched != b->launched) return a->launched < b->launched ? -1 : 1;
    return (a->op > b->op) - (a->op < b->op);
}

/* How many kernels from `i` on equal those `period` later. */
static uint32_t equal_run(const piece *v, uint32_t n, uint32_t i,
                          uint32_t period)
{
    uint32_t k = i;
    while (k + period < n && v[k].name == v[k + period].name) k++;
    return k - i;
}

/* The longest period that repeats `times` times; 0: none. `*begin` is where. */
static uint32_t find_period(const piece *v, uint32_t n, uint32_t times,
                            uint32_t *begin)
{
    for (uint32_t period = n / times; period > 0; period--)
        for (uint32_t i = 0; i + period * times <= n;) {
            uint32_t run = equal_run(v, n, i, period);
            *begin = i;
            if (run >= period * (times - 1)) return period;
            i += run + 1;
        }
    return 0;
}

/* How often the kernels of a run of `period` really repeat: what seems to be one
 * layer may be several, and may go on. `*period` becomes that of one. */
static uint32_t count_repeats(const piece *v, uint32_t n, uint32_t begin,
                              uint32_t times, uint32_t *period)
{
    uint32_t all = *period * times;
    for (uint32_t d = 1; d <= *period / 2; d++)
        if (*period % d == 0 && equal_run(v, n, begin, d) >= all - d) {
            *period = d;
            break;
        }
    return (equal_run(v, n, begin, *period) + *period) / *period;
}

/* Adds the kernels of one pass, which runs through layers from the first to the
 * last, or backward, if it has as many layers. */
static void add_layers(work *x, const piece *v, uint32_t n, sc_work_pass pass)
{
    uint32_t times = x->out->n_layers, begin = 0;
    if (n < times || n > MOST_KERNELS) return;
    uint32_t period = find_period(v, n, times, &begin);
    if (2 * period * times < n) return; /* something small beside the layers */
    uint32_t repeats = count_repeats(v, n, begin, times, &period);
    if (x->out->repeats[pass] != times) x->out->repeats[pass] = repeats;
    for (uint32_t i = 0; repeats == times && i < n; i++) {
        uint32_t at = i < begin ? 0 : 1 + (i - begin) / period;
        if (at > times) at = times + 1;
        if (pass == SC_WORK_BACKWARD) at = times + 1 - at;
        x->out->layer[at].pass[pass] += v[i].dur;
    }
}

/* Where the run of kernels of one pass of a micro-batch ends. */
static uint32_t end_of_pass(const work *x, uint32_t i)
{
    uint32_t end = i + 1;
    while (end < x->n && x->v[end].pass == x->v[i].pass &&
           x->v[end].step == x->v[i].step)
        end++;
    return end;
}

/* Shorter runs than half of the longest, as a norm of gradients, are no pass through
 * the layers. */
static sc_status find_layers(work *x)
{
    sc_step_work *out = x->out;
    uint32_t longest[SC_N_WORK_PASSES] = {0};
    out->layer = SC_NEW_N(x->a, sc_layer_work, (size_t)out->n_layers + 2);
    if (!out->layer) return sc_error_nomem(x->err);
    if (out->n_layers < 2) return SC_OK;
    for (uint32_t i = 0, end; i < x->n; i = end) {
        uint32_t *most = &longest[x->v[i].pass];
        end = end_of_pass(x, i);
        if (end - i > *most) *most = end - i;
    }
    for (uint32_t i = 0, end; i < x->n; i = end) {
        sc_work_pass pass = x->v[i].pass;
        end = end_of_pass(x, i);
        if (pass <= SC_WORK_BACKWARD && 2 * (end - i) >= longest[pass])
            add_layers(x, x->v + i, end - i, pass);
    }
    return SC_OK;
}

/* The step in which something was launched. */
static uint32_t step_of(const replay_rank *r, sc_time launched)
{
    uint32_t i = 0;
    while (i + 1 < r->n_steps && r->step[i + 1].from - r->from <= launched) i++;
    return i;
}

static void per_step(sc_step_work *w, uint32_t steps)
{
    for (int p = 0; p < SC_N_WORK_PASSES; p++)
        for (int k = 0; k < SC_N_WORK_KINDS; k++) w->time[p][k] /= steps;
    for (uint32_t i = 0; i < w->n_layers + 2; i++)
        for (int p = 0; p < 2; p++) w->layer[i].pass[p] /= steps;
}

sc_status sc_replay_work(const sc_replay_model *m, uint32_t rank,
                         uint32_t n_layers, sc_arena *a, sc_step_work *out,
                         sc_err *err)
{
    const replay_rank *r = &m->rank[rank];
    *out = (sc_step_work){.n_layers = n_layers};
    work x = {.r = r, .out = out, .a = a, .err = err};
    x.v = SC_NEW_N(a, piece, r->n_ops);
    if (!x.v) return sc_error_nomem(err);
    for (uint32_t i = 0; i < r->n_ops; i++) {
        const replay_device_op *op = &r->op[i];
        if (op->start < 0 || op->start >= r->to - r->from) continue;
        sc_work_pass pass = pass_of(r, i);
        sc_work_kind kind = kind_of(r, i);
        out->time[pass][kind] += op->dur;
        if (kind == SC_WORK_COLLS || kind == SC_WORK_COPIES) continue;
        sc_time launched = replay_launched(r, i);
        x.v[x.n++] = (piece){launched,
                             op->dur,
                             i,
                             replay_span(r, op->span)->name,
                             (uint8_t)pass,
                             step_of(r, launched)};
    }
    if (x.n) qsort(x.v, x.n, sizeof *x.v, by_launch);
    SC_TRY(find_layers(&x));
    per_step(out, r->n_steps);
    return SC_OK;
}
