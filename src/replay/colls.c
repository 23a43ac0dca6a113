/* SPDX-License-Identifier: Apache-2.0 */
/* colls.c - kinds and sizes of collectives as frameworks state them. */
#include "replay/model.h"
#include "replay/shapes.h"

#include <string.h>

/* Kinds of collectives by words of the names that frameworks give them. */
static sc_coll coll_of(const char *name, sc_coll none)
{
    static const struct {
        const char *word;
        sc_coll coll;
    } words[] = {
        {"reduce_scatter", SC_REDUCE_SCATTER}, {"allgather", SC_ALL_GATHER},
        {"all_gather", SC_ALL_GATHER},         {"allreduce", SC_ALL_REDUCE},
        {"all_reduce", SC_ALL_REDUCE},         {"alltoall", SC_ALL_TO_ALL},
        {"all_to_all", SC_ALL_TO_ALL},         {"broadcast", SC_BROADCAST}};

    for (size_t i = 0; i < SC_COUNT(words); i++)
        if (strstr(name, words[i].word)) return words[i].coll;
    return none;
}

/* Bytes as nccl-tests counts them; 0 if the trace does not state them. */
static double coll_bytes(const replay_rank *r, const sc_trace_span_args *x,
                         sc_coll coll)
{
    uint64_t n = coll == SC_ALL_GATHER ? x->out_elems : x->in_elems;
    const char *type = r->m->name[x->dtype ? x->dtype : x->types];
    if (!n && x->dims) {
        shape_inputs in;
        shape_read(r->m->name[x->dims], &in);
        for (uint32_t i = 0; i < in.n; i++) n += shape_elements(&in.tensor[i]);
    }
    if (strstr(type, "Float") && !strstr(type, "BFloat"))
        return 4.0 * (double)n;
    return (double)n * sc_precision_bytes(shape_precision(type));
}

const sc_trace_span_args *replay_comm_args(const replay_rank *r, uint32_t op)
{
    uint32_t item = r->op[op].item;
    const sc_trace_span *s = replay_span(r, r->op[op].span);
    const sc_trace_span_args *own = &r->m->args[s->args];
    if (own->coll || own->group || item == REPLAY_NONE) return own;
    uint32_t comm = r->item[item].comm;
    return comm == REPLAY_NONE ? own : &r->m->args[replay_span(r, comm)->args];
}

sc_coll replay_coll_kind(const replay_rank *r, uint32_t op, uint64_t *bytes)
{
    const sc_trace_span *s = replay_span(r, r->op[op].span);
    const sc_trace_span_args *x = replay_comm_args(r, op);
    uint32_t item = r->op[op].item;
    uint32_t comm = item == REPLAY_NONE ? REPLAY_NONE : r->item[item].comm;
    const char *name = "";
    if (x->coll)
        name = r->m->name[x->coll];
    else if (comm != REPLAY_NONE)
        name = r->m->name[replay_span(r, comm)->name];
    sc_coll coll = coll_of(name, (sc_coll)s->detail);
    *bytes = (uint64_t)coll_bytes(r, x, coll);
    return coll;
}
