/* SPDX-License-Identifier: Apache-2.0 */
/* prices.c - prices of parts of tables, and of exchanges. */
#include "shard/prices.h"

#include "cost/cost_op.h"
#include "cost/cost_optimizer.h"

#include <math.h>

#define FIRST_SIZE 1024.0 /* bytes, of curves of exchanges */
#define ALIGNED    4      /* values of a column part are a multiple of it */

const char *const sc_shard_split_names[] = {"table", "rows", "columns", "data",
                                            NULL};

#define NAME(id, name, text) name,
#define TEXT(id, name, text) text,
const char *const sc_sharder_names[] = {SC_SHARDERS(NAME) NULL};
const char *const sc_sharder_texts[] = {SC_SHARDERS(TEXT) NULL};

/* ---- variants */

uint32_t shard_variant(const sc_shard_place *x)
{
    uint32_t log = x->parts >= 8 ? 3 : x->parts >= 4 ? 2 : 1;
    switch ((sc_shard_split)x->split) {
    case SC_SHARD_ROWS: return log;
    case SC_SHARD_COLUMNS: return 3 + log;
    case SC_SHARD_DATA: return 7;
    default: return 0;
    }
}

void shard_variant_of(uint32_t variant, sc_shard_place *out)
{
    *out = (sc_shard_place){.split = SC_SHARD_TABLE, .parts = 1};
    if (variant == 7)
        *out = (sc_shard_place){.split = SC_SHARD_DATA};
    else if (variant >= 4)
        *out = (sc_shard_place){.split = SC_SHARD_COLUMNS,
                                .parts = (uint8_t)(1u << (variant - 3))};
    else if (variant >= 1)
        *out = (sc_shard_place){.split = SC_SHARD_ROWS,
                                .parts = (uint8_t)(1u << variant)};
}

bool shard_possible(const sc_shard_prices *p, uint32_t table, uint32_t variant)
{
    const sc_shard_table *t = &p->job->table[table];
    sc_shard_place x;
    shard_variant_of(variant, &x);
    if (variant == 0) return true;
    if (p->n < 2 || x.parts > p->n) return false;
    if (x.split == SC_SHARD_ROWS) return t->rows >= x.parts;
    if (x.split == SC_SHARD_COLUMNS)
        return fmod(t->width, ALIGNED * x.parts) == 0;
    return true;
}

/* ---- parts of tables */

typedef struct shape {
    const sc_shard_table *t;
    double samples, rows, width; /* of a part */
    double row_parts;
    bool data;
} shape;

static shape shape_of(const sc_shard_prices *p, uint32_t table,
                      uint32_t variant)
{
    sc_shard_place x;
    shard_variant_of(variant, &x);
    const sc_shard_table *t = &p->job->table[table];
    bool rows = x.split == SC_SHARD_ROWS, cols = x.split == SC_SHARD_COLUMNS;
    bool data = x.split == SC_SHARD_DATA;
    return (shape){.t = t,
                   .samples = p->job->batch / (data ? p->n : 1),
                   .rows = t->rows / (rows ? x.parts : 1),
                   .width = t->width / (cols ? x.parts : 1),
                   .row_parts = rows ? x.parts : 1,
                   .data = data};
}

static sc_op_work work_of(const sc_shard_prices *p, const shape *s,
                          sc_op_pass pass)
{
    double elements = s->samples * s->width;
    double mean = ceil((double)p->job->n_tables / p->n);
    return (sc_op_work){.type = SC_NET_EMBED,
                        .pass = (uint8_t)pass,
                        .elements = elements,
                        .each = SHARD_VALUE,
                        .x = SHARD_INDEX * s->samples * s->t->pooling /
                             s->row_parts,
                        .y = SHARD_VALUE * elements,
                        .w = SHARD_VALUE * s->rows * s->width,
                        .lookups = s->t->pooling,
                        .access = &s->t->access,
                        .table_rows = s->t->rows,
                        .table_width = s->width,
                        .row_parts = s->row_parts,
                        .tables = (uint32_t)mean,
                        .weight_learns = true,
                        .dense = s->data,
                        .same_kernel = true};
}

static void list(const sc_shard_prices *p, const shape *s, sc_op_pass pass,
                 sc_op_kernels *out)
{
    static const sc_op_facts facts = {.precision = SC_FP32, .fused = true};
    sc_op_work w = work_of(p, s, pass);
    sc_op_list(p->job->cost, &facts, &w, out);
}

static sc_lookups lookups_of(const shape *s)
{
    return (sc_lookups){.access = &s->t->access,
                        .rows = s->t->rows,
                        .parts = s->row_parts,
                        .count = s->samples * s->t->pooling,
                        .row_bytes = SHARD_VALUE * s->width};
}

sc_lookups shard_lookups(const sc_shard_prices *p, uint32_t table,
                         uint32_t variant)
{
    shape s = shape_of(p, table, variant);
    return lookups_of(&s);
}

double shard_forward(const sc_shard_prices *p, uint32_t table, uint32_t variant,
                     double hit)
{
    shape s = shape_of(p, table, variant);
    sc_op_kernels l;
    list(p, &s, SC_PASS_FWD, &l);
    for (uint32_t i = 0; i < l.n; i++) {
        l.k[i].reads.known = true;
        l.k[i].reads.hit = hit;
    }
    return sc_op_price(p->job->cost, p->job->hw->device, &l).seconds;
}

/* The gradient is read in fp32, and the weight is read and written. */
static double update_seconds(const sc_shard_prices *p, const shape *s)
{
    const sc_optimizer *o = sc_optimizer_of(p->job->optimizer);
    sc_lookups look = lookups_of(s);
    sc_row_law law;
    sc_kernel k = {.kind = s->data ? SC_K_MEMORY : SC_K_LOOKUP,
                   .precision = SC_FP32};
    double rows = s->rows;
    sc_row_law_of(&look, &law);
    if (!s->data) rows = fmin(rows, sc_row_law_unique(&law, law.count));
    k.bytes = rows * (s->width * (3 * SHARD_VALUE + o->row_state_bytes) +
                      2.0 * SHARD_VALUE * o->row_values);
    sc_op_kernels l = {.n = 1, .joined = {true}};
    l.k[0] = k;
    return sc_op_price(p->job->cost, p->job->hw->device, &l).seconds;
}

const shard_part *shard_part_of(sc_shard_prices *p, uint32_t table,
                                uint32_t variant)
{
    shard_part *x = &p->part[(size_t)table * SHARD_VARIANTS + variant];
    if (x->known) return x;
    const sc_cost *c = p->job->cost;
    const sc_device *d = p->job->hw->device;
    const sc_optimizer *o = sc_optimizer_of(p->job->optimizer);
    shape s = shape_of(p, table, variant);
    sc_op_kernels l;
    list(p, &s, SC_PASS_FWD, &l);
    x->forward = sc_op_price(c, d, &l).seconds;
    list(p, &s, SC_PASS_BWD, &l);
    x->backward = sc_op_price(c, d, &l).seconds;
    double update = update_seconds(p, &s);
    if (s.data)
        x->update = update;
    else
        x->backward += update;
    x->memory = SHARD_VALUE * s.rows *
                (s.width * (1.0 + o->table_moments) + o->row_values);
    x->sends = s.data ? 0 : SHARD_VALUE * s.width;
    x->indices = s.data ? 0 : SHARD_INDEX * s.t->pooling / s.row_parts;
    x->known = true;
    return x;
}

/* ---- exchanges */

static sc_status at_size(sc_shard_prices *p, shard_curve *c, uint32_t i,
                         double *out, sc_err *err)
{
    if (!(c->seconds[i] > 0)) {
        sc_coll_price price;
        SC_TRY(sc_cost_coll(p->job->cost, p->job->hw, c->coll,
                            ldexp(FIRST_SIZE, (int)i), &p->at, -1, &price,
                            err));
        c->seconds[i] = price.seconds;
        for (int k = 0; k < 2; k++)
            c->busy[i][k] = fmin(1, price.link_s[k] / price.seconds);
    }
    *out = c->seconds[i];
    return SC_OK;
}

static uint32_t index_of(double bytes)
{
    double at = fmax(0, log2(fmax(1, bytes) / FIRST_SIZE));
    return (uint32_t)fmin(at, SHARD_SIZES - 1.001);
}

double shard_sharing(const sc_shard_prices *p, double to_all, double reduced)
{
    const double *a = p->all_to_all.busy[index_of(to_all)];
    const double *b = p->all_reduce.busy[index_of(reduced)];
    return fmax(0, fmax(a[0] + b[0], a[1] + b[1]) - 1);
}

sc_status shard_exchange(sc_shard_prices *p, shard_curve *c, double bytes,
                         double *out, sc_err *err)
{
    double before, after;
    *out = 0;
    if (p->n < 2 || !(bytes > 0)) return SC_OK;
    uint32_t i = index_of(bytes);
    SC_TRY(at_size(p, c, i, &before, err));
    SC_TRY(at_size(p, c, i + 1, &after, err));
    double part = fmax(0, bytes / ldexp(FIRST_SIZE, (int)i) - 1);
    if (bytes < FIRST_SIZE) part = 0;
    *out = before + (after - before) * part;
    return SC_OK;
}

sc_status sc_shard_prices_new(const sc_shard_job *job, sc_arena *a,
                              sc_shard_prices **out, sc_err *err)
{
    uint32_t one = 1, n = job->hw->n_devices;
    sc_shard_prices *p = SC_NEW(a, sc_shard_prices);
    shard_part *part =
        SC_NEW_N(a, shard_part, (size_t)job->n_tables * SHARD_VARIANTS);
    if (!p || !part) return sc_error_nomem(err);
    if (n > SC_SHARD_DEVICES)
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_none(), NULL,
                        "tables are placed on at most %d devices, not on %u",
                        SC_SHARD_DEVICES, n);
    double launch = job->cost->p[SC_P_LAUNCH];
    *p = (sc_shard_prices){.job = job,
                           .a = a,
                           .n = n,
                           .part = part,
                           .at = sc_hw_place(job->hw, 1, &n, &one),
                           .all_to_all = {.coll = SC_ALL_TO_ALL},
                           .all_reduce = {.coll = SC_ALL_REDUCE},
                           .launch = {launch, 5 * launch}};
    *out = p;
    return SC_OK;
}

double sc_shard_room(const sc_shard_prices *p)
{
    return p->job->memory * (double)p->job->hw->device->mem_bytes;
}
