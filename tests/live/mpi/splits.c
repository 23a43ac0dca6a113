/* SPDX-License-Identifier: Apache-2.0 */
/* Splits of every rule that programs have, and of none: members and their
 * order are those of all real ranks. Arguments: names of rules; none: all. */
#include "check.h"

static int world, me;

static unsigned hash(unsigned x)
{
    x = (x ^ 61u ^ x >> 16) * 9u;
    return (x ^ x >> 4) * 0x27d4eb2du >> 7;
}

static int wide(int n) /* of a grid that is nearly square */
{
    int w = 1;
    for (int k = 2; k * k <= n; k++)
        if (n % k == 0) w = k;
    return w;
}

typedef struct choice {
    int colour, key;
} choice;

typedef struct split {
    const char *name;
    choice (*of)(int rank, int n);
} split;

#define RULE(name, colour, key)       \
    static choice name(int r, int n)  \
    {                                 \
        (void)n;                      \
        return (choice){colour, key}; \
    }

RULE(same, 42, r)
RULE(reversed, 1, -r)
RULE(mod, r % 3, r)
RULE(division, r / 4, r % 4)
RULE(few, r < 3 ? 0 : MPI_UNDEFINED, 0)
RULE(leaders, r % 4 == 0 ? 7 : MPI_UNDEFINED, r)
RULE(workers, r == 0 ? MPI_UNDEFINED : 0, r)
RULE(rows, r / wide(n), r % wide(n))
RULE(columns, r % wide(n), r / wide(n))
RULE(data_parallel, r % 2 + 2 * (r / 8), r / 2 % 4)
RULE(shares, r * 3 / n, r)
RULE(random_colours, hash(r) % 3, hash(r + 7777u) % 50)

static const split all[] = {
    {"same", same},       {"reversed", reversed},
    {"mod", mod},         {"division", division},
    {"few", few},         {"leaders", leaders},
    {"workers", workers}, {"rows", rows},
    {"columns", columns}, {"data_parallel", data_parallel},
    {"shares", shares},   {"random_colours", random_colours}};

/* World ranks of `c` in its order. */
static void ranks_of(MPI_Comm c, int n, int *out)
{
    MPI_Group part, whole;
    int *at = malloc(n * sizeof *at);
    for (int i = 0; i < n; i++) at[i] = i;
    MPI_Comm_group(c, &part);
    MPI_Comm_group(MPI_COMM_WORLD, &whole);
    MPI_Group_translate_ranks(part, n, at, whole, out);
    MPI_Group_free(&part);
    MPI_Group_free(&whole);
    free(at);
}

/* Splits `from`, whose world ranks are `rank` [n], by the rule of positions;
 * `rank` gets those of the part. Returns their number. */
static int check(const split *s, MPI_Comm from, int at, int n, int *rank,
                 MPI_Comm *out)
{
    choice mine = s->of(at, n);
    MPI_Comm_split(from, mine.colour, mine.key, out);
    CHECK((*out == MPI_COMM_NULL) == (mine.colour == MPI_UNDEFINED));
    if (*out == MPI_COMM_NULL) return 0;
    int *want = malloc(n * sizeof *want), *has = malloc(n * sizeof *has), k = 0;
    int *key = malloc(n * sizeof *key);
    for (int i = 0; i < n; i++) { /* sorted by key and position */
        choice c = s->of(i, n);
        if (c.colour != mine.colour) continue;
        int j = k++;
        for (; j > 0 && key[j - 1] > c.key; j--) {
            key[j] = key[j - 1];
            want[j] = want[j - 1];
        }
        key[j] = c.key;
        want[j] = rank[i];
    }
    int size, own, wrong = 0;
    MPI_Comm_size(*out, &size);
    MPI_Comm_rank(*out, &own);
    CHECK_EQ(size, k);
    if (size == k) {
        ranks_of(*out, size, has);
        for (int i = 0; i < k; i++) wrong += has[i] != want[i];
        CHECK_EQ(wrong, 0);
        CHECK_EQ(want[own], me);
    }
    if (size != k || wrong)
        fprintf(stderr, "rule %s of %d members\n", s->name, n);
    memcpy(rank, want, k * sizeof *rank);
    free(want);
    free(has);
    free(key);
    return k;
}

/* The rule, and a part of its part. */
static void both(const split *s)
{
    MPI_Comm c, d;
    int *rank = malloc(world * sizeof *rank), own;
    for (int i = 0; i < world; i++) rank[i] = i;
    int n = check(s, MPI_COMM_WORLD, me, world, rank, &c);
    if (n) {
        MPI_Comm_rank(c, &own);
        if (check(&all[2], c, own, n, rank, &d)) MPI_Comm_free(&d);
        MPI_Comm_free(&c);
    }
    free(rank);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int asked = argc == 1;
        for (int k = 1; k < argc; k++) asked |= !strcmp(argv[k], all[i].name);
        if (asked) both(&all[i]);
    }
    MPI_Finalize();
    return verdict("splits");
}
