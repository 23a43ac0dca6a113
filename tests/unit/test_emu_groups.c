/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of an emulated world: identity, place, siblings, what they cost. */
#include "emu/rendezvous.h"
#include "emu_world.h"

static void error_is(sc_code code, const char *msg)
{
    assert_int_equal(err.n, 1);
    assert_int_equal(err.d[0].code, code);
    assert_string_equal(err.d[0].msg, msg);
    sc_err_init(&err);
}

static void by_content(void **state)
{
    (void)state;
    uint32_t world[16], some[3] = {3, 9, 4}, sorted[3] = {3, 4, 9}, g = 99;
    sc_emu *e =
        world_of(&(asked){.cluster = "dgx-h100:2", .world = 16, .ranks = "4"});
    for (uint32_t i = 0; i < 16; i++) world[i] = i;
    assert_int_equal(sc_emu_group(e, NULL, 0, 0, &g, &err), SC_OK);
    assert_int_equal(g, 0);
    assert_int_equal(group_of(e, world, 16), 0);
    assert_int_equal(group_of(e, some, 3), 1);
    assert_int_equal(group_of(e, sorted, 3), 2);
    assert_int_equal(group_of(e, world, 8), 3);
    assert_int_equal(group_of(e, some, 3), 1);
    for (uint32_t twin = 0; twin < 2; twin++) {
        assert_int_equal(sc_emu_group(e, some, 3, 7, &g, &err), SC_OK);
        assert_int_equal(g, 4);
        assert_int_equal(sc_emu_group(e, NULL, 0, 7, &g, &err), SC_OK);
        assert_int_equal(g, 5);
    }
    assert_int_equal(e->groups.v[1]->n, 3);
    assert_int_equal(emu_group_rank_at(e->groups.v[1], 1), 9);
    assert_int_equal(emu_group_rank_at(e->groups.v[3], 5), 5);
    assert_int_equal(sc_emu_group_real(e, 1), 1);
    assert_int_equal(sc_emu_group_real(e, group_of(e, some, 2)), 0);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(emu_group_member(e->groups.v[1], some[i]), i);
    assert_int_equal(emu_group_member(e->groups.v[1], 5), EMU_NONE);
    assert_int_equal(emu_group_member(e->groups.v[3], 8), EMU_NONE);
}

static void wrong(void **state)
{
    (void)state;
    uint32_t g, twice[3] = {2, 1, 2}, far[2] = {0, 8}, all[9] = {0};
    sc_emu *e = world_of(&(asked){0});
    assert_int_equal(sc_emu_group(e, twice, 3, 0, &g, &err), SC_EINPUT);
    error_is(SC_C_DUPLICATE, "rank 2 is twice in a group of 3");
    assert_int_equal(sc_emu_group(e, far, 2, 0, &g, &err), SC_EINPUT);
    error_is(SC_C_RANGE, "a group has rank 8; ranks are 0 to 7");
    assert_int_equal(sc_emu_group(e, all, 0, 0, &g, &err), SC_EINPUT);
    error_is(SC_C_RANGE, "a group of 0 ranks in a world of 8");
    assert_int_equal(sc_emu_group(e, all, 9, 0, &g, &err), SC_EINPUT);
    error_is(SC_C_RANGE, "a group of 9 ranks in a world of 8");
}

/* ---- places ------------------------------------------------------------------ */

static emu_group *made(sc_emu *e, const uint32_t *rank, uint32_t n)
{
    uint32_t i = group_of(e, rank, n);
    return e->groups.v[i];
}

typedef struct placed {
    uint32_t n, first, size[2], stride[2];
    uint32_t m, nodes, peers, siblings;
} placed;

static void fill(const placed *x, uint32_t *rank)
{
    for (uint32_t i = 0; i < x->n; i++)
        rank[i] = x->first + i % x->size[0] * x->stride[0] +
                  i / x->size[0] * x->stride[1];
}

static void places_are(const asked *q, const placed *x, size_t n)
{
    uint32_t rank[128];
    sc_emu *e = world_of(q);
    for (size_t i = 0; i < n; i++) {
        fill(&x[i], rank);
        const emu_group *g = made(e, rank, x[i].n);
        if (g->place.n != x[i].n || g->place.m != x[i].m ||
            g->place.nodes != x[i].nodes || g->place.peers != x[i].peers ||
            g->n_siblings != x[i].siblings)
            fail_msg("case %zu: n %u m %u nodes %u peers %u siblings %u", i,
                     g->place.n, g->place.m, g->place.nodes, g->place.peers,
                     g->n_siblings);
        uint64_t product = 1;
        for (uint32_t d = 0; d < SC_HW_DIMS; d++) product *= g->place.dim_n[d];
        assert_true(product == g->place.n);
    }
}

static void axes_of_a_mesh(void **state)
{
    (void)state;
    static const placed x[] = {
        {8, 0, {8}, {1}, 8, 1, 1, 16},         /* a node */
        {8, 64, {8}, {1}, 8, 1, 1, 16},        /* another */
        {16, 3, {16}, {8}, 1, 16, 8, 8},       /* one of each node */
        {128, 0, {128}, {1}, 8, 16, 1, 1},     /* all */
        {2, 4, {2}, {1}, 2, 1, 4, 64},         /* half of a half */
        {32, 2, {2, 16}, {1, 8}, 2, 16, 4, 4}, /* two of each node */
        {32, 1, {32}, {4}, 2, 16, 4, 4},       /* the same, apart */
        {4, 0, {4}, {32}, 1, 4, 8, 32},        /* of every fourth node */
        {16, 16, {16}, {1}, 8, 2, 1, 8},       /* two nodes */
    };
    places_are(&(asked){.cluster = "dgx-h100:16", .world = 128}, x,
               SC_COUNT(x));
}

static void nobody_else(void **state)
{
    (void)state;
    static const placed x[] = {
        {8, 0, {8}, {1}, 8, 1, 1, 1},
        {16, 3, {16}, {8}, 1, 16, 1, 1},
        {2, 4, {2}, {1}, 2, 1, 1, 1},
    };
    places_are(
        &(asked){.cluster = "dgx-h100:16", .world = 128, .no_siblings = true},
        x, SC_COUNT(x));
}

/* Not as a mesh has it: counted from the ranks. */
static void irregular(void **state)
{
    (void)state;
    static const placed x[] = {
        {4, 6, {4}, {1}, 2, 2, 1, 1},       /* across two nodes */
        {6, 0, {3, 2}, {1, 8}, 3, 2, 1, 1}, /* 3 does not divide 8 */
        {5, 0, {5}, {1}, 5, 1, 1, 1},       /* nor 5 the world */
        {4, 0, {4}, {9}, 1, 4, 1, 1},       {6, 5, {6}, {1}, 3, 2, 1, 1},
    };
    uint32_t mixed[5] = {9, 0, 2, 1, 8}, back[2] = {1, 0};
    asked q = {.cluster = "dgx-h100:16", .world = 128};
    places_are(&q, x, SC_COUNT(x));
    sc_emu *e = world_of(&q);
    sc_place p = made(e, mixed, 5)->place;
    assert_true(p.n == 5 && p.m == 1 && p.nodes == 5 && p.peers == 1);
    p = made(e, back, 2)->place;
    assert_true(p.n == 2 && p.m == 2 && p.nodes == 1 && p.peers == 1);
}

/* The world may be less than the cluster. */
static void small_world(void **state)
{
    (void)state;
    static const placed half[] = {{4, 0, {4}, {1}, 4, 1, 1, 1},
                                  {2, 2, {2}, {1}, 2, 1, 2, 2},
                                  {2, 1, {2}, {2}, 2, 1, 2, 2},
                                  {1, 3, {1}, {1}, 1, 1, 1, 1}};
    static const placed odd[] = {{12, 0, {12}, {1}, 4, 3, 1, 1},
                                 {4, 8, {4}, {1}, 4, 1, 2, 3}};
    places_are(&(asked){.cluster = "dgx-h100:1", .world = 4}, half,
               SC_COUNT(half));
    places_are(&(asked){.cluster = "dgx-h100:2", .world = 12}, odd,
               SC_COUNT(odd));
    static const placed flat[] = {{8, 0, {8}, {1}, 1, 8, 1, 1},
                                  {4, 1, {4}, {2}, 1, 4, 1, 2}};
    places_are(&(asked){.cluster = "switch1@100GB/s,1us x switch8@1GB/s,5us"},
               flat, SC_COUNT(flat));
}

/* ---- siblings ---------------------------------------------------------------- */

static emu_group *with_siblings(uint32_t nodes, const placed *x)
{
    char spec[32];
    uint32_t *rank = SC_NEW_N(&arena, uint32_t, x->n);
    snprintf(spec, sizeof spec, "dgx-h100:%u", nodes);
    asked q = {.cluster = spec, .world = 8 * nodes};
    sc_emu *e = world_of(&q);
    fill(x, rank);
    emu_group *g = made(e, rank, x->n);
    sc_emu_config c = e->c;
    c.delay = SC_EMU_DELAY_FLOW;
    if (emu_group_siblings(g, &c, &arena, &err) != SC_OK) no_error();
    return g;
}

static void translates(void **state)
{
    (void)state;
    static const placed x[] = {{16, 3, {16}, {8}, 0, 0, 0, 8},
                               {8, 64, {8}, {1}, 0, 0, 0, 16},
                               {32, 2, {2, 16}, {1, 8}, 0, 0, 0, 4}};
    for (size_t i = 0; i < SC_COUNT(x); i++) {
        uint32_t own[128], seen[128] = {0};
        const emu_group *g = with_siblings(16, &x[i]);
        fill(&x[i], own);
        assert_int_equal(g->n_siblings, x[i].siblings);
        assert_memory_equal(g->siblings, own, g->n * sizeof *own);
        for (uint32_t k = 0; k < 128; k++) {
            uint32_t first = g->siblings[k / g->n * g->n];
            uint32_t rank = g->siblings[k];
            assert_int_equal(rank - first, own[k % g->n] - own[0]);
            assert_int_equal(seen[rank]++, 0);
        }
    }
}

/* Those on the same nodes all count, of others the nearest. */
static void thinned(void **state)
{
    (void)state;
    static const placed dp = {8192, 3, {8192}, {8}, 0, 0, 0, 0};
    static const placed tp = {8, 4096, {8}, {1}, 0, 0, 0, 0};
    const emu_group *g = with_siblings(8192, &dp);
    assert_int_equal(g->n_siblings, 8);
    g = with_siblings(8192, &tp);
    assert_int_equal(g->n_siblings, 2049);
    assert_int_equal(g->siblings[0], 4096);
    assert_int_equal(g->siblings[8], 0);
    assert_int_equal(g->siblings[(size_t)2048 * 8], 4096 + 8 * 1536);
}

static void only_where_used(void **state)
{
    (void)state;
    uint32_t rank[16];
    placed x = {16, 0, {16}, {8}, 0, 0, 0, 0};
    sc_emu *e = world_of(&(asked){.cluster = "dgx-h100:16", .world = 128});
    fill(&x, rank);
    uint32_t i = group_of(e, rank, 16);
    end_of(e, all_reduce(e, i, 0, 8, 0));
    assert_null(e->groups.v[i]->siblings);
}

/* A world of 4096 with the groups of a usual mesh, all of them, and several
 * real ranks. */
static void memory(void **state)
{
    (void)state;
    uint32_t rank[4096];
    static const placed axis[] = {{8, 0, {8}, {1}, 0, 0, 0, 0},
                                  {16, 0, {16}, {8}, 0, 0, 0, 0},
                                  {32, 0, {32}, {128}, 0, 0, 0, 0},
                                  {256, 0, {8, 32}, {1, 128}, 0, 0, 0, 0}};
    asked q = {.cluster = "dgx-h100:512",
               .world = 4096,
               .ranks = "0,8,128,4095",
               .whatif = {"straggler=77:1.1", "jitter=0.1"}};
    sc_emu *e = world_of(&q);
    for (size_t a = 0; a < SC_COUNT(axis); a++)
        for (uint32_t first = 0; first < 4096; first++) {
            placed x = axis[a];
            bool whole = true;
            x.first = first;
            for (int d = 0; d < 2 && x.size[d]; d++)
                whole = whole && first / x.stride[d] % x.size[d] == 0;
            if (!whole) continue;
            fill(&x, rank);
            group_of(e, rank, x.n);
        }
    assert_int_equal(e->groups.n, 1 + 512 + 256 + 128 + 16);
    assert_true(arena.used < (size_t)8 << 20);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(by_content),      T(wrong),       T(axes_of_a_mesh), T(nobody_else),
        T(irregular),       T(small_world), T(translates),     T(thinned),
        T(only_where_used), T(memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
