/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.c - operations from the first member's call to the end.
 *
 * An operation is open until all real members have called it; then the arrival
 * of the last emulated member is known. It waits for that time in a heap, is
 * handed to the delay model, and ends when the model says so. Records are
 * reused: once there is room for all that is in flight at once, nothing is
 * allocated.
 */
#include "base/heap.h"
#include "emu/actor.h"
#include "net/net_flow.h"

#include <stdlib.h>
#include <string.h>

/* ---- records ------------------------------------------------------------- */

emu_op *emu_op_alloc(sc_emu *e, uint32_t *out, sc_err *err)
{
    if (e->free_op == EMU_NONE) {
        emu_op *v = sc_grow(e->a, e->op, e->n_ops, &e->cap_ops, 16, sizeof *v);
        if (!v) {
            sc_error_nomem(err);
            return NULL;
        }
        e->op = v;
        v[e->n_ops].next = EMU_NONE;
        e->free_op = e->n_ops++;
    }
    *out = e->free_op;
    emu_op *o = &e->op[*out];
    e->free_op = o->next;
    *o = (emu_op){.begin = INT64_MIN,
                  .emulated.t = INT64_MIN,
                  .posts = {EMU_NONE, EMU_NONE},
                  .next = EMU_NONE,
                  .seq = e->seq++};
    return o;
}

void emu_post_free(sc_emu *e, uint32_t post)
{
    e->post[post].ticket = UINT64_MAX;
    e->post[post].next = e->free_post;
    e->free_post = post;
}

static void free_posts(sc_emu *e, emu_op *o)
{
    while (o->posts.head != EMU_NONE) {
        uint32_t next = e->post[o->posts.head].next;
        emu_post_free(e, o->posts.head);
        o->posts.head = next;
    }
    o->posts.tail = EMU_NONE;
}

void emu_op_free(sc_emu *e, uint32_t i)
{
    emu_message_unbox(e, i);
    if (e->op[i].missing > 0) emu_actors_forget(e, i);
    free_posts(e, &e->op[i]);
    e->op[i].state = EMU_FREE;
    e->op[i].next = e->free_op;
    e->free_op = i;
}

sc_status emu_post_add(sc_emu *e, const sc_emu_op *call, sc_time t,
                       uint32_t *out, sc_err *err)
{
    if (e->free_post == EMU_NONE) {
        emu_posted *v =
            sc_grow(e->a, e->post, e->n_posts, &e->cap_posts, 16, sizeof *v);
        if (!v) return sc_error_nomem(err);
        if (e->n_posts >> EMU_SLOT_BITS)
            return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(), NULL,
                            "more than %u operations at once", e->n_posts);
        e->post = v;
        v[e->n_posts].next = EMU_NONE;
        e->free_post = e->n_posts++;
    }
    *out = e->free_post;
    const emu_members *m = e->groups.v[call->group]->world;
    emu_posted *p = &e->post[*out];
    e->free_post = p->next;
    *p = (emu_posted){.ticket = e->tickets++ << EMU_SLOT_BITS | *out,
                      .rank = call->rank,
                      .op = EMU_NONE,
                      .next = EMU_NONE,
                      .t = t,
                      .call = *call,
                      .scope = m->scope};
    return SC_OK;
}

void emu_post_join(sc_emu *e, uint32_t post, uint32_t op)
{
    e->post[post].op = op;
    emu_list_append(e, &e->op[op].posts, post);
    e->op[op].n_posts++;
}

bool emu_op_has(const sc_emu *e, const emu_op *o, uint32_t rank)
{
    uint32_t k = o->posts.head;
    while (k != EMU_NONE && e->post[k].rank != rank) k = e->post[k].next;
    return k != EMU_NONE;
}

/* ---- from rendezvous to flight ------------------------------------------- */

static bool earlier(const sc_emu *e, uint32_t x, uint32_t y)
{
    const emu_op *a = &e->op[x], *b = &e->op[y];
    return a->due != b->due ? a->due < b->due : a->seq < b->seq;
}

SC_HEAP(pending, uint32_t, sc_emu, earlier)

static sc_status fly(sc_emu *e, uint32_t i, sc_time t, sc_err *err)
{
    emu_op *o = &e->op[i];
    emu_members *m = o->g->world;
    if (!m->siblings_known) SC_TRY(emu_group_siblings(o->g, &e->c, e->a, err));
    emu_flight f = {.group = o->g,
                    .coll = o->coll,
                    .root = o->root,
                    .to = o->to,
                    .bytes = o->bytes,
                    .tag = i};
    o->state = EMU_FLYING;
    return emu_delay_post(e->delay, &f, t, t - o->begin, err);
}

sc_status emu_op_schedule(sc_emu *e, uint32_t i, emu_op_state state, sc_time t,
                          sc_err *err)
{
    uint32_t *h =
        sc_grow(e->a, e->heap, e->n_heap, &e->cap_heap, 16, sizeof *h);
    if (!h) return sc_error_nomem(err);
    e->heap = h;
    e->op[i].state = state;
    e->op[i].due = t;
    pending_push(e, h, e->n_heap++, i);
    return SC_OK;
}

sc_status emu_op_begin(sc_emu *e, uint32_t i, sc_err *err)
{
    emu_op *o = &e->op[i];
    if (o->state == EMU_DROPPED) return SC_OK;
    if (o->emulated.fails) {
        o->state = EMU_STUCK;
        return SC_OK;
    }
    if (o->emulated.t > o->begin) o->begin = o->emulated.t;
    if (o->begin <= e->now) return fly(e, i, e->now, err);
    return emu_op_schedule(e, i, EMU_PENDING, o->begin, err);
}

/* ---- posts --------------------------------------------------------------- */

static sc_status check(const sc_emu *e, const sc_emu_op *op, sc_err *err)
{
    const char *what = NULL;
    if (op->group >= e->groups.n || (unsigned)op->coll >= SC_N_CALLED_COLLS)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                        "there is no group %u, or no operation %d", op->group,
                        (int)op->coll);
    const emu_group *g = e->groups.v[op->group];
    bool peer = sc_coll_is_rooted(op->coll) || sc_coll_is_message(op->coll);
    if (emu_real_number(&e->c, op->rank) == EMU_NONE)
        what = "is not real";
    else if (emu_group_member(g, op->rank) == EMU_NONE)
        what = "is not in the group";
    if (what)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                        "rank %u calls %s, but %s", op->rank,
                        sc_coll_names[op->coll], what);
    if (op->peer == SC_EMU_ANY && op->coll == SC_RECV) return SC_OK;
    if (!peer || emu_group_member(g, op->peer) != EMU_NONE) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                    "rank %u calls %s with rank %u, which is not in the group",
                    op->rank, sc_coll_names[op->coll], op->peer);
}

static uint64_t draw_of(const sc_emu *e, uint32_t real)
{
    uint64_t key[2] = {real, e->peers.mirror[real].posts};
    return sc_hash(key, sizeof key, e->c.seed);
}

/* Updates when the emulated members arrive that mirror the posting rank. */
static void expect_emulated(sc_emu *e, emu_op *o, const sc_emu_op *op,
                            uint32_t real, sc_time t)
{
    const emu_members *m = o->g->world;
    if (sc_coll_is_message(op->coll))
        emu_peers_arrive_one(&e->peers, real, t, op->peer, draw_of(e, real),
                             &o->emulated);
    else if (m->number[0] == real)
        emu_peers_arrive(&e->peers, real, t, m, draw_of(e, real), &o->emulated);
}

/* A collective, or a message with an emulated rank. */
static sc_status post_open(sc_emu *e, const sc_emu_op *op, uint32_t real,
                           sc_time t, uint64_t *ticket, sc_err *err)
{
    uint32_t i, post;
    bool all;
    SC_TRY(emu_rendezvous_join(e, op, &i, &all, err));
    SC_TRY(emu_post_add(e, op, t, &post, err));
    emu_post_join(e, post, i);
    *ticket = e->post[post].ticket;
    emu_op *o = &e->op[i];
    o->tag = op->tag;
    expect_emulated(e, o, op, real, t);
    if (t > o->begin) o->begin = t;
    if (o->n_real++ == 0 && !sc_coll_is_message(o->coll))
        SC_TRY(emu_actors_expect(e, i, err));
    return all && e->op[i].missing == 0 ? emu_op_begin(e, i, err) : SC_OK;
}

sc_status sc_emu_post(sc_emu *e, const sc_emu_op *op, sc_time t,
                      uint64_t *ticket, sc_err *err)
{
    if (e->failed != SC_OK) return sc_emu_failed(e, err);
    SC_TRY(check(e, op, err));
    uint32_t real = emu_real_number(&e->c, op->rank);
    bool between = sc_coll_is_message(op->coll) &&
                   (op->peer == SC_EMU_ANY ||
                    emu_real_number(&e->c, op->peer) != EMU_NONE ||
                    emu_actor_meets(e, op->peer, op));
    emu_peers_post(&e->peers, real, t);
    sc_status status = between ? emu_message_post(e, op, t, ticket, err)
                               : post_open(e, op, real, t, ticket, err);
    emu_peers_posted(&e->peers, real);
    return status;
}

void sc_emu_waited(sc_emu *e, uint32_t rank, sc_time from, sc_time to)
{
    uint32_t real = emu_real_number(&e->c, rank);
    if (real != EMU_NONE) emu_peers_waited(&e->peers, real, from, to);
}

sc_time sc_emu_cpu(const sc_emu *e, const sc_emu_op *op)
{
    if (op->group >= e->groups.n) return 0;
    return emu_delay_cpu(e->delay, e->groups.v[op->group], op->coll, op->bytes);
}

/* ---- time ---------------------------------------------------------------- */

sc_time sc_emu_next(sc_emu *e)
{
    if (e->failed != SC_OK) return e->now;
    sc_time t = emu_delay_next(e->delay);
    if (e->n_heap == 0) return t;
    sc_time due = e->op[e->heap[0]].due;
    return due < t ? due : t;
}

static bool ended(sc_emu *e, uint32_t i, sc_time t)
{
    emu_op *o = &e->op[i];
    for (uint32_t k = o->posts.head; k != EMU_NONE; k = e->post[k].next) {
        if (e->actors && emu_actor_ended(e, &e->post[k], t)) continue;
        sc_emu_end *v =
            sc_grow(e->a, e->end, e->n_ends, &e->cap_ends, 16, sizeof *v);
        if (!v) return false;
        e->end = v;
        v[e->n_ends++] = (sc_emu_end){.ticket = e->post[k].ticket,
                                      .rank = e->post[k].rank,
                                      .begin = o->begin,
                                      .end = t,
                                      .from = emu_group_rank_at(o->g, o->root),
                                      .tag = o->tag,
                                      .bytes = o->bytes,
                                      .seq = o->id};
    }
    if (o->box == EMU_NO_BOX) {
        emu_op_free(e, i);
    } else { /* its receive has not been called */
        free_posts(e, o);
        o->state = EMU_LANDED;
        o->due = t;
    }
    return true;
}

static bool run(sc_emu *e, sc_time t)
{
    const emu_delay_end *end;
    uint32_t n = emu_delay_advance(e->delay, t, &end);
    bool ok = n != SC_FLOW_NONE;
    e->now = t;
    for (uint32_t i = 0; ok && i < n; i++)
        ok = ended(e, (uint32_t)end[i].tag, end[i].t);
    if (!ok) e->failed = sc_error_nomem(&e->err);
    return ok;
}

static int by_time(const void *a, const void *b)
{
    const sc_emu_end *x = a, *y = b;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return (x->ticket > y->ticket) - (x->ticket < y->ticket);
}

static void sort_ends(sc_emu *e)
{
    for (uint32_t i = 1; i < e->n_ends; i++)
        if (by_time(&e->end[i - 1], &e->end[i]) > 0) {
            qsort(e->end, e->n_ends, sizeof *e->end, by_time);
            return;
        }
}

static bool advance(sc_emu *e, sc_time t)
{
    while (e->failed == SC_OK && e->n_heap > 0 && e->op[e->heap[0]].due <= t) {
        uint32_t i = e->heap[0];
        sc_time due = e->op[i].due;
        if (due > e->now && !run(e, due)) break;
        (void)pending_pop(e, e->heap, e->n_heap--);
        if (e->op[i].state == EMU_PENDING)
            e->failed = fly(e, i, e->now, &e->err);
        else if (e->op[i].state == EMU_ACTING)
            emu_actor_computed(e, i);
        else if (!ended(e, i, due))
            e->failed = sc_error_nomem(&e->err);
    }
    return e->failed == SC_OK && run(e, t);
}

uint32_t sc_emu_advance(sc_emu *e, sc_time t, const sc_emu_end **ends)
{
    e->n_ends = 0;
    if (t < e->now) t = e->now;
    bool ok = true;
    /* Actors go on at the time of each end. */
    while (ok && emu_actors_count(e->actors) > 0 && sc_emu_next(e) <= t) {
        sc_time next = sc_emu_next(e);
        ok = advance(e, next > e->now ? next : e->now) &&
             (e->failed = emu_actors_go_on(e, &e->err)) == SC_OK;
    }
    if (!ok || !advance(e, t)) return SC_FLOW_NONE;
    sort_ends(e);
    *ends = e->end;
    return e->n_ends;
}

sc_status sc_emu_failed(const sc_emu *e, sc_err *err)
{
    if (e->failed == SC_OK || !err) return e->failed;
    for (uint32_t i = 0; i < e->err.n; i++) {
        const sc_diag *d = &e->err.d[i];
        sc_pos pos = {d->file[0] ? d->file : NULL, d->line, d->col};
        sc_error(err, e->failed, d->code, pos, d->hint[0] ? d->hint : NULL,
                 "%s", d->msg);
    }
    return e->failed;
}

/* ---- cancelling ---------------------------------------------------------- */

/* The post of a ticket; NULL: it has ended. */
static const emu_posted *find_post(const sc_emu *e, uint64_t ticket)
{
    uint64_t i = ticket & ((1u << EMU_SLOT_BITS) - 1);
    const emu_posted *p = i < e->n_posts ? &e->post[i] : NULL;
    return p && p->ticket == ticket ? p : NULL;
}

static void leave_heap(sc_emu *e, uint32_t op)
{
    for (uint32_t i = 0; i < e->n_heap; i++)
        if (e->heap[i] == op) {
            pending_remove(e, e->heap, e->n_heap--, i);
            return;
        }
}

void sc_emu_cancel(sc_emu *e, uint64_t ticket)
{
    const emu_posted *p = find_post(e, ticket);
    if (!p) return;
    uint32_t i = p->op;
    if (i == EMU_NONE) {
        emu_message_unpost(e, (uint32_t)(p - e->post));
        return;
    }
    emu_op *o = &e->op[i];
    bool receives = p->call.coll == SC_RECV && p->call.cuts && !p->probes;
    if (receives && !o->eager) { /* the message waits for another receive */
        if (o->state == EMU_FLYING) emu_delay_cancel(e->delay, i);
        if (o->state != EMU_FLYING) leave_heap(e, i);
        o->state = EMU_OPEN;
    }
    if (emu_message_leave(e, (uint32_t)(p - e->post))) return;
    if (o->state == EMU_OPEN && !sc_coll_is_message(o->coll) &&
        o->n_real < o->expected) { /* the others have not called it yet */
        o->state = EMU_DROPPED;
        free_posts(e, o);
        return;
    }
    if (o->state == EMU_PENDING || o->state == EMU_LANDING) leave_heap(e, i);
    if (o->state == EMU_FLYING) emu_delay_cancel(e->delay, i);
    emu_op_free(e, i);
}

/* ---- reasons why an operation has not begun ------------------------------ */

static const char *kind_of(const sc_emu *e, uint32_t rank)
{
    return sc_emu_is_real(&e->c, rank) ? "real" : "emulated";
}

/* A receive without a message. */
static void why_none(const sc_emu *e, const emu_posted *p, sc_text *out)
{
    uint32_t from = p->call.peer;
    if (from == SC_EMU_ANY)
        sc_text_add(out, "no rank has sent it a message");
    else
        sc_text_add(out, "%s rank %u has not called its send", kind_of(e, from),
                    from);
    if (p->call.tag > 0) sc_text_add(out, " with tag %d", (int)p->call.tag);
}

static void why_open(const sc_emu *e, const emu_op *o, sc_text *out)
{
    if (o->missing > 0) {
        emu_actors_why(e, o, out);
        return;
    }
    if (o->coll == SC_SEND) {
        uint32_t to = emu_group_rank_at(o->g, o->to);
        sc_text_add(out, "%s rank %u has not called its receive",
                    kind_of(e, to), to);
        return;
    }
    uint32_t n = 0, first = 0;
    for (uint32_t k = o->g->n_real; k-- > 0;)
        if (!emu_op_has(e, o, o->g->real[k])) {
            first = o->g->real[k];
            n++;
        }
    sc_text_add(out, "real rank %u", first);
    if (n > 1)
        sc_text_add(out, " and %u other%s have not called it", n - 1,
                    n > 2 ? "s" : "");
    else
        sc_text_add(out, " has not called it");
}

void sc_emu_why(const sc_emu *e, uint64_t ticket, sc_text *out)
{
    const emu_posted *p = find_post(e, ticket);
    char t[32];
    if (!p) return;
    if (p->op == EMU_NONE) {
        why_none(e, p, out);
        return;
    }
    const emu_op *o = &e->op[p->op];
    sc_unit_print_short(sc_time_to_s(o->emulated.t), SC_U_TIME, t, sizeof t);
    if (o->state == EMU_OPEN)
        why_open(e, o, out);
    else if (o->state == EMU_DROPPED)
        sc_text_add(out, "another member has cancelled it");
    else if (o->state == EMU_STUCK)
        sc_text_add(out, "rank %u never arrives: --what-if fail=%u@%llu",
                    o->emulated.rank, o->emulated.rank,
                    (unsigned long long)o->emulated.at);
    else if (o->state == EMU_PENDING && o->emulated.t == o->begin)
        sc_text_add(out, "rank %u arrives at %s", o->emulated.rank, t);
    else if (o->state == EMU_PENDING)
        sc_text_add(out,
                    "the operation begins when the last member has arrived");
}

/* ---- the world ----------------------------------------------------------- */

sc_status sc_emu_group(sc_emu *e, const uint32_t *rank, uint32_t n,
                       uint64_t instance, uint32_t *out, sc_err *err)
{
    SC_TRY(emu_groups_get(&e->groups, &e->c, &e->peers, rank,
                          rank ? n : e->c.world, instance, e->a, out, err));
    emu_group_called(&e->groups, *out);
    return SC_OK;
}

uint32_t sc_emu_group_real(const sc_emu *e, uint32_t group)
{
    return e->groups.v[group]->n_real;
}

sc_status sc_emu_new(const sc_emu_config *c, sc_arena *a, sc_emu **out,
                     sc_err *err)
{
    sc_emu *e = SC_NEW(a, sc_emu);
    if (!e) return sc_error_nomem(err);
    e->c = *c;
    e->a = a;
    e->free_op = e->free_post = EMU_NONE;
    sc_err_init(&e->err);
    SC_TRY(emu_actors_new(&e->c, a, &e->actors, err));
    SC_TRY(emu_peers_new(&e->c, e->actors, a, &e->peers, err));
    SC_TRY(emu_delay_new(&e->c, a, &e->delay, err));
    uint32_t n = e->c.n_real + emu_actors_count(e->actors);
    e->mail = SC_NEW_N(a, emu_mail, n);
    if (!e->mail) return sc_error_nomem(err);
    const emu_list none = {EMU_NONE, EMU_NONE};
    for (uint32_t i = 0; i < n; i++) e->mail[i] = (emu_mail){none, none, none};
    *out = e;
    uint32_t world;
    SC_TRY(emu_groups_get(&e->groups, &e->c, &e->peers, NULL, e->c.world, 0, a,
                          &world, err));
    return emu_actors_start(e, err);
}
