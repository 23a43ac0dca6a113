/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scaled.c - a device of the catalogue some of whose figures are multiplied:
 * "h100-sxm*{peak=1.5,mem_bw=2}".
 */
#include "hw/device.h"
#include "hw/hw_keys.h"

#include <math.h>
#include <string.h>

typedef struct factors {
    double peak, memory, mem_bw, l2, link_bw, host_bw, power;
} factors;

#define FACTOR(key, field, about)                                    \
    {                                                                \
        .name = key, .type = SC_T_QUANTITY, .unit = SC_U_NONE,       \
        .offset = offsetof(factors, field), .min = 1e-3, .max = 1e3, \
        .def = "1", .help = about                                    \
    }

const sc_key sc_hw_factor_keys[] = {
    FACTOR("peak", peak, "FLOP/s of all precisions, and outside matrix units"),
    FACTOR("memory", memory, "capacity"),
    FACTOR("mem_bw", mem_bw, "bandwidth of the memory"),
    FACTOR("l2", l2, "last-level cache"),
    FACTOR("link_bw", link_bw, "all scale-up links"),
    FACTOR("host_bw", host_bw, "link to the host"),
    FACTOR("power", power, "power limit"),
    {.name = NULL}};

static const char opens[] = "*{";

size_t hw_scaled_base(const char *name)
{
    const char *at = strstr(name, opens);
    return at ? (size_t)(at - name) : 0;
}

static sc_pos behind(sc_pos pos, size_t at)
{
    if (pos.line == 0) pos.line = 1;
    pos.col += (uint32_t)at + (pos.col == 0);
    return pos;
}

/* Reads the factor of text[from .. to). */
static sc_status read_factor(const char *text, size_t from, size_t to,
                             sc_pos pos, sc_given *given, factors *f,
                             sc_arena *a, sc_err *err)
{
    while (from < to && text[from] == ' ') from++;
    char *key = sc_strndup(a, text + from, to - from);
    if (!key) return sc_error_nomem(err);
    char *value = strchr(key, '=');
    if (value) *value++ = '\0';
    const sc_key *row = sc_hw_factor_keys;
    while (row->name && strcmp(row->name, key) != 0) row++;
    if (!row->name || !value)
        return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_KEY, behind(pos, from),
                        "write peak, memory, mem_bw, l2, link_bw, host_bw or "
                        "power, = and a factor",
                        "\"%.40s\" is no factor of a device", key);
    if (sc_given_has(given, sc_hw_factor_keys, key))
        return sc_error(err, SC_EINPUT, SC_C_DUPLICATE, behind(pos, from), NULL,
                        "%s is given twice", key);
    sc_given_set(given, sc_hw_factor_keys, key);
    return sc_schema_set(row, value, behind(pos, from + (size_t)(value - key)),
                         f, a, err);
}

static sc_status read_factors(const char *text, size_t at, sc_pos pos,
                              factors *f, sc_arena *a, sc_err *err)
{
    sc_given given = {{0}};
    size_t end = at + strcspn(text + at, "}");
    SC_TRY(sc_schema_defaults(sc_hw_factor_keys, f, a, err));
    if (text[end] != '}' || text[end + 1] != '\0')
        return sc_error(err, SC_EINPUT, SC_C_SYNTAX, behind(pos, end),
                        "for example h100-sxm*{peak=1.5,mem_bw=2}",
                        "the factors of a device end with }");
    while (at < end) {
        size_t to = at + strcspn(text + at, ",}");
        SC_TRY(read_factor(text, at, to, pos, &given, f, a, err));
        at = to + 1;
    }
    return SC_OK;
}

sc_status hw_device_scaled(const char *name, sc_pos pos, sc_arena *a,
                           const sc_device **out, sc_err *err)
{
    size_t n = hw_scaled_base(name);
    const sc_device *like;
    factors f;
    sc_device *d = SC_NEW(a, sc_device);
    const char *base = sc_strndup(a, name, n), *own = sc_strdup(a, name);
    if (!d || !base || !own) return sc_error_nomem(err);
    SC_TRY(hw_device_find(base, pos, a, &like, err));
    SC_TRY(read_factors(name, n + strlen(opens), pos, &f, a, err));
    *d = *like;
    d->name = own;
    d->title = own;
    d->like = like->name;
    for (int p = 0; p < SC_N_PRECISIONS; p++) d->peak[p] *= f.peak;
    d->vector_flops *= f.peak;
    d->mem_bytes = (uint64_t)llround((double)like->mem_bytes * f.memory);
    d->mem_bw *= f.mem_bw;
    d->l2_bytes = (uint64_t)llround((double)like->l2_bytes * f.l2);
    d->link_bw *= f.link_bw;
    d->host_bw *= f.host_bw;
    d->power_w *= f.power;
    d->n_values = 0;
    *out = d;
    return SC_OK;
}
