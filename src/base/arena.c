/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - a list of growing chunks, newest first. */
#define _DEFAULT_SOURCE /* madvise(), MAP_ANONYMOUS */
#include "base/arena.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Under AddressSanitizer free memory is poisoned, and a red zone separates
 * allocations. */
#if defined(__SANITIZE_ADDRESS__)
#define HAVE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_ASAN 1
#endif
#endif
#ifndef HAVE_ASAN
#define HAVE_ASAN 0
#endif
#if HAVE_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n)   ASAN_POISON_MEMORY_REGION((p), (n))
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#define RED_ZONE       16
#else
#define POISON(p, n)   ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#define RED_ZONE       0
#endif

#define ALIGN     16
#define CHUNK_MIN ((size_t)64 << 10)
#define CHUNK_MAX ((size_t)32 << 20)
/* Larger chunks are mapped, because mapped pages are zero and memory of
 * malloc() would have to be cleared. The leak checker does not see pointers in
 * mapped memory, so it gets none. */
#if HAVE_ASAN
#define MAPPED_FROM SIZE_MAX
#else
#define MAPPED_FROM ((size_t)128 << 10)
#endif
/* Larger chunks use huge pages if the kernel has them. */
#define LARGE_FROM ((size_t)4 << 20)
#define LARGE_PAGE ((size_t)2 << 20)
/* Bytes of raw memory that are written at least, see spoil(). */
#define SPOILED ((size_t)4 << 10)

struct sc_arena_chunk {
    sc_arena_chunk *prev;
    size_t cap, fill;
    size_t dirty; /* bytes from here on are still zero */
    _Alignas(ALIGN) unsigned char data[];
};

void sc_arena_init(sc_arena *a, size_t limit_bytes)
{
    a->head = a->spare = NULL;
    a->used = 0;
    a->limit = limit_bytes;
}

/* NULL: out of memory. */
static sc_arena_chunk *chunk_alloc(size_t cap)
{
    bool mapped = cap >= MAPPED_FROM;
    size_t bytes = sizeof(sc_arena_chunk) + cap;
    sc_arena_chunk *c = NULL;
    if (!mapped) {
        c = malloc(bytes);
    } else {
        void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at != MAP_FAILED) c = at;
    }
    if (c == NULL) return NULL;
    c->cap = cap;
    c->fill = 0;
    c->dirty = mapped ? 0 : cap;
    return c;
}

static void chunk_free(sc_arena_chunk *c)
{
    UNPOISON(c->data, c->cap);
    if (c->cap < MAPPED_FROM)
        free(c);
    else
        (void)munmap(c, sizeof *c + c->cap);
}

static void chunk_rewind(sc_arena_chunk *c, size_t fill)
{
    c->fill = fill;
    POISON(c->data + fill, c->cap - fill);
}

/* Keeps the larger of this chunk and the spare one as spare. Code that
 * allocates and releases in a loop then asks the system only once and clears
 * only what it used. */
static void chunk_drop(sc_arena *a, sc_arena_chunk *c)
{
    sc_arena_chunk *other = a->spare;
    if (other == NULL || other->cap < c->cap) {
        chunk_rewind(c, 0);
        a->spare = c;
        c = other;
    }
    if (c != NULL) chunk_free(c);
}

void sc_arena_free(sc_arena *a)
{
    sc_arena_mark start = {NULL, 0, 0};
    sc_arena_restore(a, start);
    if (a->spare != NULL) chunk_free(a->spare);
    a->spare = NULL;
}

void sc_arena_reset(sc_arena *a)
{
    sc_arena_mark start = {NULL, 0, 0};
    sc_arena_restore(a, start);
    a->head = a->spare;
    a->spare = NULL;
    if (a->head != NULL) a->head->prev = NULL;
}

sc_arena_mark sc_arena_save(const sc_arena *a)
{
    sc_arena_mark m = {a->head, a->head == NULL ? 0 : a->head->fill, a->used};
    return m;
}

void sc_arena_restore(sc_arena *a, sc_arena_mark mark)
{
    while (a->head != mark.head) {
        sc_assert(a->head != NULL); /* the mark is of this arena */
        sc_arena_chunk *prev = a->head->prev;
        chunk_drop(a, a->head);
        a->head = prev;
    }
    /* nothing was released beyond the mark since it was set */
    sc_assert(mark.head == NULL || mark.fill <= a->head->fill);
    sc_assert(mark.used <= a->used);
    if (a->head != NULL) chunk_rewind(a->head, mark.fill);
    a->used = mark.used;
}

/* Page faults took a third of the time of a short prediction. */
static void use_large_pages(sc_arena_chunk *c, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    uintptr_t page = LARGE_PAGE, begin = (uintptr_t)c;
    uintptr_t first = begin + page - 1, end = begin + bytes;
    first -= first % page;
    end -= end % page;
    if (end > first)
        (void)madvise((char *)c + (first - begin), end - first, MADV_HUGEPAGE);
#else
    (void)c, (void)bytes;
#endif
}

static bool chunk_add(sc_arena *a, size_t need)
{
    sc_arena_chunk *spare = a->spare;
    a->spare = NULL;
    if (spare != NULL && spare->cap >= need) {
        spare->prev = a->head;
        a->head = spare;
        return true;
    }
    if (spare != NULL) chunk_free(spare);
    size_t cap = a->head == NULL ? CHUNK_MIN : 2 * a->head->cap;
    if (cap > CHUNK_MAX) cap = CHUNK_MAX;
    if (cap < need) cap = need;
    if (cap > SIZE_MAX - sizeof(sc_arena_chunk)) return false;
    sc_arena_chunk *c = chunk_alloc(cap);
    if (c == NULL) return false;
    if (cap >= LARGE_FROM) use_large_pages(c, sizeof *c + cap);
    c->prev = a->head;
    POISON(c->data, cap);
    a->head = c;
    return true;
}

/* Bytes of a chunk that an allocation of `bytes` takes. */
static size_t step_of(size_t bytes)
{
    size_t step = (bytes + RED_ZONE + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    return step ? step : ALIGN;
}

static bool over_limit(const sc_arena *a, size_t bytes)
{
    return a->limit != 0 && (a->used > a->limit || bytes > a->limit - a->used);
}

/* Hands out `step` bytes of the newest chunk from `p` on and returns how many
 * of them may be non-zero. */
static size_t hand_out(sc_arena *a, const unsigned char *p, size_t step)
{
    sc_arena_chunk *c = a->head;
    size_t from = (size_t)(p - c->data);
    size_t old = from < c->dirty ? c->dirty - from : 0;
    c->fill = from + step;
    if (c->fill > c->dirty) c->dirty = c->fill;
    return old;
}

/* `*old`: how many bytes at the start may be non-zero. */
static unsigned char *take(sc_arena *a, size_t n, size_t size, size_t *old)
{
    if (size != 0 && n > (SIZE_MAX / 2) / size) return NULL;
    size_t bytes = n * size, step = step_of(bytes);
    if (over_limit(a, bytes)) return NULL;
    sc_arena_chunk *c = a->head;
    if (c == NULL || c->cap - c->fill < step) {
        if (!chunk_add(a, step)) return NULL;
        c = a->head;
    }
    unsigned char *p = c->data + c->fill;
    UNPOISON(p, bytes);
    *old = hand_out(a, p, step);
    if (*old > bytes) *old = bytes;
    a->used += bytes;
    return p;
}

void *sc_alloc(sc_arena *a, size_t n, size_t size)
{
    size_t old;
    unsigned char *p = take(a, n, size, &old);
    if (p != NULL && old > 0) memset(p, 0, old);
    return p;
}

/* With assertions, undefined contents are not what a caller would hope for.
 * Room that is reserved for the worst case is large and mostly never used, so
 * all of it is written only under AddressSanitizer, which is slow anyway. */
static void spoil(unsigned char *p, size_t bytes)
{
#ifndef NDEBUG
    size_t most = HAVE_ASAN ? SIZE_MAX : SPOILED;
    if (p != NULL) memset(p, 0xa5, bytes < most ? bytes : most);
#else
    (void)p, (void)bytes;
#endif
}

void *sc_alloc_raw(sc_arena *a, size_t n, size_t size)
{
    size_t old;
    unsigned char *p = take(a, n, size, &old);
    spoil(p, n * size);
    return p;
}

/* Extends the newest allocation in place; `*old` as in take(). */
static bool extend(sc_arena *a, unsigned char *p, size_t bytes, size_t more,
                   size_t *old)
{
    sc_arena_chunk *c = a->head;
    if (c == NULL || p + step_of(bytes) != c->data + c->fill) return false;
    size_t step = step_of(more), from = (size_t)(p - c->data);
    if (c->cap - from < step || over_limit(a, more - bytes)) return false;
    UNPOISON(p, more);
    *old = hand_out(a, p, step);
    if (*old > more) *old = more;
    a->used += more - bytes;
    return true;
}

/* `*old` as in take(). */
static unsigned char *grow(sc_arena *a, void *array, uint32_t n, uint32_t *cap,
                           uint32_t first, size_t size, size_t *old)
{
    if (*cap > UINT32_MAX / 2) return NULL;
    uint32_t more = *cap ? 2 * *cap : first;
    unsigned char *grown = array;
    if (*cap == 0 || more > SIZE_MAX / 2 / size ||
        !extend(a, grown, *cap * size, more * size, old)) {
        grown = take(a, more, size, old);
        if (grown == NULL) return NULL;
        if (n > 0) memcpy(grown, array, n * size);
    }
    *cap = more;
    return grown;
}

void *sc_grow_full(sc_arena *a, void *array, uint32_t n, uint32_t *cap,
                   uint32_t first, size_t size)
{
    size_t old, known = n * size;
    unsigned char *grown = grow(a, array, n, cap, first, size, &old);
    if (grown != NULL && old > known) memset(grown + known, 0, old - known);
    return grown;
}

void *sc_grow_full_raw(sc_arena *a, void *array, uint32_t n, uint32_t *cap,
                       uint32_t first, size_t size)
{
    size_t old;
    unsigned char *grown = grow(a, array, n, cap, first, size, &old);
    if (grown != NULL) spoil(grown + n * size, (*cap - n) * size);
    return grown;
}

void *sc_reserve(sc_arena *a, void *array, uint32_t n, uint32_t *cap,
                 uint32_t more, size_t size)
{
    if (array != NULL && more <= *cap && n <= *cap - more) return array;
    if (more > UINT32_MAX - n) return NULL;
    uint32_t most = n + more;
    if (*cap > most / 2 && *cap <= UINT32_MAX / 2) most = 2 * *cap;
    void *grown = sc_alloc_raw(a, most, size);
    if (grown == NULL) return NULL;
    if (array != NULL && n > 0) memcpy(grown, array, n * size);
    *cap = most;
    return grown;
}

char *sc_strndup(sc_arena *a, const char *s, size_t n)
{
    const char *end = n == 0 ? NULL : memchr(s, '\0', n);
    if (end != NULL) n = (size_t)(end - s);
    char *p = n == SIZE_MAX ? NULL : sc_alloc(a, n + 1, 1);
    if (p != NULL && n > 0) memcpy(p, s, n);
    return p;
}

char *sc_strdup(sc_arena *a, const char *s)
{
    return sc_strndup(a, s, strlen(s));
}

char *sc_vsprintf(sc_arena *a, const char *fmt, va_list args)
{
    va_list again;
    char text[256]; /* most are short: they are formatted once */
    va_copy(again, args);
    int n = vsnprintf(text, sizeof text, fmt, args);
    char *p = n < 0 ? NULL : sc_alloc(a, (size_t)n + 1, 1);
    if (p != NULL && (size_t)n < sizeof text)
        memcpy(p, text, (size_t)n + 1);
    else if (p != NULL)
        vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

char *sc_sprintf(sc_arena *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *p = sc_vsprintf(a, fmt, args);
    va_end(args);
    return p;
}
