/* SPDX-License-Identifier: Apache-2.0 */
/* slow_choice.c - collectives of a step for which NCCL chooses an algorithm
 * that is priced much slower than another. */
#include "plan/plan_net.h"
#include "plan/program.h"

#include <string.h>

typedef struct found {
    sc_net_slow slow;
    double most;     /* seconds of slow.exchange per step */
    double *seconds; /* [n_stages] */
} found;

typedef struct search {
    const sc_net_plan *p;
    sc_arena *a;
    found *f; /* [n] */
    uint32_t n;
} search;

static bool same(const sc_net_slow *s, const sc_net_exchange *x,
                 const sc_coll_slow *c)
{
    return s->exchange->coll == x->coll &&
           memcmp(s->exchange->place, x->place, sizeof *x->place) == 0 &&
           s->choice.algorithm == c->algorithm &&
           s->choice.protocol == c->protocol &&
           s->choice.best_algorithm == c->best_algorithm &&
           s->choice.best_protocol == c->best_protocol;
}

/* Adds what one item of the program loses in a step. */
static sc_status add(search *s, const program_item *it,
                     const sc_net_exchange *x, const sc_coll_slow *c,
                     sc_err *err)
{
    double part = it->fraction > 0 ? it->fraction : 1;
    double times = it->once ? 1 : (double)s->p->job->ga;
    double lost = (c->seconds - c->best_s) * part * times;
    uint32_t i = 0;
    while (i < s->n && !same(&s->f[i].slow, x, c)) i++;
    found *f = &s->f[i];
    if (i == s->n) {
        f->seconds = SC_NEW_N(s->a, double, s->p->n_stages);
        if (!f->seconds) return sc_error_nomem(err);
        s->n++;
    }
    if (lost > f->most) {
        f->slow.exchange = x;
        f->slow.choice = *c;
        f->most = lost;
    }
    f->seconds[it->stage] += lost;
    if (f->seconds[it->stage] > f->slow.seconds)
        f->slow.seconds = f->seconds[it->stage];
    return SC_OK;
}

/* What NCCL chooses for each exchange; equal ones are asked once. */
static bool slow_of(const sc_net_plan *p, uint32_t x, sc_coll_slow *known,
                    uint8_t *asked)
{
    const sc_net_exchange *e = &p->exchange[x];
    if (asked[x] == 0) {
        bool none = e->p2p || e->ring || e->place == NULL;
        asked[x] = none || !sc_cost_coll_slow(p->job->cost, p->job->hw,
                                              (sc_coll)e->coll, e->bytes,
                                              e->place, &known[x])
                       ? 1
                       : 2;
        for (uint32_t y = x + 1; y < p->n_exchanges; y++) {
            const sc_net_exchange *o = &p->exchange[y];
            if (none || o->p2p || o->ring || o->place == NULL ||
                o->coll != e->coll || o->bytes != e->bytes ||
                memcmp(o->place, e->place, sizeof *o->place) != 0)
                continue;
            asked[y] = asked[x];
            known[y] = known[x];
        }
    }
    return asked[x] == 2;
}

sc_status sc_net_plan_slow(const sc_net_plan *p, sc_arena *a,
                           const sc_net_slow **out, uint32_t *n, sc_err *err)
{
    search s = {.p = p, .a = a};
    sc_coll_slow *known = SC_NEW_N(a, sc_coll_slow, p->n_exchanges);
    uint8_t *asked = SC_NEW_N(a, uint8_t, p->n_exchanges);
    s.f = SC_NEW_N(a, found, p->n_exchanges);
    *n = 0;
    if (!known || !asked || !s.f) return sc_error_nomem(err);
    for (uint32_t i = 0; i < p->program->n_items; i++) {
        const program_item *it = &p->program->item[i];
        if (it->exchange == SC_NONE || it->copy) continue;
        if (slow_of(p, it->exchange, known, asked))
            SC_TRY(add(&s, it, &p->exchange[it->exchange], &known[it->exchange],
                       err));
    }
    sc_net_slow *list = SC_NEW_N(a, sc_net_slow, s.n);
    if (!list) return sc_error_nomem(err);
    for (uint32_t i = 0; i < s.n; i++) list[i] = s.f[i].slow;
    *n = s.n;
    *out = list;
    return SC_OK;
}
