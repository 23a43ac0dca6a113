/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.c - a machine in one line.
 *
 *   line    = ( dim { " x " dim } | name ":" number ) { ";" option }
 *   dim     = kind size [ "@" rate ] { "," ( time | "multicast" ) }
 *   kind    = "switch" | "fc" | "ring" | "mesh" | "tree" | "cube" | "torus"
 *   size    = digits, for a torus digits { "x" digits }
 *   option  = key "=" value, the keys of hw_line_keys, or of sc_hw_name_keys
 *             behind a name
 */
#include "hw/build.h"
#include "hw/device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_DEVICE "h100-sxm"
#define MAX_LINE       4096

typedef struct parser {
    const char *text;
    size_t at;
    sc_pos pos; /* of the text */
    sc_arena *a;
    sc_err *err;
    const sc_key *keys; /* of options */
    sc_hw *hw;
    size_t dim_at[SC_HW_DIMS]; /* where each dimension was written */
    bool has_bw[SC_HW_DIMS];
} parser;

static sc_pos pos_at(const parser *p, size_t at)
{
    sc_pos pos = p->pos;
    if (pos.line == 0) pos.line = 1;
    pos.col += (uint32_t)at + (pos.col == 0);
    return pos;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static void skip_blanks(parser *p)
{
    while (is_blank(p->text[p->at])) p->at++;
}

/* Copies text[from..to) to the arena. */
static sc_status take(parser *p, size_t from, size_t to, const char **out)
{
    *out = sc_strndup(p->a, p->text + from, to - from);
    return *out == NULL ? sc_error_nomem(p->err) : SC_OK;
}

bool hw_is_line(const char *text)
{
    size_t n = 0;
    while (is_blank(*text)) text++;
    if (memchr(text, '@', strcspn(text, ";")) != NULL) return true;
    while (text[n] >= 'a' && text[n] <= 'z') n++;
    if (n == 0 || !is_digit(text[n])) return false;
    if (n == 5 && memcmp(text, "torus", 5) == 0) return true;
    for (int k = 0; sc_dim_kind_names[k] != NULL; k++)
        if (strlen(sc_dim_kind_names[k]) == n &&
            memcmp(text, sc_dim_kind_names[k], n) == 0)
            return true;
    return false;
}

/* -1: torus. */
static sc_status parse_kind(parser *p, int *kind)
{
    static const char *const names[] = {"torus", "switch", "fc",   "ring",
                                        "mesh",  "tree",   "cube", NULL};
    size_t start = p->at;
    const char *word;
    while (is_letter(p->text[p->at])) p->at++;
    SC_TRY(take(p, start, p->at, &word));
    for (int k = 0; names[k] != NULL; k++)
        if (strcmp(names[k], word) == 0) {
            *kind = k - 1;
            return SC_OK;
        }
    char hint[120];
    const char *near = sc_nearest(word, names);
    if (near != NULL)
        snprintf(hint, sizeof hint, "did you mean %s?", near);
    else
        snprintf(hint, sizeof hint,
                 "switch, fc, ring, mesh, tree, cube or torus");
    return sc_error(p->err, SC_EINPUT, SC_C_UNKNOWN_NAME, pos_at(p, start),
                    hint, "unknown kind of dimension \"%.40s\"", word);
}

static sc_status parse_size(parser *p, uint32_t *size)
{
    size_t start = p->at;
    uint64_t n = 0;
    for (; is_digit(p->text[p->at]); p->at++)
        if (n <= UINT32_MAX) n = 10 * n + (uint64_t)(p->text[p->at] - '0');
    if (p->at == start)
        return sc_error(p->err, SC_EINPUT, SC_C_SYNTAX, pos_at(p, start),
                        "write kind and size: ring4",
                        "a dimension has no size");
    if (n == 0)
        return sc_error(p->err, SC_EINPUT, SC_C_RANGE, pos_at(p, start), NULL,
                        "a dimension has no members");
    if (n > (uint64_t)1 << 31)
        return sc_error(p->err, SC_EINPUT, SC_C_TOO_BIG, pos_at(p, start),
                        "a machine has at most 2147483648 devices",
                        "a dimension is too large");
    *size = (uint32_t)n;
    return SC_OK;
}

/* Reads a word up to a blank, ',' or ';'. */
static sc_status parse_word(parser *p, const char **word, size_t *start)
{
    skip_blanks(p);
    *start = p->at;
    while (p->text[p->at] != '\0' && strchr(",;", p->text[p->at]) == NULL &&
           !is_blank(p->text[p->at]))
        p->at++;
    return take(p, *start, p->at, word);
}

/* "@300GB/s,50ns,multicast" */
static sc_status parse_numbers(parser *p, sc_dim *d)
{
    const char *word;
    size_t start;
    if (p->text[p->at] == '@') {
        p->at++;
        SC_TRY(parse_word(p, &word, &start));
        SC_TRY(
            sc_unit_parse(word, SC_U_RATE, pos_at(p, start), &d->bw, p->err));
        if (!(d->bw >= 1 && d->bw <= 1e17))
            return sc_error(p->err, SC_EINPUT, SC_C_RANGE, pos_at(p, start),
                            "a positive rate, for example 50GB/s",
                            "no possible bandwidth: %.40s", word);
    }
    for (skip_blanks(p); p->text[p->at] == ','; skip_blanks(p)) {
        p->at++;
        SC_TRY(parse_word(p, &word, &start));
        if (strcmp(word, "multicast") == 0) {
            d->multicast = true;
            continue;
        }
        SC_TRY(sc_unit_parse(word, SC_U_TIME, pos_at(p, start), &d->latency_s,
                             p->err));
        if (!(d->latency_s >= 0 && d->latency_s <= 1))
            return sc_error(p->err, SC_EINPUT, SC_C_RANGE, pos_at(p, start),
                            "a time from 0s to 1s",
                            "no possible latency: %.40s", word);
    }
    return SC_OK;
}

static sc_status parse_dim(parser *p)
{
    uint32_t size[SC_HW_DIMS] = {0}, n = 0;
    size_t start = p->at;
    int kind = 0;
    SC_TRY(parse_kind(p, &kind));
    SC_TRY(parse_size(p, &size[n++]));
    while (kind < 0 && p->text[p->at] == 'x' && is_digit(p->text[p->at + 1])) {
        p->at++;
        if (n == SC_HW_DIMS)
            return sc_error(p->err, SC_EINPUT, SC_C_TOO_BIG, pos_at(p, start),
                            NULL, "there are more than %d dimensions",
                            SC_HW_DIMS);
        SC_TRY(parse_size(p, &size[n++]));
    }
    sc_dim d = {.kind = kind < 0 ? SC_DIM_RING : (sc_dim_kind)kind,
                .oversub = 1,
                .rails = 1};
    SC_TRY(parse_numbers(p, &d));
    if (d.kind == SC_DIM_CUBE && size[0] != 8)
        return sc_error(p->err, SC_EINPUT, SC_C_RANGE, pos_at(p, start),
                        "write cube8", "a cube mesh has 8 devices");
    for (uint32_t i = 0; i < n; i++) {
        d.size = size[i];
        SC_TRY(hw_add_dim(p->hw, &d, pos_at(p, start), p->err));
        p->dim_at[p->hw->n_dims - 1] = start;
        p->has_bw[p->hw->n_dims - 1] = d.bw > 0;
    }
    return SC_OK;
}

static sc_status parse_dims(parser *p)
{
    for (;;) {
        skip_blanks(p);
        SC_TRY(parse_dim(p));
        skip_blanks(p);
        char c = p->text[p->at];
        if (c == '\0' || c == ';') return SC_OK;
        if (c != 'x' || !is_blank(p->text[p->at + 1]))
            return sc_error(p->err, SC_EINPUT, SC_C_SYNTAX, pos_at(p, p->at),
                            "write \" x \" between dimensions",
                            "unexpected \"%.20s\"", p->text + p->at);
        p->at++;
    }
}

static sc_status unknown_option(parser *p, const char *key, size_t start)
{
    const char *names[40];
    char hint[120];
    size_t n = 0;
    for (; p->keys[n].name != NULL; n++) names[n] = p->keys[n].name;
    names[n] = NULL;
    const char *near = sc_nearest(key, names);
    if (near != NULL) snprintf(hint, sizeof hint, "did you mean %s?", near);
    return sc_error(p->err, SC_EINPUT, SC_C_UNKNOWN_KEY, pos_at(p, start),
                    near == NULL ? "write device=, nics=, nic_bw=, rails=, ..."
                                 : hint,
                    "unknown key \"%.40s\"", key);
}

static sc_status parse_option(parser *p, hw_spec *s, sc_given *given)
{
    size_t start = p->at, value;
    const char *key, *text;
    while (is_letter(p->text[p->at])) p->at++;
    SC_TRY(take(p, start, p->at, &key));
    const sc_key *row = p->keys;
    while (row->name != NULL && strcmp(row->name, key) != 0) row++;
    if (row->name == NULL) return unknown_option(p, key, start);
    skip_blanks(p);
    if (p->text[p->at] != '=')
        return sc_error(p->err, SC_EINPUT, SC_C_SYNTAX, pos_at(p, p->at),
                        "write key=value", "%s without a value", key);
    if (sc_given_has(given, p->keys, key))
        return sc_error(p->err, SC_EINPUT, SC_C_DUPLICATE, pos_at(p, start),
                        NULL, "%s is given twice", key);
    p->at++;
    skip_blanks(p);
    value = p->at;
    p->at += strcspn(p->text + p->at, ";");
    size_t end = p->at;
    while (end > value && is_blank(p->text[end - 1])) end--;
    SC_TRY(take(p, value, end, &text));
    sc_given_set(given, p->keys, key);
    if (strcmp(key, "device") == 0) {
        const sc_device *d;
        SC_TRY(hw_device_find(text, pos_at(p, value), p->a, &d, p->err));
        if (p->hw != NULL) p->hw->device = d;
    }
    return sc_schema_set(row, text, pos_at(p, value), s, p->a, p->err);
}

static sc_status parse_options(parser *p, hw_spec *s, sc_given *given)
{
    while (p->text[p->at] == ';') {
        p->at++;
        skip_blanks(p);
        if (p->text[p->at] == '\0') break; /* a ';' at the end */
        SC_TRY(parse_option(p, s, given));
    }
    return SC_OK;
}

sc_status hw_line_options(const char *text, size_t at, sc_pos pos, hw_spec *s,
                          sc_given *given, sc_arena *a, sc_err *err)
{
    parser p = {.text = text,
                .at = at,
                .pos = pos,
                .a = a,
                .err = err,
                .keys = sc_hw_name_keys};
    return parse_options(&p, s, given);
}

/* Makes the last dimension the network between nodes. */
static sc_status make_net(parser *p, hw_spec *s, const sc_given *given)
{
    sc_hw *hw = p->hw;
    uint32_t last = hw->n_dims - 1;
    sc_dim *d = &hw->dim[last], net;
    uint32_t node_size = hw->n_devices / d->size;
    sc_pos pos = pos_at(p, p->dim_at[last]);
    if (d->kind != SC_DIM_SWITCH)
        return sc_error(p->err, SC_EINPUT, SC_C_UNSUPPORTED, pos,
                        "make the last dimension a switch, or give nics=0",
                        "the network between nodes is not a switch");
    s->pos = pos;
    if (s->nics < 0) {
        if (node_size > 4096)
            return sc_error(p->err, SC_EINPUT, SC_C_TOO_BIG, pos,
                            "give nics=N, at most 4096, or nics=0",
                            "a node of %u devices, each with its nic",
                            node_size);
        s->nics = node_size;
        if (!sc_given_has(given, hw_line_keys, "rails")) s->rails = node_size;
    }
    if (s->nic_bw == 0) s->nic_bw = d->bw * node_size / (double)s->nics;
    SC_TRY(hw_net_dim(s, node_size, d->size, d->latency_s, &net, p->err));
    if (net.bw < 1)
        return sc_error(p->err, SC_EINPUT, SC_C_RANGE, pos,
                        "write for example nic_bw=200Gb/s",
                        "the adapters of a node leave each of its devices less "
                        "than 1 B/s");
    if (p->has_bw[last] && fabs(net.bw - d->bw) > 1e-6 * d->bw)
        return sc_error(p->err, SC_EINPUT, SC_C_CONFLICT, pos,
                        "the rate of a device is nics * nic_bw / its node's "
                        "devices",
                        "bandwidth and nic_bw contradict each other");
    net.multicast = d->multicast;
    *d = net;
    return SC_OK;
}

static sc_status check_bandwidths(const parser *p, bool net, double nic_bw)
{
    for (uint32_t i = 0; i < p->hw->n_dims; i++) {
        bool by_nic = net && nic_bw > 0 && i + 1 == p->hw->n_dims;
        if (p->has_bw[i] || by_nic) continue;
        return sc_error(p->err, SC_EINPUT, SC_C_MISSING,
                        pos_at(p, p->dim_at[i]),
                        "write for example ring4@300GB/s,50ns",
                        "a dimension has no bandwidth");
    }
    return SC_OK;
}

/* Replaces the rate of the adapters that the line gives. */
static sc_status change_nics(parser *p, const hw_adapters *nics, bool net,
                             hw_spec *s)
{
    uint32_t last = p->hw->n_dims - 1;
    if (nics == NULL || nics->bw <= 0) return SC_OK;
    if (!net)
        return sc_error(
            p->err, SC_EINPUT, SC_C_CONFLICT, nics->at,
            "the last dimension is no switch between nodes",
            "a rate is given for adapters that the machine does not have");
    s->nic_bw = nics->bw;
    p->has_bw[last] = false;
    p->hw->dim[last].bw = 0;
    return SC_OK;
}

sc_status hw_build_line(const char *text, sc_pos pos, const hw_adapters *nics,
                        sc_arena *a, const sc_hw **out, sc_err *err)
{
    parser p = {
        .text = text, .pos = pos, .a = a, .err = err, .keys = hw_line_keys};
    sc_given given = {{0, 0, 0, 0}};
    hw_spec s;
    if (strlen(text) > MAX_LINE)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, pos,
                        "write a cluster file", "a line of more than %d bytes",
                        MAX_LINE);
    p.hw = SC_NEW(a, sc_hw);
    if (p.hw == NULL || (p.hw->name = sc_strdup(a, text)) == NULL)
        return sc_error_nomem(err);
    p.hw->n_devices = 1;
    SC_TRY(hw_spec_init(&s, pos, a, err));
    SC_TRY(parse_dims(&p));
    SC_TRY(parse_options(&p, &s, &given));
    if (p.hw->device == NULL) {
        p.hw->device_assumed = true;
        SC_TRY(hw_device_find(DEFAULT_DEVICE, pos, a, &p.hw->device, err));
    }
    uint32_t last = p.hw->n_dims - 1;
    bool net = s.nics > 0 || (s.nics < 0 && last > 0 &&
                              p.hw->dim[last].kind == SC_DIM_SWITCH);
    SC_TRY(change_nics(&p, nics, net, &s));
    SC_TRY(check_bandwidths(&p, net, s.nic_bw));
    if (net) SC_TRY(make_net(&p, &s, &given));
    SC_TRY(hw_finish(p.hw, &s, net, err));
    SC_TRY(hw_library(&s, p.hw, a, err));
    SC_TRY(hw_network_power(p.hw, a, err));
    *out = p.hw;
    return SC_OK;
}

/* ---- printing ---- */

typedef struct printer {
    char *buf;
    size_t size, len;
} printer;

static void put(printer *o, const char *text)
{
    for (; *text != '\0'; text++, o->len++)
        if (o->len + 1 < o->size) o->buf[o->len] = *text;
}

static void put_unit(printer *o, double v, sc_unit unit)
{
    char text[64];
    sc_unit_print(v, unit, text, sizeof text);
    put(o, text);
}

/* A count that is not 0. */
static void put_count(printer *o, const char *key, uint32_t n)
{
    char text[32];
    snprintf(text, sizeof text, "; %s=%u", key, n);
    if (n > 0) put(o, text);
}

static void put_dim(printer *o, const sc_dim *d)
{
    char text[32];
    snprintf(text, sizeof text, "%s%u@", sc_dim_kind_names[d->kind], d->size);
    put(o, text);
    put_unit(o, d->bw, SC_U_RATE);
    if (d->latency_s > 0) {
        put(o, ",");
        put_unit(o, d->latency_s, SC_U_TIME);
    }
    if (d->multicast) put(o, ",multicast");
}

static void put_net(printer *o, const sc_dim *d)
{
    put_count(o, "nics", d->ports);
    put(o, "; nic_bw=");
    put_unit(o, d->port_bw, SC_U_RATE);
    put_count(o, "rails", d->rails);
    put_count(o, "leaf", d->leaf);
    put_count(o, "group", d->group);
    put_count(o, "pod", d->pod);
    if (d->network != SC_NETWORK_UNKNOWN) {
        put(o, "; network=");
        put(o, sc_net_kind_names[d->network]);
    }
    if (d->oversub > 1) {
        put(o, "; oversubscription=");
        put_unit(o, d->oversub, SC_U_NONE);
    }
    if (d->pod > 0 && d->core_oversub > 1) {
        put(o, "; core_oversubscription=");
        put_unit(o, d->core_oversub, SC_U_NONE);
    }
}

static void put_host(printer *o, const sc_hw *hw)
{
    put(o, "; device=");
    put(o, hw->device->name);
    if (hw->host_size != hw->node_size) {
        char text[32];
        snprintf(text, sizeof text, "; host=%u", hw->host_size);
        put(o, text);
    }
    if (hw->cpu_vendor[0] != '\0') {
        put(o, "; cpu=");
        put(o, hw->cpu_vendor);
    }
    if (hw->node_power_w > 0) {
        put(o, "; node_power=");
        put_unit(o, hw->node_power_w, SC_U_WATT);
    }
    if (hw->pue > 0) {
        put(o, "; pue=");
        put_unit(o, hw->pue, SC_U_NONE);
    }
    if (hw->price > 0) {
        put(o, "; price=");
        put_unit(o, hw->price, SC_U_PRICE);
    }
}

size_t sc_hw_print(const sc_hw *hw, char *buf, size_t size)
{
    printer o = {buf, size, 0};
    for (uint32_t i = 0; i < hw->n_dims; i++) {
        if (i > 0) put(&o, " x ");
        put_dim(&o, &hw->dim[i]);
    }
    const sc_dim *last = &hw->dim[hw->n_dims - 1];
    if (last->ports > 0)
        put_net(&o, last);
    else if (hw->n_dims > 1 && last->kind == SC_DIM_SWITCH)
        put(&o, "; nics=0");
    put_host(&o, hw);
    if (size > 0) buf[o.len < size ? o.len : size - 1] = '\0';
    return o.len;
}
