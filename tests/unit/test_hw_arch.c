/* SPDX-License-Identifier: Apache-2.0 */
/* test_hw_arch.c - the tables of generations and of optimizers. */
#include "cost/cost_optimizer.h"
#include "hw/hw.h"
#include "hw/hw_arch.h"
#include "unit.h"

#include <string.h>

/* Every device of the catalogue has the row of its generation. */
static void catalogue(void **state)
{
    sc_arena a;
    sc_err err;
    const char **name;
    uint32_t n, devices = 0;
    (void)state;
    sc_arena_init(&a, 0);
    sc_err_init(&err);
    assert_int_equal(sc_hw_list(true, &a, &name, &n, &err), SC_OK);
    for (uint32_t i = 0; i < n; i++) {
        const sc_device *d;
        assert_int_equal(sc_device_find(name[i], &a, &d, &err), SC_OK);
        const sc_arch *row = sc_arch_of(d->arch);
        assert_non_null(row->name);
        assert_string_equal(row->name, d->arch);
        assert_true((row->sm > 0) == (strcmp(d->vendor, "nvidia") == 0));
        devices++;
    }
    assert_true(devices > 30);
    sc_arena_free(&a);
}

static void rows(void **state)
{
    (void)state;
    assert_int_equal(sc_arch_of("volta")->sm, 70);
    assert_int_equal(sc_arch_of("volta")->nccl_row, SC_NCCL_VOLTA);
    assert_true(sc_arch_of("ampere")->in_nccl_2_10);
    assert_false(sc_arch_of("hopper")->in_nccl_2_10);
    assert_int_equal(sc_arch_of("ada")->fit, SC_FIT_ADA);
    assert_int_equal(sc_arch_of("tpu-v6e")->fit, SC_FIT_TPU6);
    assert_int_equal(sc_arch_of("blackwell-rtx")->sm, 120);
    assert_int_equal(sc_arch_of("blackwell-rtx")->fit, SC_FIT_ADA);
    assert_false(sc_arch_of("blackwell")->ultra);
    assert_true(sc_arch_of("blackwell-ultra")->ultra);
    assert_true(sc_arch_of("blackwell-ultra")->mx_products);
}

static void unknown(void **state)
{
    (void)state;
    assert_null(sc_arch_of("abacus")->name);
    assert_null(sc_arch_of(NULL)->name);
    assert_int_equal(sc_arch_of("abacus")->fit, SC_FIT_AMPERE);
    assert_int_equal(sc_arch_of("abacus")->nccl_row, SC_NCCL_HOPPER);
    assert_int_equal(sc_arch_of("abacus")->sm, 0);
}

static void optimizers(void **state)
{
    (void)state;
    assert_string_equal(sc_optimizer_of(NULL)->name, "adam");
    for (size_t i = 0; sc_optimizer_names[i]; i++)
        assert_string_equal(sc_optimizer_of(sc_optimizer_names[i])->name,
                            sc_optimizer_names[i]);
    assert_int_equal(sc_optimizer_of("lamb")->moments, 2);
    assert_int_equal(sc_optimizer_of("sgd")->moments, 1);
    assert_true(sc_optimizer_of("adagrad")->row_state_bytes == 8);
    assert_true(sc_optimizer_of("sgd")->row_state_bytes == 0);
    assert_null(sc_optimizer_of("other")->name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(catalogue),
        cmocka_unit_test(rows),
        cmocka_unit_test(unknown),
        cmocka_unit_test(optimizers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
