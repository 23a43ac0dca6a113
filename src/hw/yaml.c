/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.c - a machine as a cluster file of its own. */
#include "hw/build.h"

#include <string.h>

/* Keys that say where values come from, and no value. */
static bool is_value(const char *key)
{
    static const char *const others[] = {"name", "title", "sources",
                                         "node", "unit",  "groups"};
    for (size_t i = 0; i < SC_COUNT(others); i++)
        if (strcmp(key, others[i]) == 0) return false;
    return true;
}

static void put(const sc_key *k, const hw_spec *s, sc_text *out)
{
    char text[1024];
    bool quoted = k->type == SC_T_STRING;
    sc_schema_print(k, s, text, sizeof text);
    sc_text_add(out, quoted ? "%s: \"%s\"\n" : "%s: %s\n", k->name, text);
}

static sc_status check(const char *spec, const hw_spec *s, sc_pos pos,
                       sc_err *err)
{
    const char *what = NULL;
    if (s->groups)
        what = "nodes that differ";
    else if (s->own)
        what = "a device of its own";
    else if (s->wiring || s->topology)
        what = "files of wiring or of a node";
    if (!what) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, pos, "copy this file",
                    "%.80s has %s", spec, what);
}

sc_status sc_hw_yaml(const char *spec, sc_pos pos, double nic_bw, sc_arena *a,
                     sc_text *out, sc_err *err)
{
    const hw_adapters nics = {nic_bw, pos};
    hw_spec s, none;
    const sc_hw *want, *got;
    size_t from = out->len;
    if (hw_is_line(spec))
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, pos,
                        "a job file keeps the line: --emit job",
                        "no file has the dimensions of a line");
    SC_TRY(hw_spec_find(spec, pos, &nics, a, &s, err));
    SC_TRY(check(spec, &s, pos, err));
    SC_TRY(hw_spec_init(&none, pos, a, err));
    for (const sc_key *k = hw_cluster_keys; k->name; k++)
        if (is_value(k->name) && !sc_schema_same(k, &s, &none)) put(k, &s, out);
    if (out->failed) return sc_error_nomem(err);
    SC_TRY(sc_hw_build_nics(spec, pos, nic_bw, pos, a, &want, err));
    SC_TRY(hw_build_text(out->buf + from, out->len - from, "cluster.yml", NULL,
                         a, &got, err));
    if (got->hash == want->hash && got->n_devices == want->n_devices)
        return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, pos,
                    "a job file keeps the name: --emit job",
                    "a cluster file can't state %.80s", spec);
}
