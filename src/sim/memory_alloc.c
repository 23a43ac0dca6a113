/* SPDX-License-Identifier: Apache-2.0 */
/* memory_alloc.c - free blocks are a treap by size and address. */
#include "sim/memory_alloc.h"

#define KIB       1024ull
#define MIB       (1024 * KIB)
#define UNIT      512ull
#define SMALL     MIB        /* a request up to this is small */
#define SMALL_SEG (2 * MIB)  /* segment of small requests */
#define MIDDLE    (10 * MIB) /* below this a large request ... */
#define LARGE_SEG (20 * MIB) /* ... shares a segment of this */
#define SEG_UNIT  (2 * MIB)

void alloc_init(alloc *x, sc_arena *a, uint64_t limit)
{
    *x = (alloc){.a = a,
                 .unused = ALLOC_NONE,
                 .tree = {ALLOC_NONE, ALLOC_NONE},
                 .limit = limit};
}

uint64_t alloc_rounded(uint64_t bytes)
{
    return (bytes + UNIT - 1) / UNIT * UNIT;
}

static uint64_t segment_of(uint64_t size)
{
    if (size <= SMALL) return SMALL_SEG;
    if (size < MIDDLE) return LARGE_SEG;
    return (size + SEG_UNIT - 1) / SEG_UNIT * SEG_UNIT;
}

/* ---- the tree ------------------------------------------------------------ */

static bool is_less(const alloc_block *a, const alloc_block *b)
{
    return a->size != b->size ? a->size < b->size : a->address < b->address;
}

/* Nodes below and above block `at`, which is not in the tree. */
static void split_tree(alloc *x, uint32_t root, uint32_t at, uint32_t *less,
                       uint32_t *more)
{
    while (root != ALLOC_NONE) {
        alloc_block *r = &x->block[root];
        if (is_less(r, &x->block[at])) {
            *less = root;
            less = &r->right;
            root = r->right;
        } else {
            *more = root;
            more = &r->left;
            root = r->left;
        }
    }
    *less = *more = ALLOC_NONE;
}

/* A pseudo-random priority. */
static uint32_t weight_of(uint64_t address)
{
    uint64_t h = address * 0x9E3779B97F4A7C15u;
    return (uint32_t)((h ^ h >> 32) * 0x9E3779B97F4A7C15u >> 32);
}

static void insert(alloc *x, uint32_t at)
{
    alloc_block *b = &x->block[at];
    uint32_t *to = &x->tree[b->small];
    b->free = true;
    b->weight = weight_of(b->address);
    while (*to != ALLOC_NONE && x->block[*to].weight >= b->weight)
        to = is_less(&x->block[*to], b) ? &x->block[*to].right
                                        : &x->block[*to].left;
    split_tree(x, *to, at, &b->left, &b->right);
    *to = at;
}

/* Removes the node to which `to` points. */
static void unlink_node(alloc *x, uint32_t *to)
{
    alloc_block *b = &x->block[*to];
    uint32_t less = b->left, more = b->right;
    while (less != ALLOC_NONE && more != ALLOC_NONE) {
        bool left = x->block[less].weight >= x->block[more].weight;
        uint32_t *top = left ? &less : &more;
        uint32_t *down = left ? &x->block[less].right : &x->block[more].left;
        *to = *top;
        *top = *down;
        to = down;
    }
    *to = less != ALLOC_NONE ? less : more;
    b->free = false;
}

static void erase(alloc *x, uint32_t at)
{
    const alloc_block *b = &x->block[at];
    uint32_t *to = &x->tree[b->small];
    while (*to != at)
        to = is_less(&x->block[*to], b) ? &x->block[*to].right
                                        : &x->block[*to].left;
    unlink_node(x, to);
}

/* Removes the smallest free block that holds `size`, at the lowest address;
 * ALLOC_NONE: there is none. */
static uint32_t take_best(alloc *x, bool small, uint64_t size)
{
    uint32_t *to = &x->tree[small], *best = NULL;
    while (*to != ALLOC_NONE) {
        alloc_block *b = &x->block[*to];
        if (b->size >= size) {
            best = to;
            to = &b->left;
        } else {
            to = &b->right;
        }
    }
    if (best == NULL) return ALLOC_NONE;
    uint32_t at = *best;
    unlink_node(x, best);
    return at;
}

/* ---- blocks -------------------------------------------------------------- */

static uint32_t new_block(alloc *x)
{
    uint32_t at = x->unused;
    if (at != ALLOC_NONE) {
        x->unused = x->block[at].after;
        return at;
    }
    alloc_block *all = sc_grow(x->a, x->block, x->n, &x->cap, 64, sizeof *all);
    if (all == NULL) return ALLOC_NONE;
    x->block = all;
    return x->n++;
}

static void drop_block(alloc *x, uint32_t at)
{
    x->block[at].after = x->unused;
    x->block[at].free = false;
    x->unused = at;
}

/* Returns segments that are one free block to the device. */
static void release_cached(alloc *x)
{
    for (uint32_t i = 0; i < x->n; i++) {
        alloc_block *b = &x->block[i];
        if (!b->free || b->before != ALLOC_NONE || b->after != ALLOC_NONE)
            continue;
        erase(x, i);
        x->reserved -= b->size;
        drop_block(x, i);
    }
}

static uint32_t new_segment(alloc *x, bool small, uint64_t size)
{
    uint64_t bytes = segment_of(size);
    if (bytes > x->limit || x->reserved > x->limit - bytes) release_cached(x);
    uint32_t at = new_block(x);
    if (at == ALLOC_NONE) return at;
    x->block[at] = (alloc_block){.address = x->end,
                                 .size = bytes,
                                 .before = ALLOC_NONE,
                                 .after = ALLOC_NONE,
                                 .small = small};
    x->end += bytes;
    x->reserved += bytes;
    return at;
}

/* Splits off the part of `at` beyond `size`, if the rest can be used. */
static bool cut(alloc *x, uint32_t at, uint64_t size)
{
    uint64_t rest = x->block[at].size - size;
    if (x->block[at].small ? rest < UNIT : rest <= SMALL) return true;
    uint32_t more = new_block(x);
    if (more == ALLOC_NONE) return false;
    alloc_block *b = &x->block[at];
    x->block[more] = (alloc_block){.address = b->address + size,
                                   .size = rest,
                                   .before = at,
                                   .after = b->after,
                                   .small = b->small};
    if (b->after != ALLOC_NONE) x->block[b->after].before = more;
    b->after = more;
    b->size = size;
    insert(x, more);
    return true;
}

uint32_t alloc_take(alloc *x, uint64_t bytes)
{
    uint64_t size = alloc_rounded(bytes);
    bool small = size <= SMALL;
    uint32_t at = take_best(x, small, size);
    if (at == ALLOC_NONE && (at = new_segment(x, small, size)) == ALLOC_NONE)
        return at;
    if (!cut(x, at, size)) return ALLOC_NONE;
    x->live += size;
    return at;
}

/* Merges the next block into `at`; neither is in the tree. */
static void join(alloc *x, uint32_t at, uint32_t behind)
{
    alloc_block *b = &x->block[at], *c = &x->block[behind];
    b->size += c->size;
    b->after = c->after;
    if (c->after != ALLOC_NONE) x->block[c->after].before = at;
    drop_block(x, behind);
}

void alloc_give(alloc *x, uint32_t at)
{
    uint32_t before = x->block[at].before, after = x->block[at].after;
    if (after != ALLOC_NONE && x->block[after].free) {
        erase(x, after);
        join(x, at, after);
    }
    if (before != ALLOC_NONE && x->block[before].free) {
        erase(x, before);
        join(x, before, at);
        at = before;
    }
    insert(x, at);
}
