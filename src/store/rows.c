/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - writes and reads the log of evaluated points. */
#include "store/store.h"

#include <math.h>
#include <string.h>

static const char magic[8] = "SCROWS\n";

enum { VERSION = 1 };

/* ---- writing -------------------------------------------------------------- */

void sc_store_block_add(sc_store_block *b, uint32_t n_axes,
                        const uint32_t *digit, uint64_t step_ps, uint64_t peak,
                        double score)
{
    uint32_t same = 0;
    while (b->rows > 0 && same < n_axes && digit[same] == b->last[same]) same++;
    sc_bytes_uint(&b->bytes, same);
    for (uint32_t i = same; i < n_axes; i++) sc_bytes_uint(&b->bytes, digit[i]);
    sc_bytes_uint(&b->bytes, step_ps);
    sc_bytes_uint(&b->bytes, peak);
    if (!isnan(score)) sc_bytes_double(&b->bytes, score);
    memcpy(b->last, digit, n_axes * sizeof *digit);
    b->rows++;
}

void sc_store_block_clear(sc_store_block *b)
{
    b->bytes.len = 0;
    b->rows = 0;
}

void sc_store_block_free(sc_store_block *b)
{
    sc_bytes_free(&b->bytes);
    b->rows = 0;
}

void sc_store_write_head(const sc_store_head *h, sc_bytes *out)
{
    size_t from = out->len;
    sc_bytes_add(out, magic, sizeof magic);
    sc_bytes_uint(out, VERSION);
    sc_bytes_text(out, h->identity);
    sc_bytes_text(out, h->objective);
    sc_bytes_uint(out, h->n);
    for (uint32_t i = 0; i < h->n; i++) {
        const sc_store_axis *x = &h->axis[i];
        sc_bytes_text(out, x->name);
        sc_bytes_uint(out, x->number);
        sc_bytes_uint(out, x->n);
        for (uint32_t k = 0; k < x->n; k++) sc_bytes_text(out, x->value[k]);
    }
    sc_bytes_seal(out, from);
}

void sc_store_write_block(uint64_t rows, const uint8_t *bytes, size_t len,
                          sc_bytes *out)
{
    size_t from = out->len;
    if (rows == 0) return;
    sc_bytes_uint(out, rows);
    sc_bytes_uint(out, len);
    sc_bytes_add(out, bytes, len);
    sc_bytes_seal(out, from);
}

void sc_store_write_end(uint64_t all_rows, sc_bytes *out)
{
    size_t from = out->len;
    sc_bytes_uint(out, 0);
    sc_bytes_uint(out, all_rows);
    sc_bytes_seal(out, from);
}

/* ---- reading -------------------------------------------------------------- */

static sc_status bad(const sc_store_reader *r, size_t at, sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_SYNTAX, sc_pos_byte(r->file, at),
                    "write it again with `stepcast search --keep all`",
                    "the log of rows is damaged");
}

static void read_axis(sc_bytes_in *in, sc_arena *a, sc_store_axis *x)
{
    size_t at = in->at;
    x->name = sc_bytes_get_text(in, a);
    x->number = sc_bytes_get_most(in, 1);
    x->n = (uint32_t)sc_bytes_get_most(in, SC_STORE_VALUES);
    if (in->bad || x->n > in->n - in->at) {
        sc_bytes_reject(in, at);
        return;
    }
    x->value = SC_NEW_N(a, const char *, x->n + 1);
    if (!x->value) sc_bytes_reject(in, at);
    for (uint32_t k = 0; k < x->n && !in->bad; k++)
        x->value[k] = sc_bytes_get_text(in, a);
}

sc_status sc_store_open(const void *data, size_t len, const char *file,
                        sc_arena *a, sc_store_reader *out, sc_err *err)
{
    sc_store_reader r = {.file = file, .in = sc_bytes_from(data, len)};
    sc_bytes_in *in = &r.in;
    const uint8_t *head = sc_bytes_take(in, sizeof magic);
    if (!head || memcmp(head, magic, sizeof magic) != 0)
        return sc_error(err, SC_EINPUT, SC_C_SYNTAX, sc_pos_byte(file, 0),
                        "give a file of `stepcast search --keep all FILE`",
                        "the file is no log of rows");
    if (sc_bytes_get_uint(in) != VERSION)
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED,
                        sc_pos_byte(file, sizeof magic), NULL,
                        "the log of rows is of another version of stepcast");
    r.head.identity = sc_bytes_get_text(in, a);
    r.head.objective = sc_bytes_get_text(in, a);
    r.head.n = (uint32_t)sc_bytes_get_most(in, SC_STORE_AXES);
    r.head.axis = SC_NEW_N(a, sc_store_axis, r.head.n + 1);
    if (!r.head.axis) return sc_error_nomem(err);
    for (uint32_t i = 0; i < r.head.n && !in->bad; i++)
        read_axis(in, a, &r.head.axis[i]);
    size_t at = in->at;
    if (!sc_bytes_sealed(in, 0)) return bad(&r, in->bad ? in->bad_at : at, err);
    r.block_end = in->at;
    *out = r;
    return SC_OK;
}

/* Opens the next block; false in *is: there is none that is whole. */
static sc_status next_block(sc_store_reader *r, bool *is, sc_err *err)
{
    sc_bytes_in *in = &r->in;
    size_t from = in->at;
    *is = false;
    if (r->whole || from == in->n) return SC_OK;
    sc_bytes_in at = *in;
    uint64_t rows = sc_bytes_get_uint(&at), n = sc_bytes_get_uint(&at);
    size_t first = at.at;
    if (rows > 0) sc_bytes_take(&at, n);
    if (at.bad || at.n - at.at < 8) return SC_OK; /* cut off */
    size_t end = at.at;
    if (!sc_bytes_sealed(&at, from)) return bad(r, from, err);
    if (rows == 0) {
        r->whole = true;
        in->at = at.at;
        return n == r->rows && at.at == at.n ? SC_OK : bad(r, from, err);
    }
    in->at = first;
    r->block_at = from;
    r->block_end = end;
    r->block_rows = rows;
    *is = true;
    return SC_OK;
}

sc_status sc_store_next(sc_store_reader *r, bool *is, sc_err *err)
{
    sc_bytes_in *in = &r->in;
    bool first = r->block_rows == 0;
    *is = true;
    if (first) SC_TRY(next_block(r, is, err));
    if (!*is) return SC_OK;
    uint32_t same = (uint32_t)sc_bytes_get_most(in, first ? 0 : r->head.n);
    for (uint32_t i = same; i < r->head.n; i++) {
        uint32_t n = r->head.axis[i].n;
        r->row.digit[i] =
            (uint32_t)(n ? sc_bytes_get_most(in, n - 1) : (in->bad = true));
    }
    r->row.step_ps = sc_bytes_get_uint(in);
    r->row.peak = sc_bytes_get_uint(in);
    r->row.score = *r->head.objective ? sc_bytes_get_double(in) : NAN;
    if (in->bad || in->at > r->block_end ||
        (r->block_rows == 1 && in->at != r->block_end))
        return bad(r, r->block_at, err);
    r->rows++;
    if (--r->block_rows == 0) in->at += 8; /* the seal */
    return SC_OK;
}
