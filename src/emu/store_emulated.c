/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_emulated.c - what emulated ranks would have set in the store.
 *
 * Keys are paths. A rank appears as a number in the last part, or behind the
 * word "rank"; other numbers are those of groups and attempts. An emulated rank
 * would have set what a real rank has under its own key, except for the
 * identities of NCCL communicators, which the first member creates: PyTorch
 * names them by a counter ("0"), by the pair of partners ("3:5") or as
 * "UniqueNCCLID:0", and only checks their length.
 */
#include "emu/store.h"

#include <string.h>

#define SEQUENCE "SEQ_NUM_STORE_KEY" /* PyTorch 1.x; 8 bytes */

int64_t store_share(const store_world *w, uint64_t ones)
{
    uint64_t rounds = ones / w->n_real, rest = ones % w->n_real;
    return (int64_t)(rounds * w->world + rest * w->world / w->n_real);
}

static bool is_real(const store_world *w, uint64_t rank)
{
    return rank < w->world &&
           sc_find_rising(w->real, w->n_real, (uint32_t)rank) < w->n_real;
}

static bool digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
}

/* `word` in small letters, anywhere in the key. */
static bool has(store_bytes key, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= key.len; i++) {
        size_t k = 0;
        while (k < n && lower(key.at[i + k]) == (uint8_t)word[k]) k++;
        if (k == n) return true;
    }
    return false;
}

static bool ends(store_bytes key, const char *word)
{
    size_t n = strlen(word);
    return key.len >= n && memcmp(key.at + key.len - n, word, n) == 0;
}

static size_t last_part(store_bytes key)
{
    size_t i = key.len;
    while (i > 0 && key.at[i - 1] != '/') i--;
    return i;
}

/* ---- numbers that may be ranks ---------------------------------------------- */

typedef struct number {
    size_t at, len;
    uint64_t value;
} number;

static bool after_rank(store_bytes key, size_t at)
{
    if (at > 0 && !digit(key.at[at - 1]) &&
        (lower(key.at[at - 1]) < 'a' || lower(key.at[at - 1]) > 'z'))
        at--;
    return at >= 4 && has((store_bytes){key.at + at - 4, 4}, "rank");
}

/* The last number that ends before *at; false: none. */
static bool previous(store_bytes key, size_t *at, number *out)
{
    size_t part = last_part(key), i = *at;
    while (i > 0) {
        while (i > 0 && !digit(key.at[i - 1])) i--;
        size_t end = i;
        while (i > 0 && digit(key.at[i - 1])) i--;
        if (i == end || end - i > 9) continue;
        if (i < part && !after_rank(key, i)) continue;
        uint64_t value = 0;
        for (size_t k = i; k < end; k++)
            value = value * 10 + (uint64_t)(key.at[k] - '0');
        *out = (number){i, end - i, value};
        *at = i;
        return true;
    }
    return false;
}

/* The entry under the same key of a real rank, or NULL. */
static const store_entry *with_real(const store_world *w, const store_table *t,
                                    store_bytes key, number n)
{
    uint8_t name[STORE_KEY_MAX + 16];
    size_t rest = key.len - n.at - n.len;
    for (uint32_t i = 0; i < w->n_real; i++) {
        char rank[12];
        size_t len = 0;
        for (uint32_t v = w->real[i]; len == 0 || v != 0; v /= 10)
            rank[sizeof rank - ++len] = (char)('0' + v % 10);
        memcpy(name, key.at, n.at);
        memcpy(name + n.at, rank + sizeof rank - len, len);
        memcpy(name + n.at + len, key.at + n.at + n.len, rest);
        const store_entry *e =
            store_find(t, (store_bytes){name, n.at + len + rest});
        if (e && e->set) return e;
    }
    return NULL;
}

/* "0", "3:5", "UniqueNCCLID:2" */
static bool is_identity(store_bytes key)
{
    size_t i = last_part(key);
    if (has((store_bytes){key.at + i, key.len - i}, "nccl")) return true;
    bool digits = i < key.len;
    for (; i < key.len; i++)
        digits = digits && (digit(key.at[i]) || key.at[i] == ':');
    return digits;
}

static const store_entry *mirrored(const store_world *w, const store_table *t,
                                   store_bytes key)
{
    size_t at = key.len;
    number n;
    if (key.len > STORE_KEY_MAX) return NULL;
    while (previous(key, &at, &n)) {
        if (n.value >= w->world || is_real(w, n.value)) continue;
        const store_entry *e = with_real(w, t, key, n);
        if (e && !(is_identity(key) && e->value.len == STORE_UID)) return e;
    }
    return NULL;
}

bool store_mirrored(const store_world *w, const store_table *t, store_bytes key)
{
    return mirrored(w, t, key) != NULL;
}

/* ---- derived values ------------------------------------------------------------- */

store_author store_who(const store_world *w, const store_table *t,
                       store_bytes key)
{
    static const char *const failures[] = {"abort", "error", "exception",
                                           "dump",  "fail",  "timeout"};
    size_t at = key.len;
    number n;
    for (size_t i = 0; i < SC_COUNT(failures); i++)
        if (has(key, failures[i])) return STORE_NEVER;
    if (w->n_real == 1 || ends(key, ":last_worker") || mirrored(w, t, key))
        return STORE_NOW;
    /* the first member of the first group is rank 0 */
    if (w->real[0] == 0 && has(key, "default_pg/0/")) return STORE_REAL;
    if (ends(key, SEQUENCE)) return STORE_SOON;
    if (is_identity(key)) return STORE_LATE;
    while (previous(key, &at, &n))
        if (is_real(w, n.value)) return STORE_REAL;
    return STORE_LATE;
}

bool store_made_up(const store_world *w, const store_table *t, store_bytes key,
                   sc_blocks *p, store_buf *out)
{
    const store_entry *e = mirrored(w, t, key);
    if (e) return store_buf_add(p, out, e->value.at, e->value.len);
    if (ends(key, SEQUENCE)) {
        static const uint8_t one[8] = {1};
        return store_buf_add(p, out, one, sizeof one);
    }
    if (ends(key, ":last_worker")) return store_buf_add(p, out, "1", 1);
    if (!is_identity(key)) return true;
    /* differs for every key, the same for all clients */
    uint8_t uid[STORE_UID] = SC_STORE_ID_TAG;
    uint64_t state = store_hash(key);
    for (size_t i = 8; i < sizeof uid; i += 8) {
        uint64_t draw = sc_random(&state);
        memcpy(uid + i, &draw, sizeof draw);
    }
    return store_buf_add(p, out, uid, sizeof uid);
}

int store_order(store_bytes x, store_bytes y)
{
    size_t i = 0, k = 0;
    while (i < x.len && k < y.len) {
        uint64_t a = x.at[i++], b = y.at[k++];
        if (digit((uint8_t)a) && digit((uint8_t)b)) {
            for (a -= '0'; i < x.len && digit(x.at[i]); i++)
                a = a * 10 + (uint64_t)(x.at[i] - '0');
            for (b -= '0'; k < y.len && digit(y.at[k]); k++)
                b = b * 10 + (uint64_t)(y.at[k] - '0');
        }
        if (a != b) return a < b ? -1 : 1;
    }
    return (i < x.len) - (k < y.len);
}
