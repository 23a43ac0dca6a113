/* SPDX-License-Identifier: Apache-2.0 */
/* canon.c - nodes by ascending id, with indices and slots. */
#include "trace/canon.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PS_PER_US 1000000u

/* ---- names and slots */

static sc_status nomem(raw_trace *t)
{
    if (t->first == SC_OK) t->first = SC_ENOMEM;
    return sc_error_nomem(t->err);
}

sc_status names_put(trace_names *s, raw_text text, uint32_t *number,
                    sc_err *err)
{
    uint64_t hash = sc_hash(text.p, text.n, 0);
    uint32_t at = 0;
    while ((*number = sc_map_next(&s->index, hash, &at)) != SC_MAP_END) {
        const raw_text *known = &s->text[*number];
        if (known->n == text.n &&
            (text.n == 0 || memcmp(known->p, text.p, text.n) == 0))
            return SC_OK;
    }
    uint32_t n = s->index.n;
    raw_text *v = sc_grow(s->a, s->text, n, &s->cap, 64, sizeof *v);
    char *copy = sc_strndup(s->a, text.p, text.n);
    if (v == NULL || copy == NULL || !sc_map_add(&s->index, s->a, hash, n))
        return sc_error_nomem(err);
    s->text = v;
    v[n] = (raw_text){copy, text.n};
    *number = n;
    return SC_OK;
}

/* The slot of `value`; SC_MAP_END: out of memory. */
static uint32_t slot_of(trace_slots *s, uint32_t value)
{
    uint32_t i = sc_map_get(&s->index, value), n = s->index.n;
    if (i != SC_MAP_END) return i;
    uint32_t *v = sc_grow(s->a, s->value, n, &s->cap, 64, sizeof *v);
    if (v == NULL || !sc_map_set(&s->index, s->a, value, n)) return SC_MAP_END;
    s->value = v;
    v[n] = value;
    return n;
}

/* ---- order */

static int by_id(const void *x, const void *y)
{
    const raw_node *a = *(const raw_node *const *)x;
    const raw_node *b = *(const raw_node *const *)y;
    if (a->id != b->id) return a->id < b->id ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

static void twice(raw_trace *t, const raw_node *n)
{
    raw_error(t, SC_C_DUPLICATE, n->at, NULL, "node %" PRIu64 " occurs twice",
              n->id);
}

/* If ids are dense, a table indexed by id sorts the nodes and finds them
 * again. */
static sc_status sort_by_table(canon *c, raw_trace *t)
{
    uint32_t *at = SC_NEW_N(c->tmp, uint32_t, c->span + 1), n = 0;
    if (at == NULL) return nomem(t);
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t *cell = &at[t->node[i].id - c->low];
        if (*cell != 0)
            twice(t, &t->node[i]);
        else
            *cell = i + 1;
    }
    SC_TRY(t->first);
    for (uint64_t k = 0; k <= c->span; k++) {
        if (at[k] == 0) continue;
        c->order[n++] = &t->node[at[k] - 1];
        at[k] = n;
    }
    c->table = at;
    return SC_OK;
}

static sc_status sort_nodes(canon *c, raw_trace *t)
{
    uint64_t high = 0;
    c->low = UINT64_MAX;
    c->table = NULL;
    c->order = SC_NEW_N(c->tmp, const raw_node *, t->n);
    if (c->order == NULL) return nomem(t);
    for (uint32_t i = 0; i < t->n; i++) {
        c->order[i] = &t->node[i];
        if (t->node[i].id < c->low) c->low = t->node[i].id;
        if (t->node[i].id > high) high = t->node[i].id;
    }
    if (t->n == 0) return SC_OK;
    c->span = high - c->low;
    if (c->span < (uint64_t)t->n * 8 + 1024) return sort_by_table(c, t);
    qsort(c->order, t->n, sizeof(const raw_node *), by_id);
    for (uint32_t i = 1; i < t->n; i++)
        if (c->order[i]->id == c->order[i - 1]->id) twice(t, c->order[i]);
    return t->first;
}

static uint32_t find(const canon *c, uint64_t id)
{
    const uint64_t *ids = c->list.id;
    uint32_t next = 1;
    if (id < c->low || id - c->low > c->span) return SC_MAP_END;
    if (c->table != NULL) return c->table[id - c->low] - 1;
    SC_FIRST(next, c->list.n_tasks, mid, ids[mid] > id);
    return ids[next - 1] == id ? next - 1 : SC_MAP_END;
}

/* ---- columns */

static sc_status new_columns(sc_task_list *l, sc_arena *a, uint32_t n,
                             sc_err *err)
{
    l->n_tasks = n;
    l->kind = SC_NEW_N(a, uint8_t, n);
    l->coll = SC_NEW_N(a, uint8_t, n);
    l->flags = SC_NEW_N(a, uint8_t, n);
    l->n_preds = SC_NEW_N(a, uint32_t, n);
    l->succ_head = SC_NEW_N(a, uint32_t, (size_t)n + 1);
    l->duration = SC_NEW_N(a, sc_time, n);
    l->size = SC_NEW_N(a, uint64_t, n);
    l->group = SC_NEW_N(a, uint32_t, n);
    l->peer = SC_NEW_N(a, uint32_t, n);
    l->tag = SC_NEW_N(a, uint32_t, n);
    l->id = SC_NEW_N(a, uint64_t, n);
    l->ops = SC_NEW_N(a, uint64_t, n);
    l->priority = SC_NEW_N(a, uint32_t, n);
    l->dims = SC_NEW_N(a, uint32_t, n);
    bool ok = l->kind && l->coll && l->flags && l->n_preds && l->succ_head &&
              l->duration && l->size && l->group && l->peer && l->tag &&
              l->id && l->ops && l->priority && l->dims;
    return ok ? SC_OK : sc_error_nomem(err);
}

static bool given(const raw_node *n, raw_attr attr)
{
    return (n->given >> attr & 1) != 0;
}

/* Group "" is all ranks; so is "0" unless it is defined otherwise. */
static bool is_world(const canon *c, raw_text g)
{
    return g.n == 0 || (c->zero_is_world && g.n == 1 && g.p[0] == '0');
}

static sc_status group_slot(canon *c, raw_trace *t, const raw_node *n,
                            uint32_t *slot)
{
    uint32_t name;
    *slot = SC_TASK_WORLD;
    if (is_world(c, n->group)) return SC_OK;
    SC_TRY(names_put(&c->group_names, n->group, &name, t->err));
    uint32_t before = c->groups.index.n;
    *slot = slot_of(&c->groups, name);
    if (*slot == SC_MAP_END) return nomem(t);
    if (c->groups.index.n == before) return SC_OK;
    uint64_t *at =
        sc_grow(c->keep, c->group_at, before, &c->cap_at, 64, sizeof *at);
    if (at == NULL) return nomem(t);
    c->group_at = at;
    at[before] = n->at;
    return SC_OK;
}

/* SEND's destination or RECV's source, and the tag. */
static sc_status peer_slot(canon *c, raw_trace *t, const raw_node *n,
                           uint32_t i)
{
    bool send = n->kind == SC_TASK_SEND;
    raw_attr other = send ? RAW_COMM_DST : RAW_COMM_SRC;
    raw_attr self = send ? RAW_COMM_SRC : RAW_COMM_DST;
    const char *name = send ? "comm_dst" : "comm_src";
    if (!given(n, other)) {
        c->list.flags[i] |= SC_TASK_NO_COMM;
        return SC_OK;
    }
    if (c->n_ranks > 0 && n->v[other] >= c->n_ranks)
        return raw_error(t, SC_C_RANGE, n->at, NULL,
                         "node %" PRIu64 ": %s is %" PRIu64
                         ", but there are ranks 0..%u",
                         n->id, name, n->v[other], c->n_ranks - 1);
    if (c->n_ranks > 0 && given(n, self) && n->v[self] != c->rank)
        return raw_error(
            t, SC_C_CONFLICT, n->at, NULL,
            "node %" PRIu64 ": %s is %" PRIu64 " in the trace of rank %u",
            n->id, send ? "comm_src" : "comm_dst", n->v[self], c->rank);
    c->list.peer[i] = slot_of(&c->peers, (uint32_t)n->v[other]);
    uint32_t tag = given(n, RAW_COMM_TAG) ? (uint32_t)n->v[RAW_COMM_TAG] : 0;
    c->list.tag[i] = slot_of(&c->tags, tag);
    bool ok = c->list.peer[i] != SC_MAP_END && c->list.tag[i] != SC_MAP_END;
    return ok ? SC_OK : nomem(t);
}

static sc_status communication(canon *c, raw_trace *t, const raw_node *n,
                               uint32_t i)
{
    if (n->kind != SC_TASK_COLL) return peer_slot(c, t, n, i);
    if (given(n, RAW_COMM_TYPE))
        c->list.coll[i] = raw_colls[n->v[RAW_COMM_TYPE]];
    else
        c->list.flags[i] |= SC_TASK_NO_COMM;
    if (given(n, RAW_COMM_ROOT)) {
        c->list.peer[i] = (uint32_t)n->v[RAW_COMM_ROOT];
        c->rooted = true;
    }
    return group_slot(c, t, n, &c->list.group[i]);
}

static sc_status duration(const canon *c, raw_trace *t, const raw_node *n,
                          sc_time *out)
{
    if (given(n, RAW_DURATION_PS) && !c->micros) {
        *out = (sc_time)n->v[RAW_DURATION_PS];
        return SC_OK;
    }
    if (n->micros > (uint64_t)SC_TIME_MAX / PS_PER_US)
        return raw_error(t, SC_C_RANGE, n->at, NULL,
                         "node %" PRIu64 ": duration of %" PRIu64
                         " us is beyond 106 days",
                         n->id, n->micros);
    *out = (sc_time)(n->micros * PS_PER_US);
    return SC_OK;
}

static sc_status column(canon *c, raw_trace *t, const raw_node *n, uint32_t i)
{
    sc_task_list *l = &c->list;
    bool comm = n->kind >= SC_TASK_SEND;
    raw_attr size = comm ? RAW_COMM_SIZE : RAW_TENSOR_SIZE;
    unsigned flags = 0;
    l->kind[i] = n->kind;
    l->id[i] = n->id;
    l->group[i] = SC_TASK_WORLD;
    if (given(n, size))
        l->size[i] = n->v[size];
    else
        flags |= SC_TASK_NO_SIZE;
    if (given(n, RAW_NUM_OPS))
        l->ops[i] = n->v[RAW_NUM_OPS];
    else
        flags |= SC_TASK_NO_OPS;
    if (given(n, RAW_IS_CPU_OP) && n->v[RAW_IS_CPU_OP]) flags |= SC_TASK_CPU;
    if (given(n, RAW_INVOLVED_DIM)) {
        flags |= SC_TASK_DIMS;
        l->dims[i] = n->dims;
    }
    if (given(n, RAW_COMM_PRIORITY))
        l->priority[i] = (uint32_t)n->v[RAW_COMM_PRIORITY];
    l->flags[i] = (uint8_t)flags;
    sc_status s = duration(c, t, n, &l->duration[i]);
    if (s == SC_OK && comm) s = communication(c, t, n, i);
    return s == SC_ENOMEM ? s : SC_OK; /* other errors are kept in t->first */
}

/* ---- dependencies */

/* Ids to indices in place, and how many successors each node has. */
static sc_status count_deps(canon *c, raw_trace *t, uint32_t *last)
{
    sc_task_list *l = &c->list;
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        uint32_t n = c->order[i]->n_deps;
        uint64_t *dep = n > 0 ? t->dep + c->order[i]->dep : NULL;
        for (uint32_t k = 0; k < n; k++) {
            uint32_t p = find(c, dep[k]);
            if (p == SC_MAP_END) {
                raw_error(t, SC_C_REFERENCE, c->order[i]->at, NULL,
                          "node %" PRIu64 " depends on node %" PRIu64
                          ", which is not in the file",
                          l->id[i], dep[k]);
                continue;
            }
            dep[k] = p;
            if (last[p] == i + 1) continue; /* named before */
            last[p] = i + 1;
            l->succ_head[p + 1]++;
            l->n_preds[i]++;
            l->n_deps++;
        }
    }
    return t->first;
}

static sc_status link_deps(canon *c, raw_trace *t)
{
    sc_task_list *l = &c->list;
    if (t->n_deps >= UINT32_MAX - 1)
        return raw_error(t, SC_C_TOO_BIG, 0, NULL, "too many dependencies");
    uint32_t *last = SC_NEW_N(c->tmp, uint32_t, l->n_tasks);
    if (last == NULL) return nomem(t);
    SC_TRY(count_deps(c, t, last));
    l->succ = SC_NEW_N(c->tmp, uint32_t, l->n_deps);
    if (l->succ == NULL) return nomem(t);
    uint32_t *head = l->succ_head;
    for (uint32_t i = 0; i < l->n_tasks; i++) head[i + 1] += head[i];
    /* successors come in ascending order, so a repetition equals the last one */
    memset(last, 0, l->n_tasks * sizeof *last);
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        uint32_t n = c->order[i]->n_deps;
        const uint64_t *dep = n > 0 ? t->dep + c->order[i]->dep : NULL;
        for (uint32_t k = 0; k < n; k++) {
            uint32_t p = (uint32_t)dep[k], m = last[p];
            if (m > 0 && l->succ[head[p] + m - 1] == i) continue;
            l->succ[head[p] + m] = i;
            last[p] = m + 1;
        }
    }
    return SC_OK;
}

/* ---- tensors */

static sc_status add_uses(canon *c, raw_trace *t, uint32_t from, uint32_t n,
                          uint32_t *k)
{
    for (uint32_t j = from; j < from + n; j++, (*k)++) {
        uint32_t name;
        SC_TRY(names_put(&c->tensor_names, t->use[j].name, &name, t->err));
        uint32_t slot = slot_of(&c->tensor_slots, name);
        if (slot == SC_MAP_END) return nomem(t);
        c->list.use_tensor[*k] = slot;
        c->list.use_bytes[*k] = t->use[j].bytes;
    }
    return SC_OK;
}

static sc_status tensors(canon *c, raw_trace *t)
{
    sc_task_list *l = &c->list;
    uint32_t k = 0;
    if (!c->tensors) return SC_OK;
    l->n_uses = t->n_uses;
    l->use_head = SC_NEW_N(c->tmp, uint32_t, (size_t)l->n_tasks + 1);
    l->use_out = SC_NEW_N(c->tmp, uint32_t, l->n_tasks);
    l->use_tensor = SC_NEW_N(c->tmp, uint32_t, l->n_uses);
    l->use_bytes = SC_NEW_N(c->tmp, uint64_t, l->n_uses);
    if (!l->use_head || !l->use_out || !l->use_tensor || !l->use_bytes)
        return nomem(t);
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        SC_TRY(add_uses(c, t, c->order[i]->in, c->order[i]->n_in, &k));
        l->use_out[i] = k;
        SC_TRY(add_uses(c, t, c->order[i]->out, c->order[i]->n_out, &k));
        l->use_head[i + 1] = k;
    }
    l->n_tensors = c->tensor_slots.index.n;
    return SC_OK;
}

sc_status canon_build(canon *c, raw_trace *t)
{
    trace_slots *slots[] = {&c->groups, &c->peers, &c->tags, &c->tensor_slots};
    memset(&c->list, 0, sizeof c->list);
    c->rooted = false;
    for (size_t i = 0; i < SC_COUNT(slots); i++) {
        slots[i]->a = c->keep;
        sc_map_clear(&slots[i]->index);
    }
    SC_TRY(sort_nodes(c, t));
    SC_TRY(new_columns(&c->list, c->tmp, t->n, t->err));
    for (uint32_t i = 0; i < t->n; i++) SC_TRY(column(c, t, c->order[i], i));
    SC_TRY(link_deps(c, t));
    SC_TRY(tensors(c, t));
    c->list.n_groups = c->groups.index.n;
    c->list.n_peers = c->peers.index.n;
    c->list.n_tags = c->tags.index.n;
    return t->first;
}
