/* SPDX-License-Identifier: Apache-2.0 */
/* Colours of all members from those of few. */
#include "base/util.h"
#include "emu/emu_colours.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

typedef struct truth {
    sc_emu_choice (*of)(uint32_t n, uint32_t i);
    uint32_t n;
    uint32_t silent_from; /* members from here on do not tell */
} truth;

static void ask(void *x, const uint32_t *at, uint32_t n, sc_emu_choice *all)
{
    const truth *t = x;
    for (uint32_t i = 0; i < n; i++) {
        assert_false(all[at[i]].known);
        if (at[i] >= t->silent_from) continue;
        all[at[i]] = t->of(t->n, at[i]);
        all[at[i]].known = true;
    }
}

/* Asks for a world of `n`, of which `me` is real; returns how many were
 * asked. */
static uint32_t told(sc_emu_choice (*of)(uint32_t, uint32_t), uint32_t n,
                     uint32_t me)
{
    truth t = {of, n, n};
    sc_emu_colours_found found;
    sc_err err;
    sc_err_init(&err);
    sc_emu_choice *all = calloc(n, sizeof *all);
    assert_non_null(all);
    all[me] = of(n, me);
    all[me].known = true;
    assert_int_equal(sc_emu_colours(all, n, ask, &t, &found, &err), SC_OK);
    for (uint32_t i = 0; i < n; i++) {
        sc_emu_choice is = of(n, i);
        if (all[i].colour != is.colour || all[i].key != is.key)
            fail_msg("member %u of %u: %d %d instead of %d %d", i, n,
                     all[i].colour, all[i].key, is.colour, is.key);
    }
    assert_int_equal(found.n_silent, 0);
    assert_int_equal(found.n_ruled + found.n_asked + 1, n);
    free(all);
    return found.n_asked;
}

/* ---- rules that programs have --------------------------------------------- */

#define RULE(name, colour_, key_)                            \
    static sc_emu_choice name(uint32_t n, uint32_t r)        \
    {                                                        \
        (void)n;                                             \
        return (sc_emu_choice){.colour = (int32_t)(colour_), \
                               .key = (int32_t)(key_)};      \
    }

#define NONE (-32766)

static uint32_t wide(uint32_t n) /* of a grid that is nearly square */
{
    uint32_t w = 1;
    for (uint32_t k = 2; k * k <= n; k++)
        if (n % k == 0) w = k;
    return w;
}

RULE(same, 0, r)
RULE(mod_2, r % 2, r)
RULE(mod_3, r % 3, 0)
RULE(mod_8, r % 8, r / 8)
RULE(div_2, r / 2, r % 2)
RULE(div_5, r / 5, r)
RULE(div_8, r / 8, r)
RULE(own, r, 0)
RULE(reversed, 7, n - r)
RULE(few, r < 3 ? 0 : NONE, r)
RULE(most, r < n - n / 3 ? 5 : NONE, r)
RULE(leaders, r % 4 == 0 ? 0 : NONE, r)
RULE(not_root, r == 0 ? NONE : 1, r)
RULE(last, r == n - 1, r)
RULE(rows, r / wide(n), r % wide(n))
RULE(columns, r % wide(n), r / wide(n))
RULE(halves, r >= n / 2, r)
RULE(shares, r * 3 / n, r)
RULE(blocks, r / (n / 3 ? n / 3 : 1) < 2 ? r / (n / 3 ? n / 3 : 1) : 2, r)
RULE(first_of_node, r / 4 * 4, r)
/* tensor 2, data 4, pipeline the rest */
RULE(data, r % 2 + 2 * (r / 8), r / 2 % 4)
RULE(data_too, 1000 * (r / 8) + r % 2, r)
RULE(tensor, r / 2, r)
RULE(pipeline, r % 8, r / 8)
RULE(expert, r / 2 % 2, r)

static void rules(void **state)
{
    (void)state;
    static sc_emu_choice (*const all[])(uint32_t, uint32_t) = {
        same,     mod_2,    mod_3,    mod_8,  div_2,   div_5,         div_8,
        own,      reversed, few,      most,   leaders, not_root,      last,
        rows,     columns,  halves,   shares, blocks,  first_of_node, data,
        data_too, tensor,   pipeline, expert};
    static const uint32_t worlds[] = {2,  3,   4,   6,   8,    12,  15,
                                      16, 17,  24,  32,  48,   60,  64,
                                      96, 128, 256, 512, 1000, 1024};
    for (size_t i = 0; i < SC_COUNT(all); i++)
        for (size_t k = 0; k < SC_COUNT(worlds); k++) {
            uint32_t n = worlds[k];
            uint32_t most_ = n <= SC_EMU_ASK_ALL ? n - 1 : 14;
            for (uint32_t left = n; n > SC_EMU_ASK_ALL && left; left /= 2)
                most_ += 3;
            uint32_t asked = told(all[i], n, k % 2 ? 0 : n / 3);
            if (asked > most_)
                fail_msg("rule %zu, world of %u: %u members were asked", i, n,
                         asked);
        }
}

/* ---- and those that have none ---------------------------------------------- */

RULE(random_few, sc_hash(&r, sizeof r, 1) % 2, r)
RULE(random_many, sc_hash(&r, sizeof r, 2) % 1000,
     sc_hash(&r, sizeof r, 3) % 99)
RULE(random_keys, r / 8, sc_hash(&r, sizeof r, 4) % 1000)
RULE(squares, r *r % 7, r)
/* one or two that differ, where programs have them */
RULE(spares, r + 2 >= n ? NONE : (int32_t)(r % 8), r)
RULE(middle, r == n / 2 ? 9 : r % 4, r)
RULE(powers, (r & (r - 1)) == 0, r)
/* anywhere */
RULE(seventh, r == 7 ? 9 : r / 4, r)

static void no_rules(void **state)
{
    (void)state;
    static sc_emu_choice (*const all[])(uint32_t, uint32_t) = {
        random_few, random_many, random_keys, squares, spares, middle, powers};
    for (size_t i = 0; i < SC_COUNT(all); i++)
        for (uint32_t n = 2; n <= 1024; n += n < 40 ? 1 : n / 3)
            told(all[i], n, n / 3);
    for (uint32_t n = 2; n <= SC_EMU_ASK_ALL; n++) told(seventh, n, n / 3);
}

static void silent(void **state)
{
    (void)state;
    truth t = {div_8, 96, 90};
    sc_emu_choice all[96] = {[8] = {1, 8, true}};
    sc_emu_colours_found found;
    sc_err err;
    sc_err_init(&err);
    assert_int_equal(sc_emu_colours(all, 96, ask, &t, &found, &err), SC_OK);
    assert_true(found.n_silent > 0);
    for (uint32_t i = 0; i < 96; i++) assert_int_equal(all[i].colour, i / 8);
    t.of = random_many;
    memset(all, 0, sizeof all);
    all[8] = random_many(96, 8);
    all[8].known = true;
    assert_int_equal(sc_emu_colours(all, 96, ask, &t, &found, &err), SC_EINPUT);
    assert_string_equal(err.d[0].msg,
                        "6 of 96 members could not be asked which colours they "
                        "give, and those of the others follow no rule");
}

/* Nobody tells: of several rules, one with parts of equal size. */
static void only_known(void **state)
{
    (void)state;
    truth t = {div_8, 32, 0};
    sc_emu_choice all[32] = {[0] = {0, 0, true}, [16] = {2, 16, true}};
    sc_emu_colours_found found;
    sc_err err;
    sc_err_init(&err);
    assert_int_equal(sc_emu_colours(all, 32, ask, &t, &found, &err), SC_OK);
    assert_int_equal(found.n_silent, 30);
    for (uint32_t i = 0; i < 32; i++) {
        assert_int_equal(all[i].colour, i / 8);
        assert_int_equal(all[i].key, i);
    }
}

static void parts(void **state)
{
    (void)state;
    const sc_emu_choice all[] = {
        {1, 5, true}, {0, 0, true}, {1, 2, true}, {1, 5, true}, {1, -1, true}};
    uint32_t member[5], n;
    sc_err err;
    sc_err_init(&err);
    assert_int_equal(sc_emu_part(all, 5, 3, member, &n, &err), SC_OK);
    assert_int_equal(n, 4);
    const uint32_t want[] = {4, 2, 0, 3};
    for (uint32_t i = 0; i < n; i++) assert_int_equal(member[i], want[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules), cmocka_unit_test(no_rules),
        cmocka_unit_test(silent), cmocka_unit_test(only_known),
        cmocka_unit_test(parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
