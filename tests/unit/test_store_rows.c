/* SPDX-License-Identifier: Apache-2.0 */
/* A log of rows gives back its rows, and as many as are whole if it was cut
 * off. */
#include "fixture.h"
#include "store/store.h"

#include <math.h>
#include <string.h>

enum { BLOCKS = 3, ROWS = 5 };

static const char *tp[] = {"1", "2", "4"}, *zero[] = {"0", "1,2"};
static sc_store_axis axes[] = {{"tp", true, 3, tp}, {"zero", false, 2, zero}};

static void row_of(uint32_t i, sc_store_row *row)
{
    memset(row, 0, sizeof *row);
    row->digit[0] = i % 3;
    row->digit[1] = i / 3 % 2;
    row->step_ps = (uint64_t)i * 1000003 << i;
    row->peak = UINT64_MAX - i;
    row->score = 1.0 / (i + 1);
}

/* `end` [BLOCKS + 1]: where the head and each block ends. */
static void write_log(bool scored, sc_bytes *out, size_t *end)
{
    const sc_store_head h = {"model: x\n", scored ? "cost" : "", 2, axes};
    sc_store_block b = {.rows = 0};
    sc_store_row row;
    sc_store_write_head(&h, out);
    end[0] = out->len;
    for (uint32_t i = 0; i < BLOCKS; i++) {
        sc_store_block_clear(&b);
        for (uint32_t k = 0; k < ROWS; k++) {
            row_of(i * ROWS + k, &row);
            sc_store_block_add(&b, 2, row.digit, row.step_ps, row.peak,
                               scored ? row.score : NAN);
        }
        sc_store_write_block(b.rows, b.bytes.buf, b.bytes.len, out);
        end[i + 1] = out->len;
    }
    sc_store_block_free(&b);
    sc_store_write_end(BLOCKS * ROWS, out);
    assert_false(out->failed);
}

static uint32_t count_rows(sc_store_reader *r, bool scored)
{
    uint32_t n = 0;
    sc_store_row row;
    for (bool is = true; is;) {
        assert_int_equal(sc_store_next(r, &is, &err), SC_OK);
        if (!is) break;
        row_of(n++, &row);
        assert_memory_equal(r->row.digit, row.digit, 2 * sizeof *row.digit);
        assert_true(r->row.step_ps == row.step_ps);
        assert_true(r->row.peak == row.peak);
        assert_true(scored ? r->row.score == row.score : isnan(r->row.score));
    }
    return n;
}

static void round_trip(void **state)
{
    (void)state;
    for (int scored = 0; scored < 2; scored++) {
        sc_bytes b = {0};
        sc_store_reader r;
        size_t end[BLOCKS + 1];
        write_log(scored, &b, end);
        assert_int_equal(sc_store_open(b.buf, b.len, "log", &arena, &r, &err),
                         SC_OK);
        assert_string_equal(r.head.identity, "model: x\n");
        assert_string_equal(r.head.objective, scored ? "cost" : "");
        assert_int_equal(r.head.n, 2);
        assert_string_equal(r.head.axis[0].name, "tp");
        assert_true(r.head.axis[0].number);
        assert_string_equal(r.head.axis[1].value[1], "1,2");
        assert_int_equal(count_rows(&r, scored), BLOCKS * ROWS);
        assert_true(r.whole);
        sc_bytes_free(&b);
    }
}

/* The first `n` bytes of a log. */
static sc_status open_log(const sc_bytes *b, size_t n, sc_store_reader *r)
{
    sc_err_init(&err);
    return sc_store_open(b->buf, n, "log", &arena, r, &err);
}

static void cut_off(void **state)
{
    sc_bytes b = {0};
    sc_store_reader r;
    size_t end[BLOCKS + 1];
    (void)state;
    write_log(false, &b, end);
    for (size_t n = 0; n < b.len; n++) {
        sc_status s = open_log(&b, n, &r);
        assert_int_equal(s, n < end[0] ? SC_EINPUT : SC_OK);
        if (s != SC_OK) continue;
        uint32_t whole = 0;
        while (whole < BLOCKS && end[whole + 1] <= n) whole++;
        assert_int_equal(count_rows(&r, false), whole * ROWS);
        assert_false(r.whole);
    }
    sc_bytes_free(&b);
}

static void changed(void **state)
{
    sc_bytes b = {0};
    size_t end[BLOCKS + 1];
    (void)state;
    write_log(false, &b, end);
    for (size_t n = 0; n < b.len; n++) {
        sc_store_reader r;
        bool is = true;
        b.buf[n] ^= 1;
        sc_status s = open_log(&b, b.len, &r);
        while (s == SC_OK && is) s = sc_store_next(&r, &is, &err);
        /* a length that became larger looks as if the log were cut off */
        assert_true(s == SC_EINPUT || !r.whole);
        if (s == SC_EINPUT) assert_string_equal(err.d[0].file, "log");
        b.buf[n] ^= 1;
    }
    sc_bytes_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(round_trip, setup, teardown),
        cmocka_unit_test_setup_teardown(cut_off, setup, teardown),
        cmocka_unit_test_setup_teardown(changed, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
