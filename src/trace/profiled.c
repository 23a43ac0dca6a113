/* SPDX-License-Identifier: Apache-2.0 */
/* profiled.c - names, arguments and lanes of a measured trace, each once, and
 * its spans. */
#include "trace/profiled.h"

#include <string.h>

const sc_trace_span_args profiled_no_args = {.wait_stream = -1, .stream = -1};

sc_status profiled_start(profiled *p, const char *file, sc_arena *a,
                         sc_err *err)
{
    sc_profiled *m = &p->m;
    *p = (profiled){.a = a, .err = err, .m = {.file = file, .rank = -1}};
    m->name = sc_grow(a, NULL, 0, &p->cap_names, 256, sizeof *m->name);
    m->args = sc_grow(a, NULL, 0, &p->cap_args, 256, sizeof *m->args);
    if (!m->name || !m->args) return sc_error_nomem(err);
    m->name[m->n_names++] = "";
    m->args[m->n_args++] = profiled_no_args;
    return SC_OK;
}

static uint64_t hash_of(const char *text, size_t len)
{
    return sc_hash(text, len, 0);
}

static uint64_t hash_of_args(const sc_trace_span_args *x)
{
    return sc_hash(x, sizeof *x, 1);
}

/* The first name and the first arguments are found by no one: 0 is none. */
void profiled_resume(profiled *p, const sc_profiled *m, sc_arena *a,
                     sc_err *err)
{
    *p = (profiled){.a = a,
                    .err = err,
                    .m = *m,
                    .cap_names = m->n_names,
                    .cap_args = m->n_args};
    for (uint32_t i = 1; i < m->n_names; i++)
        p->out_of_memory |= !sc_map_add(
            &p->names, a, hash_of(m->name[i], strlen(m->name[i])), i);
    for (uint32_t i = 1; i < m->n_args; i++)
        p->out_of_memory |=
            !sc_map_add(&p->args, a, hash_of_args(&m->args[i]), i);
}

static uint32_t add_name(profiled *p, uint64_t hash, const char *text,
                         size_t len)
{
    sc_profiled *m = &p->m;
    const char **grown = sc_grow(p->a, (void *)m->name, m->n_names,
                                 &p->cap_names, 256, sizeof *grown);
    char *copy = sc_strndup(p->a, text, len);
    if (!grown || !copy || !sc_map_add(&p->names, p->a, hash, m->n_names)) {
        p->out_of_memory = true;
        return 0;
    }
    m->name = grown;
    m->name[m->n_names] = copy;
    return m->n_names++;
}

uint32_t profiled_name(profiled *p, const char *text, size_t len)
{
    uint32_t at = 0, i;
    if (len == 0) return 0;
    uint64_t hash = hash_of(text, len);
    while ((i = sc_map_next(&p->names, hash, &at)) != SC_MAP_END)
        if (strncmp(p->m.name[i], text, len) == 0 && !p->m.name[i][len])
            return i;
    return add_name(p, hash, text, len);
}

uint32_t profiled_token(profiled *p, const scan_token *token)
{
    if (token->type == SCAN_NONE || token->len == 0) return 0;
    if (token->len + (size_t)1 > p->text_cap) {
        size_t cap = 2 * (size_t)token->len + 256;
        char *grown = SC_RAW_N(p->a, char, cap);
        if (!grown) {
            p->out_of_memory = true;
            return 0;
        }
        p->text = grown;
        p->text_cap = cap;
    }
    return profiled_name(p, p->text, scan_unescape(token, p->text));
}

uint32_t profiled_args(profiled *p, const sc_trace_span_args *x)
{
    sc_profiled *m = &p->m;
    uint64_t hash = hash_of_args(x);
    uint32_t at = 0, i;
    while ((i = sc_map_next(&p->args, hash, &at)) != SC_MAP_END)
        if (memcmp(&m->args[i], x, sizeof *x) == 0) return i;
    sc_trace_span_args *grown =
        sc_grow(p->a, m->args, m->n_args, &p->cap_args, 256, sizeof *grown);
    if (!grown || !sc_map_add(&p->args, p->a, hash, m->n_args)) {
        p->out_of_memory = true;
        return 0;
    }
    m->args = grown;
    m->args[m->n_args] = *x;
    return m->n_args++;
}

uint32_t profiled_lane(profiled *p, int64_t pid, int64_t tid, bool device)
{
    sc_profiled *m = &p->m;
    uint64_t hash = sc_mix(sc_mix((uint64_t)pid) ^ (uint64_t)tid) ^ device;
    uint32_t at = 0, i;
    while ((i = sc_map_next(&p->lanes, hash, &at)) != SC_MAP_END) {
        const sc_lane *l = &m->lanes[i];
        if (l->pid == pid && l->tid == tid && l->device == device) return i;
    }
    if (m->n_lanes == UINT16_MAX) return UINT32_MAX;
    sc_lane *grown =
        sc_grow(p->a, m->lanes, m->n_lanes, &p->cap_lanes, 16, sizeof *grown);
    if (!grown || !sc_map_add(&p->lanes, p->a, hash, m->n_lanes)) {
        p->out_of_memory = true;
        return UINT32_MAX;
    }
    m->lanes = grown;
    m->lanes[m->n_lanes] = (sc_lane){.pid = pid, .tid = tid, .device = device};
    return m->n_lanes++;
}

sc_status profiled_span(profiled *p, const sc_trace_span *span)
{
    sc_profiled *m = &p->m;
    uint64_t c = m->n_spans / SC_SPAN_CHUNK;
    if (m->n_spans % SC_SPAN_CHUNK == 0) {
        sc_trace_span **grown = sc_grow(p->a, (void *)m->chunk, (uint32_t)c,
                                        &p->cap_chunks, 64, sizeof *grown);
        sc_trace_span *chunk = SC_RAW_N(p->a, sc_trace_span, SC_SPAN_CHUNK);
        if (!grown || !chunk) return sc_error_nomem(p->err);
        m->chunk = grown;
        m->chunk[c] = chunk;
    }
    *sc_trace_span_at(m, m->n_spans++) = *span;
    m->lanes[span->lane].n++;
    return SC_OK;
}

sc_status profiled_change(profiled *p, const sc_memory_change *change)
{
    sc_profiled *m = &p->m;
    sc_memory_change *grown = sc_grow(p->a, m->change, m->n_changes,
                                      &p->cap_changes, 256, sizeof *grown);
    if (!grown) return sc_error_nomem(p->err);
    m->change = grown;
    m->change[m->n_changes++] = *change;
    return SC_OK;
}

/* Numbers of devices may not be those of the list, which does not matter if all
 * have one name. */
void profiled_name_device(profiled *p, const profiled_device *device,
                          uint32_t n)
{
    uint32_t most = 0;
    bool equal = n > 0 && device[0].name;
    for (uint32_t d = 1; equal && d < n; d++)
        equal = device[d].name && strcmp(device[d].name, device[0].name) == 0;
    if (equal) p->m.device = device[0].name;
    for (uint32_t i = 0; i < p->m.n_lanes; i++) {
        const sc_lane *l = &p->m.lanes[i];
        if (!l->device || l->n <= most) continue;
        for (uint32_t d = 0; d < n; d++) {
            if (device[d].id != l->pid || !device[d].name) continue;
            most = l->n;
            p->m.device = device[d].name;
        }
    }
}
