/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - reads embedding tables from CSV, YAML or JSON. */
#include "shard/shard.h"

#include <string.h>

#define MAX_TABLES 65536.0

typedef struct row {
    const char *name, *access;
    int64_t rows, width, copies;
    double pooling;
} row;

#define OFF(f) offsetof(row, f)
const sc_key sc_shard_table_keys[] = {
    {.name = "name",
     .type = SC_T_STRING,
     .offset = OFF(name),
     .help = "of the table; default: t and its number"},
    {.name = "rows",
     .type = SC_T_INT,
     .offset = OFF(rows),
     .min = 1,
     .max = 1e12,
     .help = "number of rows",
     .required = true},
    {.name = "width",
     .type = SC_T_INT,
     .offset = OFF(width),
     .min = 1,
     .max = 65536,
     .help = "values of a row, in fp32",
     .required = true},
    {.name = "pooling",
     .type = SC_T_QUANTITY,
     .unit = SC_U_NONE,
     .offset = OFF(pooling),
     .def = "1",
     .min = 1e-6,
     .max = 1e6,
     .help = "mean number of look-ups per sample"},
    {.name = "access",
     .type = SC_T_STRING,
     .offset = OFF(access),
     .help = "distribution of look-ups: uniform, zipf S, reuse N: ..."},
    {.name = "copies",
     .type = SC_T_INT,
     .offset = OFF(copies),
     .def = "1",
     .min = 1,
     .max = MAX_TABLES,
     .help = "number of equal tables"},
    {0},
};

typedef struct reader {
    sc_arena *a;
    sc_err *err;
    sc_shard_table *table;
    uint32_t n, cap;
} reader;

static sc_status push(reader *r, const row *x, sc_pos pos, sc_pos access)
{
    sc_shard_table t = {.name = x->name,
                        .rows = (double)x->rows,
                        .width = (double)x->width,
                        .pooling = x->pooling};
    if (x->access && *x->access)
        SC_TRY(sc_access_read(x->access, access, &t.access, r->err));
    for (int64_t i = 0; i < x->copies; i++) {
        if (r->n >= (uint32_t)MAX_TABLES)
            return sc_error(r->err, SC_EINPUT, SC_C_TOO_BIG, pos, NULL,
                            "more than %.0f tables", MAX_TABLES);
        sc_shard_table *all =
            sc_grow(r->a, r->table, r->n, &r->cap, 64, sizeof *all);
        if (!all) return sc_error_nomem(r->err);
        r->table = all;
        if (!x->name || !*x->name)
            t.name = sc_sprintf(r->a, "t%u", r->n);
        else if (x->copies > 1)
            t.name = sc_sprintf(r->a, "%s.%lld", x->name, (long long)i);
        if (!t.name) return sc_error_nomem(r->err);
        all[r->n++] = t;
    }
    return SC_OK;
}

/* ---- CSV */

static const sc_key *key_of(const char *name)
{
    for (const sc_key *k = sc_shard_table_keys; k->name; k++)
        if (strcmp(k->name, name) == 0) return k;
    return NULL;
}

static sc_status check_columns(reader *r, const sc_csv *t)
{
    static const char columns[] =
        "columns are rows, width, and name, pooling, access, copies if known";
    sc_status s = SC_OK;
    for (uint32_t c = 0; c < t->n_cols; c++)
        if (!key_of(t->header[c]))
            s = sc_error(r->err, SC_EINPUT, SC_C_UNKNOWN_KEY,
                         (sc_pos){t->file, 1, 1}, columns,
                         "unknown column \"%.60s\"", t->header[c]);
    for (const sc_key *k = sc_shard_table_keys; k->name; k++)
        if (k->required && sc_csv_col(t, k->name) < 0)
            s = sc_error(r->err, SC_EINPUT, SC_C_MISSING,
                         (sc_pos){t->file, 1, 1}, columns,
                         "the table has no column %s", k->name);
    return s;
}

static sc_status read_cells(reader *r, const sc_csv *t, uint32_t i, row *x)
{
    sc_status s = SC_OK;
    for (uint32_t c = 0; c < t->n_cols; c++) {
        const sc_key *k = key_of(t->header[c]);
        const char *cell = sc_csv_get(t, i, (int)c);
        sc_pos pos = sc_csv_pos(t, i, (int)c);
        if (!*cell && !k->required) continue;
        sc_status one = sc_schema_set(k, cell, pos, x, r->a, r->err);
        if (one != SC_OK) s = SC_EINPUT;
    }
    return s;
}

static sc_status read_csv(reader *r, const char *text, size_t len,
                          const char *file)
{
    sc_csv t;
    SC_TRY(sc_csv_parse(text, len, file, r->a, &t, r->err));
    SC_TRY(check_columns(r, &t));
    sc_status s = SC_OK;
    for (uint32_t i = 0; i < t.n_rows; i++) {
        row x = {0};
        SC_TRY(sc_schema_defaults(sc_shard_table_keys, &x, r->a, r->err));
        sc_status one = read_cells(r, &t, i, &x);
        if (one == SC_OK)
            one = push(r, &x, sc_csv_pos(&t, i, -1),
                       sc_csv_pos(&t, i, sc_csv_col(&t, "access")));
        if (one == SC_ENOMEM) return one;
        if (one != SC_OK) s = one;
    }
    return s;
}

/* ---- YAML and JSON */

typedef struct document {
    const sc_node *tables;
} document;

static const sc_key document_keys[] = {
    {.name = "tables",
     .type = SC_T_NODE,
     .offset = offsetof(document, tables),
     .help = "list of tables",
     .required = true},
    {0},
};

static sc_status read_document(reader *r, const sc_node *root)
{
    document d = {0};
    SC_TRY(sc_schema_read(document_keys, root, &d, NULL, r->a, r->err));
    if (d.tables->kind != SC_N_SEQ)
        return sc_error(r->err, SC_EINPUT, SC_C_TYPE, d.tables->pos,
                        "write tables: [{rows: 1000000, width: 64}]",
                        "tables is not a list");
    sc_status s = SC_OK;
    for (const sc_node *n = d.tables->child; n; n = n->next) {
        row x = {0};
        SC_TRY(sc_schema_defaults(sc_shard_table_keys, &x, r->a, r->err));
        sc_status one =
            sc_schema_read(sc_shard_table_keys, n, &x, NULL, r->a, r->err);
        const sc_node *at = one == SC_OK ? sc_node_get(n, "access") : NULL;
        if (one == SC_OK) one = push(r, &x, n->pos, at ? at->pos : n->pos);
        if (one == SC_ENOMEM) return one;
        if (one != SC_OK) s = one;
    }
    return s;
}

sc_status sc_shard_read(const char *text, size_t len, const char *file,
                        bool csv, sc_arena *a, sc_shard_tables *out,
                        sc_err *err)
{
    reader r = {.a = a, .err = err};
    sc_node *root;
    if (csv) {
        SC_TRY(read_csv(&r, text, len, file));
    } else {
        SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &root, err));
        SC_TRY(read_document(&r, root));
    }
    if (r.n == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, (sc_pos){file, 1, 1},
                        NULL, "there are no tables");
    *out = (sc_shard_tables){r.n, r.table};
    return SC_OK;
}
