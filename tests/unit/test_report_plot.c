/* SPDX-License-Identifier: Apache-2.0 */
/* Points are at the places of their logarithms. */
#include "report/report_plot.h"
#include "unit.h"

#include <string.h>

static const char *line_of(const char *text, uint32_t n)
{
    while (n-- > 0) text = strchr(text, '\n') + 1;
    return text;
}

static void plotted(void **state)
{
    (void)state;
    static const double x[] = {1, 10, 100}, y[] = {1000, 100, 10};
    const report_line_plot p = {.title = "title",
                                .n = 3,
                                .x = {x, "1", "100"},
                                .left = {y, "10", "1000"},
                                .right = {x, "one", "hundred"},
                                .mark = "ab"};
    sc_text t;
    sc_text_init(&t);
    sc_report_plot(&p, &t);
    assert_false(t.failed);
    assert_true(strncmp(t.buf, "\ntitle\n", 7) == 0);
    const char *first = line_of(t.buf, 2), *last = line_of(t.buf, 11);
    assert_int_equal(first[16], 'a');
    assert_int_equal(first[16 + 47], 'b');
    assert_non_null(strstr(first, "1000 |a"));
    assert_non_null(strstr(first, "| hundred\n"));
    assert_int_equal(last[16], 'b');
    assert_int_equal(last[16 + 47], 'a');
    for (const char *s = t.buf; *s; s = strchr(s, '\n') + 1)
        assert_true(strchr(s, '\n') - s <= 80);
    sc_text_free(&t);
}

/* Both kinds at one place, and points that are all at one place. */
static void together(void **state)
{
    (void)state;
    static const double x[] = {2, 4}, y[] = {3, 3}, same[] = {5, 5};
    report_line_plot p = {.title = "t",
                          .n = 2,
                          .x = {x, "2", "4"},
                          .left = {y, "3", "3"},
                          .right = {y, "3", "3"},
                          .mark = "ab"};
    sc_text t;
    sc_text_init(&t);
    sc_report_plot(&p, &t);
    assert_int_equal(line_of(t.buf, 11)[16], '#');
    sc_text_free(&t);
    sc_text_init(&t);
    p.x.v = same;
    sc_report_plot(&p, &t);
    assert_int_equal(t.len, 0);
    sc_text_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plotted),
                                       cmocka_unit_test(together)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
