/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_plugin.c - calls the user's three functions (stepcast/delay_plugin.h).
 *
 * A plug-in gets operations in the order of their times, each at the time of the
 * last advance.  It can't cancel an operation, so the end of a cancelled one is
 * ignored.
 */
#include "emu/delay_model.h"

#define BATCH 64u /* ends requested at once */

typedef struct plugin_op {
    struct plugin_op *next; /* next in the list by time, or free */
    uint64_t tag, id;
    sc_time t;
    emu_flight flight;
    bool forgotten;
} plugin_op;

struct delay_plugin {
    const stepcast_delay_plugin *call;
    plugin_op *moves; /* not ended */
    plugin_op *free;
    sc_time now;
    uint64_t n; /* number of operations so far; gives ids */
    uint32_t *rank;
    uint32_t rank_cap;
    uint32_t n_ends;
};

sc_status delay_plugin_new(emu_delay *d, sc_err *err)
{
    const stepcast_delay_plugin *call = d->c->plugin;
    for (uint32_t i = 0; i < d->c->n_whatif; i++) {
        sc_emu_what what = d->c->whatif[i].what;
        if (what <= SC_EMU_BANDWIDTH_TIMES)
            return sc_error(err, SC_EINPUT, SC_C_CONFLICT, d->c->whatif[i].pos,
                            "change it in the plug-in",
                            "latency and bandwidth of a plug-in cannot be "
                            "changed from outside");
    }
    if (call == NULL || !call->post || !call->next || !call->advance)
        return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                        "a plug-in that was not opened");
    d->plugin = SC_NEW(d->a, delay_plugin);
    if (d->plugin == NULL) return sc_error_nomem(err);
    d->plugin->call = call;
    return SC_OK;
}

/* ---- operations */

static plugin_op *take(delay_plugin *x, sc_arena *a)
{
    plugin_op *o = x->free;
    if (o == NULL) return SC_NEW(a, plugin_op);
    x->free = o->next;
    return o;
}

/* Removes it from a list and frees it. */
static void drop(delay_plugin *x, plugin_op **at)
{
    plugin_op *o = *at;
    *at = o->next;
    o->next = x->free;
    x->free = o;
}

static const uint32_t *ranks_of(emu_delay *d, const emu_flight *f, uint32_t *n)
{
    delay_plugin *x = d->plugin;
    bool pair = sc_coll_is_message(f->coll);
    *n = pair ? 2 : f->group->n;
    if (!pair && f->group->rank != NULL) return f->group->rank;
    if (*n > x->rank_cap) {
        x->rank = SC_NEW_N(d->a, uint32_t, *n);
        x->rank_cap = x->rank == NULL ? 0 : *n;
    }
    for (uint32_t k = 0; x->rank != NULL && k < *n; k++)
        x->rank[k] = pair ? delay_rank(f->group, k ? f->to : f->root) : k;
    return x->rank;
}

/* Passes it to the plug-in; false if the plug-in refuses it or there is no
 * memory. */
static bool hand_over(emu_delay *d, plugin_op *o)
{
    delay_plugin *x = d->plugin;
    stepcast_delay_op op = {.id = o->id,
                            .op = sc_coll_names[o->flight.coll],
                            .bytes = o->flight.bytes,
                            .root = o->flight.root};
    op.rank = ranks_of(d, &o->flight, &op.n);
    if (sc_coll_is_message(o->flight.coll)) op.root = 0;
    if (op.rank == NULL || x->call->post(&op, o->t) != 0) return false;
    o->next = x->moves;
    x->moves = o;
    return true;
}

static sc_status refused(const emu_flight *f, sc_err *err)
{
    return sc_error(
        err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_file("--delay-model"),
        "stepcast_delay_post() returned a value other than 0",
        "the plug-in refuses %s of %llu bytes over %u ranks",
        sc_coll_names[f->coll], (unsigned long long)f->bytes, f->group->n);
}

sc_status delay_plugin_post(emu_delay *d, const emu_flight *f, sc_time t,
                            sc_time credit, sc_err *err)
{
    delay_plugin *x = d->plugin;
    (void)credit; /* only the plug-in knows how much of its time is latency */
    plugin_op *o = take(x, d->a);
    if (o == NULL) return sc_error_nomem(err);
    *o = (plugin_op){.tag = f->tag, .id = ++x->n, .t = t, .flight = *f};
    return hand_over(d, o) ? SC_OK : refused(f, err);
}

/* ---- the clock */

sc_time delay_plugin_next(emu_delay *d)
{
    delay_plugin *x = d->plugin;
    sc_time t = x->call->next();
    return t < x->now ? x->now : t;
}

static bool end(emu_delay *d, uint64_t id, sc_time t, bool *known)
{
    delay_plugin *x = d->plugin;
    plugin_op **at = &x->moves;
    while (*at != NULL && (*at)->id != id) at = &(*at)->next;
    if (*at == NULL) return true; /* none of ours */
    *known = true;
    if (!(*at)->forgotten) {
        if (!delay_ends(d, x->n_ends + 1)) return false;
        if (t < (*at)->t) t = (*at)->t;
        d->end[x->n_ends++] = (emu_delay_end){(*at)->tag, t};
    }
    drop(x, at);
    return true;
}

static bool go_to(emu_delay *d, sc_time t)
{
    delay_plugin *x = d->plugin;
    uint64_t id[BATCH];
    int64_t when[BATCH];
    uint32_t n;
    bool known;
    do {
        known = false;
        n = x->call->advance(t, id, when, BATCH);
        for (uint32_t k = 0; k < n && k < BATCH; k++)
            if (!end(d, id[k], when[k] < t ? when[k] : t, &known)) return false;
    } while (n >= BATCH && known);
    x->now = t;
    return true;
}

uint32_t delay_plugin_advance(emu_delay *d, sc_time t,
                              const emu_delay_end **ends)
{
    delay_plugin *x = d->plugin;
    x->n_ends = 0;
    if (!go_to(d, t)) return SC_FLOW_NONE;
    *ends = d->end;
    return x->n_ends;
}

void delay_plugin_cancel(emu_delay *d, uint64_t tag)
{
    for (plugin_op *o = d->plugin->moves; o != NULL; o = o->next)
        if (o->tag == tag) o->forgotten = true;
}
