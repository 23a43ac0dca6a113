/* SPDX-License-Identifier: Apache-2.0 */
/* data/fit is a fit of data/validation: started from it, calibrate writes it
 * again, byte by byte.
 * Skipped in sanitizer builds, where the fit takes minutes and its numbers are
 * those of the plain build. */
#include "calib/calib.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SLOW_BUILD
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOW_BUILD
#endif

static void compare(const char *root, const char *name, const sc_text *fresh,
                    sc_arena *a)
{
    sc_err err;
    char *text;
    size_t len;
    sc_err_init(&err);
    const char *path = sc_sprintf(a, "%s/data/fit/%s", root, name);
    assert_non_null(path);
    if (sc_file_read(path, (size_t)1 << 20, a, &text, &len, &err) != SC_OK)
        fail_msg("%s: %s", path, err.d[0].msg);
    if (len != fresh->len || memcmp(text, fresh->buf, len) != 0)
        fail_msg("%s is not what `stepcast calibrate --truth data/validation` "
                 "writes now:\n%s",
                 path, fresh->buf);
}

static void data_fit_is_current(void **state)
{
    (void)state;
    if (getenv("STEPCAST_SLOW")) {
        print_message("skipped: a fit takes minutes in this build\n");
        skip();
    }
    const char *root = getenv("STEPCAST_SOURCE");
    if (!root) root = ".";
    sc_arena a;
    sc_err err;
    sc_fit_files fit;
    sc_text report;
    sc_arena_init(&a, (size_t)1 << 30);
    sc_err_init(&err);
    sc_fit_files_init(&fit);
    sc_text_init(&report);
    const char *dir = sc_sprintf(&a, "%s/data/validation", root);
    const char *from = sc_sprintf(&a, "%s/data/fit", root);
    assert_true(dir && from);
    if (sc_calibrate_truth(dir, from, NULL, &a, &fit, &report, &err) != SC_OK)
        fail_msg("%s", err.d[0].msg);
    assert_non_null(strstr(report.buf, "sustained_ampere"));
    compare(root, "network.yml", &fit.network, &a);
    compare(root, "step.yml", &fit.step, &a);
    compare(root, "program.yml", &fit.program, &a);
    compare(root, "graph.yml", &fit.graph, &a);
    compare(root, "covariance.yml", &fit.covariance, &a);
    sc_fit_files_free(&fit);
    sc_text_free(&report);
    sc_arena_free(&a);
}

static void errors(void **state)
{
    (void)state;
    sc_arena a;
    sc_err err;
    sc_text t;
    sc_fit_files fit;
    sc_arena_init(&a, (size_t)64 << 20);
    sc_err_init(&err);
    sc_text_init(&t);
    sc_fit_files_init(&fit);
    assert_int_equal(
        sc_calibrate_truth("no/such/directory", NULL, NULL, &a, &fit, &t, &err),
        SC_EIO);
    assert_int_equal(err.n, 1);
    assert_int_equal(t.len, 0);
    const char *root = getenv("STEPCAST_SOURCE");
    const char *dir =
        sc_sprintf(&a, "%s/tests/fuzz/corpus/truth", root ? root : ".");
    assert_non_null(dir);
    sc_err_init(&err);
    assert_int_equal(sc_calibrate_truth(dir, NULL, NULL, &a, &fit, &t, &err),
                     SC_EINPUT);
    sc_fit_files_free(&fit);
    sc_text_free(&t);
    sc_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors),
        cmocka_unit_test(data_fit_is_current),
    };
#ifdef SLOW_BUILD
    (void)tests;
    printf("skipped: a fit takes minutes under a sanitizer\n");
    return 77;
#else
    return cmocka_run_group_tests(tests, NULL, NULL);
#endif
}
