/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages.c - which message a receive gets, between real ranks.
 *
 * As MPI 4.1, 3.5 has it: a message has an envelope of its group, source and
 * tag, and a receive gets the first message that was sent with an envelope that
 * fits, whether it was sent before the receive's call or comes later. Messages
 * that no receive has taken, and receives that have no message, wait at the
 * receiver.
 *
 * An eager message is on its way from the time of its post on. Any other begins
 * when its receive has been called, too.
 */
#include "emu/actor.h"

#include <stdio.h>

/* ---- lists --------------------------------------------------------------- */

static uint32_t *op_next(sc_emu *e, uint32_t i)
{
    return &e->op[i].next;
}

static uint32_t *post_next(sc_emu *e, uint32_t i)
{
    return &e->post[i].next;
}

typedef uint32_t *next_of(sc_emu *e, uint32_t i);

static void append(sc_emu *e, emu_list *l, uint32_t i, next_of *next)
{
    *next(e, i) = EMU_NONE;
    if (l->tail == EMU_NONE)
        l->head = i;
    else
        *next(e, l->tail) = i;
    l->tail = i;
}

static void take_out(sc_emu *e, emu_list *l, uint32_t i, next_of *next)
{
    uint32_t before = EMU_NONE;
    for (uint32_t k = l->head; k != i; k = *next(e, k)) before = k;
    uint32_t after = *next(e, i);
    if (before == EMU_NONE)
        l->head = after;
    else
        *next(e, before) = after;
    if (l->tail == i) l->tail = before;
    *next(e, i) = EMU_NONE;
}

void emu_list_append(sc_emu *e, emu_list *l, uint32_t post)
{
    append(e, l, post, post_next);
}

void emu_list_remove(sc_emu *e, emu_list *l, uint32_t post)
{
    take_out(e, l, post, post_next);
}

static emu_mail *mail_of(sc_emu *e, uint32_t rank)
{
    uint32_t i = emu_real_number(&e->c, rank);
    if (i == EMU_NONE) i = e->c.n_real + emu_actor_number(e->actors, rank);
    return &e->mail[i];
}

static emu_list *box_of(sc_emu *e, const emu_op *o)
{
    emu_mail *m = mail_of(e, emu_group_rank_at(o->g, o->to));
    return o->box == EMU_CLAIMED ? &m->claimed : &m->sent;
}

void emu_message_unbox(sc_emu *e, uint32_t op)
{
    emu_op *o = &e->op[op];
    if (o->box == EMU_NO_BOX) return;
    take_out(e, box_of(e, o), op, op_next);
    o->box = EMU_NO_BOX;
}

static void enter_box(sc_emu *e, uint32_t op, emu_box box)
{
    e->op[op].box = box;
    append(e, box_of(e, &e->op[op]), op, op_next);
}

void emu_message_unpost(sc_emu *e, uint32_t post)
{
    emu_mail *m = mail_of(e, e->post[post].rank);
    take_out(e, &m->receives, post, post_next);
    emu_post_free(e, post);
}

bool emu_message_leave(sc_emu *e, uint32_t post)
{
    uint32_t op = e->post[post].op;
    emu_op *o = &e->op[op];
    if (e->post[post].call.coll != SC_RECV || o->expected != 2) return false;
    if (!o->eager && o->state != EMU_OPEN) return false;
    if (o->box == EMU_NO_BOX && o->n_posts == 1) return false; /* a probe's */
    take_out(e, &o->posts, post, post_next);
    o->n_posts--;
    bool claims = e->post[post].call.take == SC_EMU_CLAIM;
    if (claims) emu_message_unbox(e, op);
    if (claims || !e->post[post].probes) {
        emu_list *sent = &mail_of(e, e->post[post].rank)->sent;
        o->box = EMU_SENT;
        o->next = sent->head;
        sent->head = op;
        if (sent->tail == EMU_NONE) sent->tail = op;
    }
    emu_post_free(e, post);
    return true;
}

/* ---- envelopes ----------------------------------------------------------- */

static bool fits(const emu_op *o, const emu_posted *p)
{
    const sc_emu_op *call = &p->call;
    uint32_t from = emu_group_rank_at(o->g, o->root);
    if (call->peer != SC_EMU_ANY && call->peer != from) return false;
    if (call->take == SC_EMU_CLAIMED && o->id != call->seq) return false;
    if (o->scope != p->scope && o->scope && p->scope) return false;
    return call->take == SC_EMU_CLAIMED || o->tag == SC_EMU_ANY_TAG ||
           call->tag == SC_EMU_ANY_TAG || call->tag == o->tag;
}

static sc_status has_room(const sc_emu *e, const emu_op *o,
                          const sc_emu_op *call, sc_err *err)
{
    char group[80];
    uint32_t from = emu_group_rank_at(o->g, o->root);
    if (call->cuts || o->bytes <= call->bytes ||
        emu_actor_number(e->actors, from) != EMU_NONE)
        return SC_OK;
    emu_group_print(o->g, group, sizeof group);
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_none(), NULL,
                    "rank %u calls recv of %llu B where rank %u called send of "
                    "%llu B, in the group of %s",
                    call->rank, (unsigned long long)call->bytes, from,
                    (unsigned long long)o->bytes, group);
}

/* ---- messages and receives ----------------------------------------------- */

static sc_time later(sc_time a, sc_time b)
{
    return a > b ? a : b;
}

/* Both sides have called it, or it needs no receive. */
static sc_status start(sc_emu *e, uint32_t op, sc_err *err)
{
    emu_op *o = &e->op[op];
    /* A message of a rank to itself moves nothing over a link. */
    if (o->root == o->to)
        return emu_op_schedule(e, op, EMU_LANDING, o->begin, err);
    return emu_op_begin(e, op, err);
}

/* The receive gets the message. */
static sc_status take(sc_emu *e, uint32_t op, uint32_t post, sc_err *err)
{
    emu_op *o = &e->op[op];
    sc_time t = e->post[post].t;
    SC_TRY(has_room(e, o, &e->post[post].call, err));
    emu_message_unbox(e, op);
    emu_post_join(e, post, op);
    if (o->state == EMU_LANDED)
        return emu_op_schedule(e, op, EMU_LANDING, later(o->due, t), err);
    if (o->eager) return SC_OK; /* it is on its way */
    o->begin = later(o->begin, t);
    return start(e, op, err);
}

/* The probe ends when the message has arrived, or is known to come. */
static sc_status notice(sc_emu *e, uint32_t op, uint32_t post, sc_err *err)
{
    uint32_t twin;
    emu_op *o = &e->op[op];
    sc_time t = e->post[post].t;
    bool claims = e->post[post].call.take == SC_EMU_CLAIM;
    if (claims) {
        emu_message_unbox(e, op);
        enter_box(e, op, EMU_CLAIMED);
    }
    if (o->eager && o->state != EMU_LANDED) {
        emu_post_join(e, post, op);
        return SC_OK;
    }
    t = later(t, o->state == EMU_LANDED ? o->due : o->begin);
    if (!emu_op_alloc(e, &twin, err)) return SC_ENOMEM;
    emu_op *probe = &e->op[twin];
    uint64_t seq = probe->seq;
    *probe = e->op[op];
    probe->seq = seq;
    probe->posts = (emu_list){EMU_NONE, EMU_NONE};
    probe->next = EMU_NONE;
    probe->n_posts = 0;
    probe->box = EMU_NO_BOX;
    emu_post_join(e, post, twin);
    return emu_op_schedule(e, twin, EMU_LANDING, t, err);
}

static sc_status meet(sc_emu *e, uint32_t op, uint32_t post, sc_err *err)
{
    emu_op *o = &e->op[op];
    int32_t tag = e->post[post].call.tag;
    if (o->tag == SC_EMU_ANY_TAG) o->tag = tag == SC_EMU_ANY_TAG ? 0 : tag;
    return e->post[post].probes ? notice(e, op, post, err)
                                : take(e, op, post, err);
}

static sc_status post_receive(sc_emu *e, uint32_t post, sc_err *err)
{
    const sc_emu_op *call = &e->post[post].call;
    emu_mail *m = mail_of(e, call->rank);
    bool claimed = call->take == SC_EMU_CLAIMED;
    uint32_t i = claimed ? m->claimed.head : m->sent.head;
    while (i != EMU_NONE && !fits(&e->op[i], &e->post[post])) i = e->op[i].next;
    if (i != EMU_NONE) return meet(e, i, post, err);
    append(e, &m->receives, post, post_next);
    return SC_OK;
}

/* Receives that waited for it: probes, up to the first that keeps it. */
static sc_status offer(sc_emu *e, uint32_t op, sc_err *err)
{
    const emu_op *o = &e->op[op];
    emu_mail *m = mail_of(e, emu_group_rank_at(o->g, o->to));
    for (uint32_t i = m->receives.head; i != EMU_NONE;) {
        uint32_t post = i;
        i = e->post[i].next;
        if (!fits(&e->op[op], &e->post[post])) continue;
        bool keeps = e->post[post].call.take != SC_EMU_PROBE;
        take_out(e, &m->receives, post, post_next);
        SC_TRY(meet(e, op, post, err));
        if (keeps) break;
    }
    return SC_OK;
}

emu_op *emu_message_open(sc_emu *e, const sc_emu_op *call, uint32_t *out,
                         sc_err *err)
{
    emu_op *o = emu_op_alloc(e, out, err);
    if (!o) return NULL;
    o->g = e->groups.v[call->group];
    o->coll = SC_SEND;
    o->root = emu_group_member(o->g, call->rank);
    o->to = emu_group_member(o->g, call->peer);
    if (call->coll == SC_RECV) {
        uint32_t from = o->to;
        o->to = o->root;
        o->root = from;
    }
    o->bytes = call->bytes;
    o->state = EMU_OPEN;
    return o;
}

static sc_status post_send(sc_emu *e, uint32_t post, sc_err *err)
{
    uint32_t i;
    const sc_emu_op *call = &e->post[post].call;
    emu_op *o = emu_message_open(e, call, &i, err);
    if (!o) return SC_ENOMEM;
    o->scope = e->post[post].scope;
    o->tag = call->tag;
    o->id = call->seq;
    o->eager = call->eager;
    o->begin = e->post[post].t;
    o->expected = 2;
    emu_post_join(e, post, i);
    enter_box(e, i, EMU_SENT);
    if (o->eager) SC_TRY(start(e, i, err));
    return offer(e, i, err);
}

sc_status emu_message_post(sc_emu *e, const sc_emu_op *op, sc_time t,
                           uint64_t *ticket, sc_err *err)
{
    uint32_t post;
    SC_TRY(emu_post_add(e, op, t, &post, err));
    e->post[post].probes = op->coll == SC_RECV && (op->take == SC_EMU_PROBE ||
                                                   op->take == SC_EMU_CLAIM);
    *ticket = e->post[post].ticket;
    return emu_message_call(e, post, err);
}

sc_status emu_message_call(sc_emu *e, uint32_t post, sc_err *err)
{
    return e->post[post].call.coll == SC_SEND ? post_send(e, post, err)
                                              : post_receive(e, post, err);
}

sc_status emu_message_alone(sc_emu *e, const sc_emu_op *op, sc_time t,
                            uint32_t task, sc_err *err)
{
    uint32_t i, post;
    SC_TRY(emu_post_add(e, op, t, &post, err));
    e->post[post].task = task;
    emu_op *o = emu_message_open(e, op, &i, err);
    if (!o) return SC_ENOMEM;
    o->begin = t;
    emu_post_join(e, post, i);
    return emu_op_begin(e, i, err);
}
