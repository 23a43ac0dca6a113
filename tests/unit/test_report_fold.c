/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that are wider than the terminal. */
#include "report/report_row.h"
#include "unit.h"

static void becomes(const char *text, uint32_t width, const char *folded)
{
    sc_text t;
    sc_text_init(&t);
    report_fold(text, width, &t);
    assert_false(t.failed);
    assert_string_equal(t.buf, folded);
    sc_text_free(&t);
}

static void test_short(void **state)
{
    (void)state;
    becomes("", 40, "");
    becomes("a\n\n  b c\n", 5, "a\n\n  b c\n");
    becomes("no newline", 10, "no newline");
}

static void test_fold(void **state)
{
    (void)state;
    becomes("aaa bbb ccc ddd eee\n", 12, "aaa bbb ccc\n    ddd eee\n");
    becomes("  aa bb cc dd ee ff gg\nx\n", 14,
            "  aa bb cc dd\n      ee ff gg\nx\n");
    /* blanks at the break are dropped */
    becomes("aaa       bbb\n", 8, "aaa\n    bbb\n");
}

/* The last column of a table continues below itself. */
static void test_column(void **state)
{
    (void)state;
    becomes("name   12  aa bb cc dd ee ff\n", 24,
            "name   12  aa bb cc dd\n           ee ff\n");
    becomes("a long first  aa bb\n", 16, "a long first  aa\n    bb\n");
}

/* What has no blank is not cut, and escape sequences take no columns. */
static void test_whole(void **state)
{
    (void)state;
    becomes("abcdefghijklmnop q\n", 6, "abcdefghijklmnop\nq\n");
    becomes("abcdefghijklmnop\n", 6, "abcdefghijklmnop\n");
    becomes("\033[1mabc\033[0m def\n", 8, "\033[1mabc\033[0m def\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_column),
        cmocka_unit_test(test_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
