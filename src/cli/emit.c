/* SPDX-License-Identifier: Apache-2.0 */
/* emit.c - writes the result of a command to its destination. */
#include "cli/cli.h"
#include "report/report_row.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

bool cli_is_first(const cli *c)
{
    return !c->host || !c->host->ranks || c->host->ranks->rank == 0;
}

sc_status cli_emit(const cli *c, const char *text, size_t len)
{
    cli_progress_end(c);
    if (!cli_is_first(c)) return SC_OK;
    if (c->output) return sc_file_write(c->output, text, len, c->err);
    if (c->answer) {
        sc_text_add(c->answer, "%.*s", (int)len, text);
        return c->answer->failed ? sc_error_nomem(c->err) : SC_OK;
    }
    if (fwrite(text, 1, len, stdout) == len && fflush(stdout) == 0)
        return SC_OK;
    return sc_error(c->err, SC_EIO, SC_C_IO, sc_pos_file("<stdout>"), NULL,
                    "can't write the result");
}

sc_status cli_emit_json(cli *c, const sc_json *j)
{
    if (j->failed) return sc_error_nomem(c->err);
    char *text = sc_alloc(c->arena, j->len + 2, 1);
    if (!text) return sc_error_nomem(c->err);
    memcpy(text, j->buf, j->len);
    text[j->len] = '\n';
    return cli_emit(c, text, j->len + 1);
}

sc_status cli_emit_joined(cli *c, const sc_json *a, const sc_json *b)
{
    if (a->failed || b->failed) return sc_error_nomem(c->err);
    const char *end = strrchr(a->buf, '}');
    size_t n = end ? (size_t)(end - a->buf) : 0;
    while (n > 0 && a->buf[n - 1] == '\n') n--;
    char *text = sc_sprintf(c->arena, "%.*s,%s\n", (int)n, a->buf, b->buf + 1);
    return text ? cli_emit(c, text, strlen(text)) : sc_error_nomem(c->err);
}

void cli_note(const cli *c, const char *fmt, ...)
{
    if (c->quiet || !cli_is_first(c)) return;
    cli_progress_end(c);
    va_list ap;
    va_start(ap, fmt);
    if (c->notes) {
        sc_text_add_v(c->notes, fmt, ap);
    } else if (!isatty(STDERR_FILENO)) {
        vfprintf(stderr, fmt, ap);
    } else {
        sc_text text, folded;
        sc_text_init(&text);
        sc_text_init(&folded);
        sc_text_add_v(&text, fmt, ap);
        if (text.buf) report_fold(text.buf, cli_width(STDERR_FILENO), &folded);
        if (folded.buf) fputs(folded.buf, stderr);
        sc_text_free(&folded);
        sc_text_free(&text);
    }
    va_end(ap);
}

sc_status cli_emit_text(cli *c, const sc_text *t)
{
    sc_text folded;
    if (t->failed) return sc_error_nomem(c->err);
    if (!t->width || !isatty(STDOUT_FILENO)) return cli_emit(c, t->buf, t->len);
    sc_text_init(&folded);
    report_fold(t->buf, t->width, &folded);
    sc_status s = folded.failed ? sc_error_nomem(c->err)
                                : cli_emit(c, folded.buf, folded.len);
    sc_text_free(&folded);
    return s;
}

sc_status cli_write_json(cli *c, const char *path, const sc_json *j)
{
    size_t n = strlen(path);
    if (j->failed) return sc_error_nomem(c->err);
    if (n > 3 && strcmp(path + n - 3, ".gz") == 0)
        return sc_file_write_gzip(path, j->buf, j->len, c->err);
    return sc_file_write(path, j->buf, j->len, c->err);
}

sc_status cli_print(cli *c, const void *report,
                    void (*text)(const void *report, sc_text *out),
                    void (*json)(const void *report, sc_json *out))
{
    sc_text t;
    sc_json j;
    sc_status s;
    if (c->json) {
        sc_json_init(&j, true);
        json(report, &j);
        s = cli_emit_json(c, &j);
        sc_json_free(&j);
        return s;
    }
    cli_text_init(c, false, &t);
    text(report, &t);
    s = t.failed ? sc_error_nomem(c->err) : cli_emit_text(c, &t);
    sc_text_free(&t);
    return s;
}

uint64_t cli_peak_rss(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) != 0) return 0;
    return (uint64_t)u.ru_maxrss * 1024;
}

sc_status cli_lines(const cli *c, const sc_text *t, const char *const **out,
                    uint32_t *n)
{
    const char **line = SC_NEW_N(c->arena, const char *, t->len + 1);
    *n = 0;
    if (!line || t->failed) return sc_error_nomem(c->err);
    for (const char *at = t->buf; *at;) {
        size_t k = strcspn(at, "\n");
        line[*n] = sc_strndup(c->arena, at, k);
        if (!line[(*n)++]) return sc_error_nomem(c->err);
        at += k + (at[k] == '\n');
    }
    *out = line;
    return SC_OK;
}

void cli_lines_json(const char *text, sc_arena *a, sc_json *j)
{
    sc_json_begin(j, '[');
    while (*text) {
        size_t n = strcspn(text, "\n");
        sc_json_string(j, sc_strndup(a, text, n));
        text += n + (text[n] == '\n');
    }
    sc_json_end(j, ']');
}

void cli_wrap(sc_text *out, int indent, const char *text)
{
    size_t col = 0, left = (size_t)indent;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t n = strcspn(text, " ");
        if (col > 0 && col + 1 + n > 80) {
            sc_text_add(out, "\n");
            col = 0;
        }
        if (col == 0)
            sc_text_add(out, "%*s%.*s", indent, "", (int)n, text);
        else
            sc_text_add(out, " %.*s", (int)n, text);
        col += n + (col == 0 ? left : 1);
        text += n;
    }
    if (col > 0) sc_text_add(out, "\n");
}
