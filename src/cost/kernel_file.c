/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_file.c - reads fitted forms of kernels. */
#include "cost/cost_kernel.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COUNT 32
#define MAX_LOG   5000 /* a correction of more than exp(5) is refused */

typedef struct entry {
    int fit, kind;
    int64_t rows;
    double error;
    sc_form_constants c;
    int64_t tiles;
    double whole[2];
    double host, least;
    const char *device;
    const sc_node *first, *count;
    const char *log;
} entry;

#define OFF(f) offsetof(entry, f)
#define NUMBER(name_, field, lo, hi, text)                                \
    {                                                                     \
        .name = (name_), .type = SC_T_QUANTITY, .unit = SC_U_NONE,        \
        .offset = OFF(field), .min = (lo), .max = (hi), .required = true, \
        .help = (text)                                                    \
    }

#define WHOLE(name_, i, text)                                         \
    {                                                                 \
        .name = (name_), .type = SC_T_QUANTITY, .unit = SC_U_NONE,    \
        .offset = OFF(whole[i]), .min = 0.5, .max = 2, .help = (text) \
    }

static const sc_key keys[] = {
    {.name = "class",
     .type = SC_T_ENUM,
     .offset = OFF(fit),
     .names = sc_fit_class_names,
     .help = "class of generations"},
    {.name = "device",
     .type = SC_T_STRING,
     .offset = OFF(device),
     .help = "the one device that the form is for, instead of a class"},
    {.name = "kind",
     .type = SC_T_ENUM,
     .offset = OFF(kind),
     .names = sc_form_names,
     .required = true,
     .help = "kind of kernel"},
    {.name = "rows",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     .offset = OFF(rows),
     .max = 1e9,
     .required = true,
     .help = "measured kernels of the fit"},
    NUMBER("error", error, 0, 10, "mean error of shapes that the fit lacks"),
    NUMBER("start", c.start, 0, 1e-2, "start-up, s"),
    NUMBER("memory", c.memory, 0.01, 2, "fraction of memory bandwidth"),
    NUMBER("blend", c.blend, 0.5, 50, "exponent of compute and memory"),
    NUMBER("depth", c.depth, 0, 1e5, "prologue"),
    NUMBER("large", c.rate[0], 0.01, 2, "rate of large tiles, or of heads"),
    NUMBER("middle", c.rate[1], 0.001, 20, "rate of tiles of 128 x 128"),
    NUMBER("small", c.rate[2], 0.001, 100, "rate of small tiles"),
    {.name = "host",
     .type = SC_T_QUANTITY,
     .unit = SC_U_NONE,
     .offset = OFF(host),
     .max = 1e-2,
     .help = "time of launching by the host in the rows of the fit, s"},
    {.name = "least",
     .type = SC_T_QUANTITY,
     .unit = SC_U_NONE,
     .offset = OFF(least),
     .max = 1e-2,
     .help = "shortest time of such rows, s"},
    {.name = "tiles",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     .offset = OFF(tiles),
     .max = (1 << SC_FORM_TILES) - 1,
     .help = "bits of the tiles that the library uses; 0: all"},
    WHOLE("deep8", 0, "time of depths in multiples of 8 over that of others"),
    WHOLE("wide8", 1, "the same for columns"),
    {.name = "first",
     .type = SC_T_NODE,
     .offset = OFF(first),
     .help = "log2 of the first position of each axis"},
    {.name = "count",
     .type = SC_T_NODE,
     .offset = OFF(count),
     .help = "positions of each axis"},
    {.name = "log",
     .type = SC_T_STRING,
     .offset = OFF(log),
     .help = "corrections in thousandths, last axis fastest"},
    {0},
};

static sc_status three(const sc_node *list, const char *key, long lo, long hi,
                       long out[3], sc_err *err)
{
    uint32_t n = 0;
    if (list->kind == SC_N_SEQ)
        for (const sc_node *v = list->child; v && n < 3; v = v->next, n++) {
            char *end = NULL;
            out[n] =
                v->kind == SC_N_SCALAR ? strtol(v->text, &end, 10) : lo - 1;
            if (v->kind != SC_N_SCALAR || *end || out[n] < lo || out[n] > hi)
                return sc_error(err, SC_EINPUT, SC_C_RANGE, v->pos, NULL,
                                "`%s` has whole numbers from %ld to %ld", key,
                                lo, hi);
        }
    if (n == 3 && list->n == 3) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_TYPE, list->pos, NULL,
                    "`%s` is a list of three numbers", key);
}

/* Reads the next number of at most MAX_LOG either way; the tables have some
 * 50,000, which every command reads. */
static bool next_log(const char **text, int *out)
{
    const char *t = *text;
    int v = 0, digits = 0;
    while (*t == ' ' || *t == '\n') t++;
    bool minus = *t == '-';
    if (minus) t++;
    for (; *t >= '0' && *t <= '9' && v <= MAX_LOG; t++, digits++)
        v = 10 * v + (*t - '0');
    *text = t;
    *out = minus ? -v : v;
    return digits > 0 && v <= MAX_LOG;
}

static sc_status read_log(const char *text, size_t n, sc_pos pos, sc_arena *a,
                          const int16_t **out, sc_err *err)
{
    int16_t *v = SC_NEW_N(a, int16_t, n);
    if (!v) return sc_error_nomem(err);
    for (size_t i = 0; i < n; i++) {
        int x;
        if (!next_log(&text, &x))
            return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                            "`log` needs %zu whole numbers from %d to %d", n,
                            -MAX_LOG, MAX_LOG);
        v[i] = (int16_t)x;
    }
    while (*text == ' ' || *text == '\n') text++;
    if (*text != '\0')
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                        "`log` has more than %zu numbers", n);
    *out = v;
    return SC_OK;
}

static sc_status read_table(const entry *e, sc_pos pos, sc_arena *a,
                            sc_form_table *out, sc_err *err)
{
    long first[3], count[3];
    if (!e->first && !e->count && !e->log) return SC_OK;
    if (!e->first || !e->count || !e->log)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, pos, NULL,
                        "`first`, `count` and `log` belong together");
    SC_TRY(three(e->first, "first", -20, 40, first, err));
    SC_TRY(three(e->count, "count", 1, MAX_COUNT, count, err));
    size_t n = 1;
    for (int i = 0; i < 3; i++) {
        out->first[i] = (int)first[i];
        out->count[i] = (uint32_t)count[i];
        n *= (size_t)count[i];
    }
    return read_log(e->log, n, pos, a, &out->log, err);
}

typedef struct own_list {
    uint32_t n, cap;
    sc_form_own *own;
} own_list;

/* A form is for a class or for a device. */
static sc_status own_form(const entry *e, sc_form *f, sc_pos pos, sc_arena *a,
                          own_list *l, sc_err *err)
{
    const sc_device *d;
    if (sc_device_find(e->device, a, &d, NULL) != SC_OK)
        return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_NAME, pos,
                        "`stepcast list devices` has them",
                        "'%.40s' is no device of the catalogue", e->device);
    for (uint32_t i = 0; i < l->n; i++)
        if (l->own[i].kind == (sc_form_kind)e->kind &&
            strcmp(l->own[i].device->name, d->name) == 0)
            return sc_error(err, SC_EINPUT, SC_C_CONFLICT, pos, NULL,
                            "there are two forms of '%s' for '%s'",
                            sc_form_names[e->kind], d->name);
    l->own = sc_grow(a, l->own, l->n, &l->cap, 64, sizeof *l->own);
    if (!l->own) return sc_error_nomem(err);
    f->device = d;
    l->own[l->n++] = (sc_form_own){d, (sc_form_kind)e->kind, f};
    return SC_OK;
}

static sc_status class_form(const entry *e, const sc_form *f, sc_pos pos,
                            sc_forms *out, sc_err *err)
{
    if (e->fit < 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, pos, NULL,
                        "the form needs a `class` or a `device`");
    if (out->at[e->fit][e->kind])
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, pos, NULL,
                        "there are two forms of '%s' for '%s'",
                        sc_form_names[e->kind], sc_fit_class_names[e->fit]);
    out->at[e->fit][e->kind] = f;
    return SC_OK;
}

static sc_status read_form(const sc_node *item, sc_arena *a, sc_forms *out,
                           own_list *own, sc_err *err)
{
    entry e = {.fit = -1};
    SC_TRY(sc_schema_read(keys, item, &e, NULL, a, err));
    sc_form *f = SC_NEW(a, sc_form);
    if (!f) return sc_error_nomem(err);
    *f = (sc_form){.c = e.c,
                   .rows = (uint32_t)e.rows,
                   .error = e.error,
                   .host = e.host,
                   .least = e.least,
                   .tiles = (uint32_t)e.tiles,
                   .whole = {e.whole[0], e.whole[1]}};
    SC_TRY(e.device ? own_form(&e, f, item->pos, a, own, err)
                    : class_form(&e, f, item->pos, out, err));
    SC_TRY(read_table(&e, item->pos, a, &f->table, err));
    const int of[2] = {e.fit, e.kind};
    out->hash = sc_hash(of, sizeof of, out->hash);
    out->hash = sc_hash(&f->c, sizeof f->c, out->hash);
    out->hash = sc_hash(f->table.first, sizeof f->table.first, out->hash);
    out->hash = sc_hash(f->table.count, sizeof f->table.count, out->hash);
    if (e.log) out->hash = sc_hash(e.log, strlen(e.log), out->hash);
    return SC_OK;
}

sc_status sc_forms_tree(const sc_node *root, const char *file, sc_arena *a,
                        const sc_forms **out, sc_err *err)
{
    const sc_node *list =
        root->kind == SC_N_MAP ? sc_node_get(root, "kernels") : NULL;
    if (!list || list->kind != SC_N_SEQ)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_file(file),
                        "`stepcast calibrate --kernels` writes such a file",
                        "the file has no list 'kernels'");
    sc_forms *f = SC_NEW(a, sc_forms);
    if (!f) return sc_error_nomem(err);
    sc_status first = SC_OK;
    own_list own = {0};
    for (const sc_node *n = list->child; n; n = n->next) {
        sc_status s = read_form(n, a, f, &own, err);
        if (first == SC_OK) first = s;
    }
    if (first != SC_OK) return first;
    f->n_own = own.n;
    f->own = own.own;
    *out = f;
    return SC_OK;
}

sc_status sc_forms_read(const char *text, size_t len, const char *file,
                        sc_arena *a, const sc_forms **out, sc_err *err)
{
    sc_node *root = NULL;
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &root, err));
    return sc_forms_tree(root, file, a, out, err);
}
