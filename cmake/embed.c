/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embed.c - runs while stepcast is built: reads every file of data/ as the
 * library would and writes the trees as tables of C, sorted by path.
 *
 *   stepcast_embed ROOT OUT PATH...    (PATH relative to ROOT)
 */
#include "base/embedded.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One file: its nodes in the order they are written, and their texts, each
 * once.  Offset 0 of the texts means none, offset 1 is the empty text. */
typedef struct table {
    struct sc_embedded_row *row;
    char *pool;
    uint32_t n, cap, pool_n, pool_cap;
    sc_arena a;
    sc_err err;
} table;

static void stop(table *t, const char *what)
{
    char buf[1024] = "";
    if (t->err.n > 0) sc_diag_format(&t->err.d[0], buf, sizeof buf);
    fprintf(stderr, "embed: %s: %s\n", what, buf);
    exit(EXIT_FAILURE);
}

static uint32_t pooled(table *t, const char *text)
{
    uint32_t len, at = 1;
    if (text == NULL) return 0;
    for (; at < t->pool_n; at += (uint32_t)strlen(t->pool + at) + 1)
        if (strcmp(t->pool + at, text) == 0) return at;
    len = (uint32_t)strlen(text) + 1;
    while (t->pool_n + len > t->pool_cap) {
        t->pool = sc_grow(&t->a, t->pool, t->pool_cap, &t->pool_cap, 4096, 1);
        if (t->pool == NULL) stop(t, "out of memory");
    }
    memcpy(t->pool + t->pool_n, text, len);
    t->pool_n += len;
    return at;
}

static uint16_t small(table *t, uint32_t v)
{
    if (v > UINT16_MAX) stop(t, "a line or column over 65535");
    return (uint16_t)v;
}

static void add(table *t, const sc_node *n)
{
    uint32_t at = t->n++;
    t->row = sc_grow(&t->a, t->row, at, &t->cap, 256, sizeof *t->row);
    if (t->row == NULL) stop(t, "out of memory");
    t->row[at] = (struct sc_embedded_row){.key = pooled(t, n->key),
                                          .text = pooled(t, n->text),
                                          .n = n->n,
                                          .line = small(t, n->pos.line),
                                          .col = small(t, n->pos.col),
                                          .key_line = small(t, n->key_pos.line),
                                          .key_col = small(t, n->key_pos.col),
                                          .kind = (uint8_t)n->kind,
                                          .quoted = n->quoted};
    for (const sc_node *c = n->child; c != NULL; c = c->next) add(t, c);
    if (n->next != NULL) t->row[at].next = t->n - at;
}

static void write_text(FILE *out, const char *s)
{
    fputs("    \"", out);
    for (; *s != '\0'; s++) {
        bool plain = *s >= ' ' && *s <= '~' && strchr("\\\"?", *s) == NULL;
        if (plain)
            fputc(*s, out);
        else
            fprintf(out, "\\%03o", (unsigned)(unsigned char)*s);
    }
    fputs("\\0\"\n", out);
}

static void write_table(FILE *out, const table *t, int i)
{
    fprintf(out, "static const char t%d[] =\n    \"\\0\"\n", i);
    for (uint32_t at = 1; at < t->pool_n;
         at += (uint32_t)strlen(t->pool + at) + 1)
        write_text(out, t->pool + at);
    fprintf(out, "    ;\nstatic const struct sc_embedded_row r%d[] = {\n", i);
    for (uint32_t k = 0; k < t->n; k++) {
        const struct sc_embedded_row *r = &t->row[k];
        fprintf(out, "    {%u, %u, %u, %u, %u, %u, %u, %u, %u, %s},\n", r->key,
                r->text, r->n, r->next, r->line, r->col, r->key_line,
                r->key_col, r->kind, r->quoted ? "true" : "false");
    }
    fputs("};\n", out);
}

static void embed(FILE *out, const char *root, const char *name, int i)
{
    table t = {.pool_n = 2};
    char path[4096], *text;
    size_t len;
    sc_node *tree;
    sc_arena_init(&t.a, 0);
    sc_err_init(&t.err);
    t.pool = SC_NEW_N(&t.a, char, t.pool_cap = 4096);
    snprintf(path, sizeof path, "%s/%s", root, name);
    if (t.pool == NULL ||
        sc_file_read(path, SC_DOC_MAX_BYTES, &t.a, &text, &len, &t.err) ||
        sc_doc_parse(text, len, SC_FMT_YAML, name, &t.a, &tree, &t.err))
        stop(&t, path);
    add(&t, tree);
    write_table(out, &t, i);
    sc_arena_free(&t.a);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv)
{
    FILE *out = argc < 3 ? NULL : fopen(argv[2], "w");
    if (out == NULL) {
        fputs("embed: write stepcast_embed ROOT OUT PATH...\n", stderr);
        return EXIT_FAILURE;
    }
    char **name = argv + 3;
    int n = argc - 3;
    qsort(name, (size_t)n, sizeof *name, by_text);
    fputs("/* SPDX-License-Identifier: Apache-2.0 */\n"
          "/* Written by cmake/embed.c. */\n"
          "#include \"base/embedded.h\"\n",
          out);
    for (int i = 0; i < n; i++) embed(out, argv[1], name[i], i);
    fputs("const sc_embedded sc_embedded_table[] = {\n", out);
    for (int i = 0; i < n; i++)
        fprintf(out, "    {\"%s\", SC_COUNT(r%d), r%d, t%d},\n", name[i], i, i,
                i);
    if (n == 0)
        fputs("    {\"\", 0, 0, 0},\n", out); /* C has no empty arrays */
    fprintf(out, "};\nconst uint32_t sc_embedded_count = %d;\n", n);
    return fclose(out) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
