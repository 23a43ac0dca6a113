/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c - a workload as Chakra ET, one file per rank.
 *
 * Attributes have the types that ASTRA-sim's examples give them, so that it
 * reads what is written here; communicators are numbered from 1 where their
 * names are no such numbers, as it needs them.
 */
#include "trace/raw.h"
#include "trace/trace.h"
#include "trace/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PS_PER_US     1000000u
#define CHAKRA_SCHEMA "0.0.4"

/* ---- bytes */

typedef struct bytes {
    uint8_t *p;
    size_t n, cap;
    bool failed;
} bytes;

static void put(bytes *b, const void *data, size_t n)
{
    if (b->failed || n == 0) return;
    if (n > b->cap - b->n) {
        size_t cap = 2 * b->cap + n + 256;
        uint8_t *p = realloc(b->p, cap);
        if (p == NULL) {
            b->failed = true;
            return;
        }
        b->p = p;
        b->cap = cap;
    }
    memcpy(b->p + b->n, data, n);
    b->n += n;
}

static void put_varint(bytes *b, uint64_t v)
{
    uint8_t buf[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) buf[n++] = (uint8_t)(v | 0x80);
    buf[n++] = (uint8_t)v;
    put(b, buf, n);
}

static void put_number(bytes *b, unsigned field, uint64_t v)
{
    put_varint(b, field << 3 | WIRE_VARINT);
    put_varint(b, v);
}

static void put_bytes(bytes *b, unsigned field, const void *data, size_t n)
{
    put_varint(b, field << 3 | WIRE_BYTES);
    put_varint(b, n);
    put(b, data, n);
}

/* ---- nodes */

/* Fields of AttributeProto. */
enum {
    F_INT64 = 9,
    F_UINT32 = 11,
    F_UINT64 = 13,
    F_BOOL = 27,
    F_BOOL_LIST = 28,
    F_STRING = 29,
    F_STRING_LIST = 30
};

typedef struct writer {
    const sc_workload *w;
    char **group_name;   /* [n_groups] as written */
    uint32_t *pred_head; /* of the class at hand: CSR of dependencies */
    uint32_t *pred;
    bytes file, node, attr, list; /* attr and list: what is inside */
} writer;

static void end_attr(writer *w)
{
    put_bytes(&w->node, 10, w->attr.p, w->attr.n);
    w->attr.n = 0;
}

static void attr_number(writer *w, const char *name, unsigned field, uint64_t v)
{
    put_bytes(&w->attr, 1, name, strlen(name));
    put_number(&w->attr, field, v);
    end_attr(w);
}

static void attr_bytes(writer *w, const char *name, unsigned field,
                       const void *data, size_t n)
{
    put_bytes(&w->attr, 1, name, strlen(name));
    put_bytes(&w->attr, field, data, n);
    end_attr(w);
}

/* Dimensions up to the last one involved, at least as many as ASTRA-sim assumes
 * where the attribute is absent. */
static void attr_dims(writer *w, uint32_t dims)
{
    uint8_t on[32];
    unsigned n = 4;
    while (n < 32 && dims >> n != 0) n++;
    for (unsigned i = 0; i < n; i++) on[i] = dims >> i & 1;
    put_bytes(&w->list, 1, on, n);
    attr_bytes(w, "involved_dim", F_BOOL_LIST, w->list.p, w->list.n);
    w->list.n = 0;
}

static void attr_tensors(writer *w, const sc_task_list *l, const char *name,
                         uint32_t from, uint32_t to)
{
    char size[24];
    for (uint32_t k = from; k < to; k++) {
        const char *tensor = l->tensor[l->use_tensor[k]];
        int n = snprintf(size, sizeof size, "%" PRIu64, l->use_bytes[k]);
        put_bytes(&w->list, 1, tensor, strlen(tensor));
        put_bytes(&w->list, 1, size, (size_t)n);
    }
    attr_bytes(w, name, F_STRING_LIST, w->list.p, w->list.n);
    w->list.n = 0;
}

static uint64_t coll_number(uint8_t coll)
{
    uint64_t k = 0;
    while (k + 1 < RAW_N_COLLS && raw_colls[k] != coll) k++;
    return k;
}

static void communication(writer *w, const sc_task_list *l,
                          const sc_rank_trace *r, uint32_t rank, uint32_t i)
{
    bool known = (l->flags[i] & SC_TASK_NO_COMM) == 0;
    if (l->kind[i] == SC_TASK_COLL) {
        if (known)
            attr_number(w, "comm_type", F_INT64, coll_number(l->coll[i]));
        if (l->group[i] != SC_TASK_WORLD) {
            const char *name = w->group_name[r->groups[l->group[i]]];
            attr_bytes(w, "pg_name", F_STRING, name, strlen(name));
        }
        if (l->peer[i] != 0) attr_number(w, "comm_root", F_UINT32, l->peer[i]);
        return;
    }
    if (!known) return;
    bool send = l->kind[i] == SC_TASK_SEND;
    uint32_t peer = r->peers[l->peer[i]];
    attr_number(w, "comm_src", F_UINT32, send ? rank : peer);
    attr_number(w, "comm_dst", F_UINT32, send ? peer : rank);
    attr_number(w, "comm_tag", F_UINT32, r->tags[l->tag[i]]);
}

static void attributes(writer *w, const sc_task_list *l, const sc_rank_trace *r,
                       uint32_t rank, uint32_t i)
{
    bool comm = l->kind[i] >= SC_TASK_SEND;
    attr_number(w, "is_cpu_op", F_BOOL, (l->flags[i] & SC_TASK_CPU) != 0);
    if (comm) communication(w, l, r, rank, i);
    if ((l->flags[i] & SC_TASK_NO_SIZE) == 0)
        attr_number(w, comm ? "comm_size" : "tensor_size",
                    comm ? F_INT64 : F_UINT64, l->size[i]);
    if ((l->flags[i] & SC_TASK_NO_OPS) == 0)
        attr_number(w, "num_ops", F_UINT64, l->ops[i]);
    if (l->priority[i] != 0)
        attr_number(w, "comm_priority", F_UINT32, l->priority[i]);
    if ((l->flags[i] & SC_TASK_DIMS) != 0) attr_dims(w, l->dims[i]);
    if (l->duration[i] % PS_PER_US != 0)
        attr_number(w, "duration_ps", F_UINT64, (uint64_t)l->duration[i]);
    if (l->use_head != NULL) {
        attr_tensors(w, l, "inputs", l->use_head[i], l->use_out[i]);
        attr_tensors(w, l, "outputs", l->use_out[i], l->use_head[i + 1]);
    }
}

static void node(writer *w, const sc_task_list *l, const sc_rank_trace *r,
                 uint32_t rank, uint32_t i)
{
    bytes *b = &w->node;
    uint64_t us = ((uint64_t)l->duration[i] + PS_PER_US / 2) / PS_PER_US;
    b->n = 0;
    if (l->id[i] != 0) put_number(b, 1, l->id[i]);
    if (l->name != NULL && l->name[i][0] != '\0')
        put_bytes(b, 2, l->name[i], strlen(l->name[i]));
    if (l->kind[i] != 0) put_number(b, 3, l->kind[i]);
    for (uint32_t k = w->pred_head ? w->pred_head[i] : 0;
         w->pred_head && k < w->pred_head[i + 1]; k++)
        put_varint(&w->list, l->id[w->pred[k]]);
    if (w->list.n > 0) put_bytes(b, 5, w->list.p, w->list.n);
    w->list.n = 0;
    if (us != 0) put_number(b, 7, us);
    attributes(w, l, r, rank, i);
    put_varint(&w->file, b->n);
    put(&w->file, b->p, b->n);
}

/* ---- files */

/* Turns lists of successors into lists of predecessors. */
static sc_status predecessors(writer *w, const sc_task_list *l, sc_err *err)
{
    free(w->pred_head);
    free(w->pred);
    w->pred_head = calloc((size_t)l->n_tasks + 2, sizeof *w->pred_head);
    w->pred = calloc((size_t)l->n_deps + 1, sizeof *w->pred);
    if (w->pred_head == NULL || w->pred == NULL) return sc_error_nomem(err);
    /* at[i] begins where node i's begin and ends where those of i + 1 do */
    uint32_t *at = w->pred_head + 1;
    for (uint32_t i = 0; i + 1 < l->n_tasks; i++)
        at[i + 1] = at[i] + l->n_preds[i];
    for (uint32_t i = 0; i < l->n_tasks; i++)
        for (uint32_t k = l->succ_head[i]; k < l->succ_head[i + 1]; k++)
            w->pred[at[l->succ[k]]++] = i;
    return SC_OK;
}

static sc_status write_rank(writer *w, uint32_t rank, const char *prefix,
                            char *path, size_t size, sc_err *err)
{
    const sc_rank_trace *r = &w->w->ranks[rank];
    const sc_task_list *l = &w->w->classes[r->cls];
    w->file.n = 0;
    put_bytes(&w->attr, 1, CHAKRA_SCHEMA, strlen(CHAKRA_SCHEMA));
    put_varint(&w->file, w->attr.n);
    put(&w->file, w->attr.p, w->attr.n);
    w->attr.n = 0;
    for (uint32_t i = 0; i < l->n_tasks; i++) node(w, l, r, rank, i);
    if (w->file.failed || w->node.failed || w->attr.failed || w->list.failed)
        return sc_error_nomem(err);
    snprintf(path, size, "%s.%" PRIu32 ".et", prefix, rank);
    return sc_file_write(path, (const char *)w->file.p, w->file.n, err);
}

/* A positive number as ASTRA-sim reads one. */
static bool is_number(const char *s)
{
    size_t n = strspn(s, "0123456789");
    return n > 0 && n < 10 && s[n] == '\0' && s[0] != '0';
}

static int by_text(const void *x, const void *y)
{
    return strcmp(*(char *const *)x, *(char *const *)y);
}

static bool all_numbers(const sc_workload *w, const char **sort)
{
    for (uint32_t i = 0; i < w->n_groups; i++) {
        if (!is_number(w->groups[i].name)) return false;
        sort[i] = w->groups[i].name;
    }
    if (w->n_groups == 0) return true;
    qsort(sort, w->n_groups, sizeof *sort, by_text);
    for (uint32_t i = 1; i < w->n_groups; i++)
        if (strcmp(sort[i], sort[i - 1]) == 0) return false;
    return true;
}

static sc_status name_groups(writer *w, sc_arena *a, sc_err *err)
{
    uint32_t n = w->w->n_groups;
    w->group_name = SC_NEW_N(a, char *, n);
    const char **sort = SC_NEW_N(a, const char *, n);
    if (w->group_name == NULL || sort == NULL) return sc_error_nomem(err);
    bool keep = all_numbers(w->w, sort);
    for (uint32_t i = 0; i < n; i++) {
        w->group_name[i] = keep ? sc_strdup(a, w->w->groups[i].name)
                                : sc_sprintf(a, "%" PRIu32, i + 1);
        if (w->group_name[i] == NULL) return sc_error_nomem(err);
    }
    return SC_OK;
}

static sc_status write_groups(const writer *w, const char *path, sc_err *err)
{
    sc_json j;
    sc_json_init(&j, false);
    sc_json_begin(&j, '{');
    for (uint32_t i = 0; i < w->w->n_groups; i++) {
        const sc_rank_group *g = &w->w->groups[i];
        sc_json_key(&j, w->group_name[i]);
        sc_json_begin(&j, '[');
        for (uint32_t k = 0; k < g->n; k++) sc_json_uint(&j, g->rank[k]);
        sc_json_end(&j, ']');
    }
    sc_json_end(&j, '}');
    sc_status s =
        j.failed ? sc_error_nomem(err) : sc_file_write(path, j.buf, j.len, err);
    sc_json_free(&j);
    return s;
}

/* Predecessors are computed once for each class. */
static sc_status write_all(writer *w, const char *prefix, char *path,
                           size_t size, sc_err *err)
{
    const sc_workload *l = w->w;
    snprintf(path, size, "%s.json", prefix);
    if (l->n_groups > 0) SC_TRY(write_groups(w, path, err));
    uint32_t cls = UINT32_MAX;
    for (uint32_t r = 0; r < l->n_ranks; r++) {
        if (l->ranks[r].cls != cls) {
            cls = l->ranks[r].cls;
            SC_TRY(predecessors(w, &l->classes[cls], err));
        }
        SC_TRY(write_rank(w, r, prefix, path, size, err));
    }
    return SC_OK;
}

sc_status sc_trace_write(const sc_workload *w, const char *prefix, sc_err *err)
{
    writer s = {.w = w};
    sc_arena a;
    if (w->n_jobs > 1)
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_file(prefix),
                        "write the traces of each job separately",
                        "%u jobs cannot be written as one set of traces",
                        w->n_jobs);
    sc_arena_init(&a, 0);
    size_t size = strlen(prefix) + 32;
    char *path = sc_alloc(&a, size, 1);
    sc_status st = path ? name_groups(&s, &a, err) : sc_error_nomem(err);
    if (st == SC_OK) st = write_all(&s, prefix, path, size, err);
    free(s.pred_head);
    free(s.pred);
    free(s.file.p);
    free(s.node.p);
    free(s.attr.p);
    free(s.list.p);
    sc_arena_free(&a);
    return st;
}
