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
    } words[] = {{"reduce_scatter", SC_REDUCE_SCATTER},
                 {"allgather", SC_ALL_GATHER},
                 {"all_gather", SC_ALL_GATHER},
                 {"allreduce", SC_ALL_REDUCE},
                 {"all_reduce", SC_ALL_REDUCE},
                 {"alltoall", SC_ALL_TO_ALL},
                 {"all_to_all", SC_ALL_TO_ALL},
                 {"broadcast", SC_BROADCAST},
                 {"send", SC_SEND},
                 {"recv", SC_RECV}};

    for (size_t i = 0; i < SC_COUNT(words); i++)
        if (strstr(name, words[i].word)) return words[i].coll;
    return none;
}

/* Bytes as nccl-tests counts them; 0 if the trace does not state them, or not of
 * which type the elements are. Shapes of an annotation are those of the input, of
 * which an all-gather has a part. */
static uint64_t coll_bytes(const replay_rank *r, const sc_trace_span_args *x,
                           sc_coll coll, uint32_t size)
{
    uint64_t n = coll == SC_ALL_GATHER ? x->out_elems : x->in_elems;
    const char *type = r->m->name[x->dtype ? x->dtype : x->types];
    if (!n && x->dims) {
        shape_inputs in;
        shape_read(r->m->name[x->dims], &in);
        for (uint32_t i = 0; i < in.n; i++) n += shape_elements(&in.tensor[i]);
        if (coll == SC_ALL_GATHER) n *= size;
    }
    return *type ? n * shape_element_bytes(type) : 0;
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

bool replay_message(const replay_rank *r, const sc_trace_span_args *x,
                    uint32_t peer[2])
{
    const char *coll = r->m->name[x->coll];
    bool send = strcmp(coll, "send") == 0, recv = strcmp(coll, "recv") == 0;
    peer[0] = send ? r->rank + 1 : x->from;
    peer[1] = recv ? r->rank + 1 : x->to;
    return send || recv;
}

uint32_t replay_coll_size(const sc_replay_model *m, const replay_rank *r,
                          uint32_t op)
{
    uint32_t stated = replay_comm_args(r, op)->group_size;
    uint32_t coll = r->op[op].coll;
    if (stated) return stated;
    return coll != REPLAY_NONE ? m->coll[coll].n : r->m->world_size;
}

sc_coll replay_coll_kind(const replay_rank *r, uint32_t op, uint32_t size,
                         uint64_t *bytes)
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
    *bytes = coll_bytes(r, x, coll, size);
    return coll;
}

/* "[0, 8, 16]"; long lists are cut off by profilers ("..."), so they count only
 * if all ranks are there. */
static uint32_t listed_ranks(const char *text, uint32_t most, uint32_t *out)
{
    uint32_t n = 0;
    for (const char *p = text; *p;) {
        uint64_t v = 0;
        if (*p < '0' || *p > '9') {
            p++;
            continue;
        }
        for (; *p >= '0' && *p <= '9'; p++)
            v = v > UINT32_MAX ? v : 10 * v + (uint64_t)(*p - '0');
        if (n == most || v >= UINT32_MAX) return 0;
        out[n++] = (uint32_t)v;
    }
    return n == most ? n : 0;
}

bool replay_coll_ranks(const replay_rank *r, uint32_t op, uint32_t size,
                       sc_arena *a, uint32_t **out, uint32_t *n)
{
    const sc_trace_span_args *x = replay_comm_args(r, op);
    const char *name = r->m->name[x->group];
    *out = SC_NEW_N(a, uint32_t, size);
    *n = size;
    if (!*out) return false;
    if (x->ranks && listed_ranks(r->m->name[x->ranks], size, *out)) return true;
    for (uint32_t i = 0; x->group && i < r->m->n_groups; i++) {
        const sc_profiled_group *g = &r->m->group[i];
        if (strcmp(g->name, name) != 0 || g->n != size) continue;
        memcpy(*out, g->rank, size * sizeof **out);
        return true;
    }
    for (uint32_t i = 0; i < size; i++) (*out)[i] = i;
    return true;
}
