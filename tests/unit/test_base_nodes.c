/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_nodes.c - the members of a group, sorted by node. */
#include "base/nodes.h"
#include "unit.h"

static void positions(const uint32_t *got, const uint32_t *want, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) assert_int_equal(got[i], want[i]);
}

/* Nodes of 8: rank 17 comes first, so node 2 is the first of three. */
static void nodes_are_in_order_of_appearance(void **state)
{
    (void)state;
    const uint32_t rank[] = {17, 3, 16, 9, 1, 0};
    sc_arena a;
    sc_nodes x;
    sc_arena_init(&a, 0);
    assert_true(sc_nodes_init(&x, &a, 6, 3));
    sc_nodes_sort(&x, rank, 6, 8);
    assert_int_equal(x.n, 3);
    positions(x.order, (const uint32_t[]){0, 2, 1, 4, 5, 3}, 6);
    positions(x.first, (const uint32_t[]){0, 2, 5, 6}, 4);
    assert_int_equal(x.least, 1);
    assert_int_equal(x.most, 3);
    sc_arena_free(&a);
}

/* The space serves groups of other sizes, one after another. */
static void a_second_group_starts_afresh(void **state)
{
    (void)state;
    sc_arena a;
    sc_nodes x;
    sc_arena_init(&a, 0);
    assert_true(sc_nodes_init(&x, &a, 4, 2));
    sc_nodes_sort(&x, (const uint32_t[]){2, 0, 3, 1}, 4, 2);
    positions(x.order, (const uint32_t[]){0, 2, 1, 3}, 4);
    sc_nodes_sort(&x, (const uint32_t[]){1, 0}, 2, 2);
    assert_int_equal(x.n, 1);
    positions(x.order, (const uint32_t[]){0, 1}, 2);
    positions(x.first, (const uint32_t[]){0, 2}, 2);
    assert_int_equal(x.least, 2);
    assert_int_equal(x.most, 2);
    sc_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_in_order_of_appearance),
        cmocka_unit_test(a_second_group_starts_afresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
