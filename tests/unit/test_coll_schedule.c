/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules of collectives.  The proof is in the data: what each member holds is
 * passed along every message of a schedule, and at its end every member has what
 * the collective promises.  Numbers of messages and bytes are derived by hand.
 */
#include "coll/coll_schedule.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#define MEMBERS 16
#define BYTES   431 /* a prime: parts are not equal */

/* Whose data are in a byte: one bit for each member. */
typedef uint32_t data[MEMBERS][BYTES];

static struct fixture {
    data have, at_switch;
    const char *name;
    uint64_t sent[MEMBERS]; /* bytes of a member */
    uint32_t messages[MEMBERS];
    uint32_t arrived[MEMBERS]; /* at the switch of a line */
} f;

static void wrong(const sc_coll_schedule *s, const char *what, uint32_t member)
{
    fail_msg("%s, %s of %u: %s (member %u)", f.name, sc_coll_names[s->coll],
             s->n, what, member);
}

/* ---- one message ------------------------------------------------------------- */

typedef struct range {
    uint64_t from, to;
} range;

static range slice_of(const sc_coll_schedule *s, const sc_coll_phase *p,
                      uint32_t member)
{
    uint64_t k = member % p->slices;
    uint64_t from = sc_coll_part_begin(s->bytes, k, p->slices);
    uint64_t len = sc_coll_part(s->bytes, k, p->slices);
    if (p->tree > 0) {
        from += sc_coll_part_begin(len, p->tree - 1, 2);
        len = sc_coll_part(len, p->tree - 1, 2);
    }
    return (range){from, from + len};
}

static range block_of(const sc_coll_phase *p, range slice, uint32_t block)
{
    uint64_t len = slice.to - slice.from;
    uint64_t from = slice.from + sc_coll_part_begin(len, block, p->part);
    return (range){from, from + sc_coll_part(len, block, p->part)};
}

static void move(const sc_coll_schedule *s, uint32_t *to, const uint32_t *from,
                 range r, bool adds, uint32_t member)
{
    for (uint64_t b = r.from; b < r.to; b++) {
        if (adds && (to[b] & from[b])) wrong(s, "adds data twice", member);
        to[b] = adds ? to[b] | from[b] : from[b];
    }
}

/* To a switch: it adds what comes, and hands on when it has all. */
static void to_switch(const sc_coll_schedule *s, const sc_coll_phase *p,
                      uint32_t member)
{
    uint32_t first = member - sc_coll_place(p, member) * p->stride;
    range all = slice_of(s, p, member);
    uint32_t *sum = f.at_switch[first];
    sc_coll_blocks b = sc_coll_carries(s, p, member, 0);
    if (f.arrived[first]++ == 0) memset(sum, 0, BYTES * sizeof *sum);
    for (uint32_t j = 0; j < b.count; j++)
        move(s, sum, f.have[member], block_of(p, all, b.first + j), true,
             member);
    if (f.arrived[first] < p->n) return;
    for (uint32_t i = 0; i < p->n; i++) {
        range r = all;
        if (p->coll == SC_REDUCE_SCATTER) r = block_of(p, all, i);
        move(s, f.have[first + i * p->stride], sum, r, false, member);
    }
}

static void to_member(const sc_coll_schedule *s, const sc_coll_phase *p,
                      uint32_t member, uint32_t k, const uint32_t *from)
{
    uint32_t to = sc_coll_to(s, p, member, k);
    sc_coll_blocks b = sc_coll_carries(s, p, member, k);
    uint64_t bytes = 0;
    if (to >= s->n || to == member) wrong(s, "sends to nobody", member);
    for (uint32_t j = 0; j < b.count; j++) {
        uint32_t block = (b.first + j * b.step) % p->part;
        range r = block_of(p, slice_of(s, p, member), block);
        bytes += r.to - r.from;
        if (p->coll == SC_BARRIER)
            for (uint64_t i = r.from; i < r.to; i++) f.have[to][i] |= from[i];
        else
            move(s, f.have[to], from, r, sc_coll_adds(p, k), member);
    }
    if (bytes != sc_coll_bytes(s, p, 0, member, k))
        wrong(s, "does not carry its bytes", member);
}

/* ---- a phase ------------------------------------------------------------------- */

/* Members send in rounds what they may, as they had it before the round. */
static void run_phase(const sc_coll_schedule *s, const sc_coll_phase *p)
{
    uint32_t sent[MEMBERS] = {0}, got[MEMBERS] = {0};
    uint32_t heard[MEMBERS][MEMBERS] = {0}; /* by receiver and sender */
    static data before;
    memset(f.arrived, 0, sizeof f.arrived);
    for (bool more = true; more;) {
        uint32_t now[MEMBERS];
        more = false;
        memcpy(now, got, sizeof now);
        memcpy(before, f.have, sizeof before);
        for (uint32_t i = 0; i < s->n; i++) {
            uint32_t k = sent[i];
            if (k == sc_coll_sends(s, p, i) ||
                now[i] < sc_coll_needs(s, p, i, k))
                continue;
            more = true;
            sent[i]++;
            f.messages[i]++;
            f.sent[i] += sc_coll_bytes(s, p, 0, i, k);
            if (p->pattern == SC_COLL_SWITCH) {
                to_switch(s, p, i);
                got[i]++;
                continue;
            }
            uint32_t to = sc_coll_to(s, p, i, k);
            got[to]++;
            heard[to][i]++;
            to_member(s, p, i, k, before[i]);
        }
    }
    for (uint32_t i = 0; i < s->n; i++) {
        if (sent[i] != sc_coll_sends(s, p, i)) wrong(s, "waits for ever", i);
        if (got[i] != sc_coll_expects(s, p, i)) wrong(s, "lacks messages", i);
        for (uint32_t k = 0; k < got[i] && p->pattern != SC_COLL_SWITCH; k++) {
            uint32_t from = sc_coll_from(s, p, i, k);
            if (from >= s->n || heard[i][from]-- == 0)
                wrong(s, "hears another sender", i);
        }
    }
}

/* ---- what a collective promises ------------------------------------------------- */

/* Block i of all n of the whole, as members own them. */
static range own(const sc_coll_schedule *s, uint32_t i)
{
    uint64_t from = 0, len = s->bytes;
    const sc_coll_phase *p = &s->phase[0];
    if (s->n_phases == 2 &&
        p->n < s->n) { /* first inside, then between nodes */
        uint32_t m = s->phase[0].stride == 1 ? s->phase[0].n : s->phase[1].n;
        from = sc_coll_part_begin(len, i % m, m);
        len = sc_coll_part(len, i % m, m);
        uint32_t nodes = s->n / m;
        return (range){from + sc_coll_part_begin(len, i / m, nodes),
                       from + sc_coll_part_begin(len, i / m, nodes) +
                           sc_coll_part(len, i / m, nodes)};
    }
    from = sc_coll_part_begin(len, i, s->n);
    return (range){from, from + sc_coll_part(len, i, s->n)};
}

static void fill(const sc_coll_schedule *s)
{
    memset(f.have, 0, sizeof f.have);
    memset(f.sent, 0, sizeof f.sent);
    memset(f.messages, 0, sizeof f.messages);
    for (uint32_t i = 0; i < s->n; i++) {
        range r = {0, s->bytes};
        if (s->coll == SC_ALL_GATHER || s->coll == SC_GATHER) r = own(s, i);
        if ((s->coll == SC_BROADCAST || s->coll == SC_SCATTER) && i != s->root)
            continue;
        for (uint64_t b = r.from; b < r.to; b++) f.have[i][b] = 1u << i;
    }
}

static uint32_t owner(const sc_coll_schedule *s, uint64_t byte)
{
    uint32_t i = 0;
    while (byte < own(s, i).from || byte >= own(s, i).to) i++;
    return i;
}

static void check(const sc_coll_schedule *s)
{
    uint32_t all = (uint32_t)((1ull << s->n) - 1), root = 1u << s->root;
    for (uint32_t i = 0; i < s->n; i++)
        for (uint64_t b = 0; b < s->bytes; b++) {
            uint32_t is = f.have[i][b], want = is;
            bool mine = owner(s, b) == i, at_root = i == s->root;
            switch (s->coll) {
            case SC_ALL_REDUCE:
            case SC_BARRIER: want = all; break;
            case SC_REDUCE: want = at_root ? all : is; break;
            case SC_BROADCAST: want = root; break;
            case SC_REDUCE_SCATTER: want = mine ? all : is; break;
            case SC_ALL_GATHER: want = 1u << owner(s, b); break;
            case SC_GATHER: want = at_root ? 1u << owner(s, b) : is; break;
            case SC_SCATTER: want = mine ? root : is; break;
            default: break;
            }
            if (is != want) wrong(s, "has not what was promised", i);
        }
}

static void run(const char *name, sc_coll_schedule *s)
{
    f.name = name;
    if (s->bytes == 0) s->bytes = BYTES;
    s->chunks = 1; /* any other moves as the first does */
    assert_true(s->n_phases >= 1 && s->n_phases <= SC_COLL_SCHEDULE_PHASES);
    fill(s);
    for (uint32_t k = 0; k < s->n_phases; k++) run_phase(s, &s->phase[k]);
    check(s);
}

/* ---- the proof --------------------------------------------------------------------- */

static bool ring(sc_coll c, sc_coll_group g, sc_coll_schedule *s)
{
    return sc_coll_schedule_ring(c, g, 7, s);
}

static bool usual(sc_coll c, sc_coll_group g, sc_coll_schedule *s)
{
    sc_coll_schedule_usual(c, BYTES, g, s);
    return c != SC_SEND && c != SC_RECV && c != SC_SENDRECV && c != SC_SCAN;
}

static const struct {
    const char *name;
    bool (*make)(sc_coll c, sc_coll_group g, sc_coll_schedule *s);
} algorithms[] = {{"ring", ring},
                  {"hierarchical", sc_coll_schedule_hierarchical},
                  {"direct", sc_coll_schedule_direct},
                  {"tree", sc_coll_schedule_tree},
                  {"halving", sc_coll_schedule_halving},
                  {"rounds", sc_coll_schedule_rounds},
                  {"in network", sc_coll_schedule_in_network},
                  {"in network and trees", sc_coll_schedule_in_network_tree},
                  {"direct and in network", sc_coll_schedule_direct_in_network},
                  {"usual", usual}};

/* Every algorithm does every collective that it offers, for groups of any shape
 * and root. */
static void every_member_gets_it(void **state)
{
    (void)state;
    uint32_t done = 0;
    for (uint32_t a = 0; a < sizeof algorithms / sizeof *algorithms; a++)
        for (uint32_t n = 2; n <= MEMBERS; n++)
            for (uint32_t m = 1; m <= n; m++)
                for (int c = 0; c < SC_N_COLLS; c++) {
                    sc_coll_schedule s;
                    sc_coll_group g = {n, m, (5 * n + 3 * m) % n};
                    if (n % m != 0) continue;
                    if (!algorithms[a].make((sc_coll)c, g, &s)) continue;
                    if (c == SC_ALL_TO_ALL || c == SC_SENDRECV) continue;
                    run(algorithms[a].name, &s);
                    done++;
                }
    assert_true(done > 1000);
}

/* Member i sends block j of what it has to member j, once. */
static void all_to_all(void **state)
{
    (void)state;
    sc_coll_schedule s;
    assert_true(
        sc_coll_schedule_direct(SC_ALL_TO_ALL, (sc_coll_group){5, 0, 0}, &s));
    s.bytes = BYTES;
    for (uint32_t i = 0; i < 5; i++) {
        uint32_t seen = 1u << i;
        for (uint32_t k = 0; k < sc_coll_sends(&s, s.phase, i); k++) {
            uint32_t to = sc_coll_to(&s, s.phase, i, k);
            assert_int_equal(sc_coll_carries(&s, s.phase, i, k).first, to);
            assert_int_equal(seen >> to & 1, 0);
            seen |= 1u << to;
        }
        assert_int_equal(seen, 31);
    }
}

/* ---- numbers ------------------------------------------------------------------------ */

static uint64_t most(const uint64_t *x, uint32_t n)
{
    uint64_t max = 0;
    for (uint32_t i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    return max;
}

/* Of 240 bytes over 8 members, 4 in each of 2 nodes: what a member sends, in
 * how many messages. */
static void numbers(void **state)
{
    (void)state;

    static const struct {
        uint32_t algorithm;
        sc_coll coll;
        uint64_t bytes;
        uint32_t messages;
    } want[] = {
        {0, SC_ALL_REDUCE, 420, 14},    /* 2 x 7 of 1/8 */
        {0, SC_ALL_GATHER, 210, 7},     /* 7 of 1/8 */
        {1, SC_ALL_REDUCE, 420, 8},     /* 3 of 1/4, 2 of 1/8, 3 of 1/4 */
        {1, SC_REDUCE_SCATTER, 210, 4}, /* 3 of 1/4, 1 of 1/8 */
        {2, SC_ALL_REDUCE, 420, 14},    /* 7 + 7 of 1/8 */
        {2, SC_ALL_TO_ALL, 210, 7},
        {4, SC_ALL_REDUCE, 420, 6}, /* 1/2, 1/4, 1/8 and back */
        {4, SC_ALL_GATHER, 210, 3},
        {5, SC_ALL_GATHER, 210, 3}, /* 1/8, 2/8, 4/8 */
        {5, SC_REDUCE_SCATTER, 210, 3},
        {6, SC_ALL_REDUCE, 360, 3}, /* all, 1/4 to the network, 1/4 */
        {8, SC_ALL_REDUCE, 420, 7}, /* 3 of 1/4, 1/4 to the network, 3 of 1/4 */
    };

    for (uint32_t k = 0; k < sizeof want / sizeof *want; k++) {
        sc_coll_schedule s;
        sc_coll_group g = {8, 4, 0};
        assert_true(algorithms[want[k].algorithm].make(want[k].coll, g, &s));
        s.bytes = 240;
        if (want[k].coll != SC_ALL_TO_ALL) {
            run(algorithms[want[k].algorithm].name, &s);
        } else {
            fill(&s);
            run_phase(&s, s.phase);
        }
        if (most(f.sent, 8) != want[k].bytes ||
            f.messages[3] != want[k].messages)
            fail_msg("%s, %s: %llu bytes in %u messages",
                     algorithms[want[k].algorithm].name,
                     sc_coll_names[want[k].coll],
                     (unsigned long long)most(f.sent, 8), f.messages[3]);
    }
}

/* Sanders, Speck and Träff: eight places in order, the root first.
 *
 *   0 - 4 - 2 - 1
 *       |   + - 3
 *       + - 6 - 5
 *           + - 7 */
static void trees(void **state)
{
    (void)state;
    static const uint32_t parent[] = {SC_COLL_NOBODY, 2, 4, 2, 0, 6, 4, 6};
    for (uint32_t i = 0; i < 8; i++) {
        sc_tree_node one = sc_coll_tree_at(8, i, 1);
        sc_tree_node two = sc_coll_tree_at(8, i, 2);
        assert_int_equal(two.parent, parent[i]);
        uint32_t other = parent[(i + 1) % 8];
        if (other != SC_COLL_NOBODY) other = (other + 7) % 8;
        assert_int_equal(one.parent, other);
        bool leaf1 =
            one.child[0] == SC_COLL_NOBODY && one.child[1] == SC_COLL_NOBODY;
        bool leaf2 =
            two.child[0] == SC_COLL_NOBODY && two.child[1] == SC_COLL_NOBODY;
        assert_true(leaf1 != leaf2); /* each works in one of them */
    }
    sc_tree_node root = sc_coll_tree_at(8, 0, 2);
    assert_int_equal(root.child[0], 4);
    assert_int_equal(root.child[1], SC_COLL_NOBODY);
}

/* Between 8 nodes of one member a member sends half up in each tree, and half
 * to each of two children in the one where it is no leaf: 2 V in all. */
static void tree_bytes(void **state)
{
    (void)state;
    sc_coll_schedule s;
    assert_true(
        sc_coll_schedule_tree(SC_ALL_REDUCE, (sc_coll_group){8, 1, 0}, &s));
    s.bytes = 240;
    run("tree", &s);
    assert_int_equal(most(f.sent, 8), 480);
}

/* From 16 KiB for each member on a broadcast is a chain of pieces. */
static void usual_ones(void **state)
{
    (void)state;
    sc_coll_schedule s;
    sc_coll_group g = {8, 4, 0};
    sc_coll_schedule_usual(SC_BROADCAST, 7 * 16384, g, &s);
    assert_int_equal(s.phase[0].pattern, SC_COLL_BINOMIAL);
    sc_coll_schedule_usual(SC_BROADCAST, 8 * 16384, g, &s);
    assert_int_equal(s.phase[0].pattern, SC_COLL_CHAIN);
    assert_int_equal(s.phase[0].steps, 8);
    sc_coll_schedule_usual(SC_BROADCAST, 100 * 16384, g, &s);
    assert_int_equal(s.phase[0].steps, 32);
    sc_coll_schedule_usual(SC_ALL_REDUCE, 1, g, &s);
    assert_int_equal(s.chunks, 4);
    assert_int_equal(s.n_phases, 3);
    sc_coll_schedule_usual(SC_ALL_REDUCE, 1, (sc_coll_group){8, 0, 0}, &s);
    assert_int_equal(s.chunks, 1);
    assert_int_equal(s.n_phases, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_member_gets_it),
                                       cmocka_unit_test(all_to_all),
                                       cmocka_unit_test(numbers),
                                       cmocka_unit_test(trees),
                                       cmocka_unit_test(tree_bytes),
                                       cmocka_unit_test(usual_ones)};
    return cmocka_run_group_tests_name("coll_schedule", tests, NULL, NULL);
}
