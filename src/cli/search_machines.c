/* SPDX-License-Identifier: Apache-2.0 */
/* search_machines.c - the axes of machines that `stepcast search` is given. */
#include "cli/search.h"

#include <string.h>

sc_status search_machines_add_axis(cli *c, const sc_machine_axis *axis,
                                   sc_pos pos, search_machines *x)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (strcmp(x->of[i].name, axis->name) == 0)
            return sc_error(c->err, SC_EUSAGE, SC_C_CONFLICT, pos,
                            "give all values at once",
                            "%s of the machine is an axis twice", axis->name);
    if (x->n == SC_MACHINE_AXES)
        return sc_error(c->err, SC_EUSAGE, SC_C_TOO_BIG, pos, NULL,
                        "there are more than %d axes of machines",
                        SC_MACHINE_AXES);
    x->of[x->n++] = *axis;
    return SC_OK;
}

sc_status search_machines_add(cli *c, const char *name, const sc_node *value,
                              search_machines *x)
{
    sc_machine_axis axis;
    SC_TRY(sc_machine_axis_read(name, value, c->arena, &axis, c->err));
    return search_machines_add_axis(c, &axis, value->pos, x);
}

sc_status search_machines_add_option(cli *c, const sc_search_option *o,
                                     sc_pos pos, search_machines *x)
{
    sc_machine_axis axis;
    SC_TRY(sc_machine_axis_of(o, c->arena, &axis, c->err));
    return search_machines_add_axis(c, &axis, pos, x);
}

bool search_machines_have(const search_machines *x, const char *name)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (strcmp(x->of[i].name, name) == 0) return true;
    return false;
}

sc_status search_machines_read(cli *c, const search_opts *o,
                               const sc_node *file, search_machines *x)
{
    for (const char *const *w = o->machine; w && *w; w++) {
        const char *eq = strchr(*w, '=');
        sc_pos pos = sc_pos_option(c->arena, "--machine", *w);
        if (!eq)
            return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, pos,
                            "for example --machine nic_bw=200Gb/s,400Gb/s",
                            "\"%.60s\" gives no values", *w);
        const char *name = sc_strndup(c->arena, *w, (size_t)(eq - *w));
        const sc_node value = sc_search_word(eq + 1, pos);
        if (!name) return sc_error_nomem(c->err);
        SC_TRY(search_machines_add(c, name, &value, x));
    }
    /* the command line overrides the file */
    for (const sc_node *n = file ? file->child : NULL; n; n = n->next)
        if (!search_machines_have(x, n->key))
            SC_TRY(search_machines_add(c, n->key, n, x));
    if (x->n == 0 || !o->nodes) return SC_OK;
    const sc_node nodes =
        sc_search_word(o->nodes, sc_pos_option(c->arena, "--nodes", o->nodes));
    return search_machines_add(c, "nodes", &nodes, x);
}
