/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks a communicator joins. */
#include "nccl/member.h"
#include "unit.h"

#define WORLD 64

/* Axes of 8 nodes of 8: every group of the mesh is among the choices. */
static void meshes(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < WORLD; r++)
        for (uint32_t n = 1; n <= WORLD; n *= 2)
            for (uint32_t s = 1; s * n <= WORLD; s *= 2) {
                uint32_t all[MEMBER_CHOICES];
                uint32_t p = r / s % n;
                uint32_t k = member_strides(WORLD, r, n, p, all), hit = 0;
                for (uint32_t i = 0; i < k; i++) {
                    hit += all[i] == s;
                    assert_int_equal(r / all[i] % n, p);
                }
                assert_int_equal(hit, 1);
            }
}

static member_run choose(uint32_t r, uint32_t n, uint32_t p,
                         const member_run *known, uint32_t n_known,
                         const char *wish, uint32_t nth, bool *sure)
{
    member_facts f = {.world = WORLD,
                      .rank = r,
                      .n = n,
                      .place = p,
                      .known = known,
                      .n_known = n_known,
                      .wish = wish,
                      .nth = nth};
    return member_choose(&f, sure);
}

static void choices(void **state)
{
    (void)state;
    bool sure;
    member_run m = choose(11, 8, 3, NULL, 0, NULL, 0, &sure);
    assert_true(m.first == 8 && m.stride == 1 && sure);
    m = choose(11, 8, 1, NULL, 0, NULL, 0, &sure);
    assert_true(m.first == 3 && m.stride == 8 && sure);
    /* Rank 0 can be first of anything: what crosses the tensor group. */
    const member_run tp = {0, 1, 8};
    m = choose(0, 8, 0, NULL, 0, NULL, 0, &sure);
    assert_true(m.stride == 1 && !sure);
    m = choose(0, 8, 0, &tp, 1, NULL, 0, &sure);
    assert_true(m.stride == 8 && !sure);
    m = choose(0, 4, 0, &tp, 1, NULL, 0, &sure);
    assert_true(m.stride == 8 && !sure);
    /* The user knows. */
    m = choose(0, 4, 0, &tp, 1, "8:1,4:16,4:2", 0, &sure);
    assert_true(m.stride == 16 && sure);
    m = choose(0, 4, 0, &tp, 1, "8:1,4:16,4:2", 7, &sure);
    assert_true(m.stride == 2 && sure);
    m = choose(0, 4, 0, &tp, 1, "nonsense", 0, &sure);
    assert_true(m.stride == 8 && !sure);
    /* Three of 64 are no mesh. */
    m = choose(5, 3, 1, NULL, 0, NULL, 0, &sure);
    assert_true(m.first == 4 && m.stride == 1);
    m = choose(0, 3, 2, NULL, 0, NULL, 0, &sure);
    assert_int_equal(m.stride, 0);
}

/* Ranks 0 and 4 of 8 are real, and meet at places 0 and 1 of 2: or they don't. */
static void real_ranks(void **state)
{
    (void)state;
    const uint32_t real[] = {0, 4};
    const member_at other = {1, 4};
    bool sure;
    member_facts f = {.world = 8, .n = 2, .real = real, .n_real = 2};
    member_choose(&f, &sure);
    assert_false(sure);
    f.at = &other;
    f.n_at = 1;
    member_run m = member_choose(&f, &sure);
    assert_true(sure && m.first == 0 && m.stride == 4);
    f.n_at = 0;
    f.all_came = true;
    m = member_choose(&f, &sure);
    assert_true(!sure && m.stride == 1); /* 1 and 2 are left */
}

static void colors(void **state)
{
    (void)state;
    /* hash((0, 2, 4, 6)), hash((0, 1)) of Python, modulo 2^31 */
    const member_run even = {0, 2, 4}, two = {0, 1, 2};
    assert_true(member_has_color(&even, NULL, 2031181855));
    assert_true(member_has_color(&two, NULL, 2130503744));
    assert_false(member_has_color(&two, NULL, 2031181855));
    member_run m;
    assert_true(member_of_color(8, 4, NULL, 2031181855, &m));
    assert_true(m.first == 0 && m.stride == 2 && m.n == 4);
    assert_false(member_of_color(8, 5, NULL, 2031181855, &m));
    /* By hand: (0 ^ (1 + c)) = c + 1, then h ^ (3 + c + (h << 6) + (h >> 2)). */
    uint64_t c = 0x9e3779b9, h = c + 1;
    h ^= 3 + c + (h << 6) + (h >> 2);
    assert_true(member_of_color(8, 3, NULL, (int)(h % 0x7fffffff), &m));
    assert_true(m.first == 1 && m.stride == 2 && m.n == 2);
}

static void splits(void **state)
{
    (void)state;
    member_run m;
    bool sure;
    assert_true(member_of_split(8, 5, 1, &m, &sure));
    assert_true(m.first <= 5 && 5 < m.first + m.n * m.stride);
    assert_true(member_of_split(8, 6, 3, &m, &sure));
    assert_true(sure && m.first == 6 && m.stride == 1 && m.n == 2);
    assert_false(member_of_split(8, 6, 7, &m, &sure));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meshes),     cmocka_unit_test(choices),
        cmocka_unit_test(real_ranks), cmocka_unit_test(colors),
        cmocka_unit_test(splits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
