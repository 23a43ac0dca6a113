/* SPDX-License-Identifier: Apache-2.0 */
/* search_machines.c - the axes of machines that `stepcast search` is given. */
#include "cli/search.h"

#include <string.h>

sc_status search_machines_add_axis(cli *c, const sc_machine_axis *axis,
                                   sc_pos pos, search_machines *x)
{
    if (search_machines_have(x, axis->name))
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

static const sc_machine_axis *axis_of(const search_machines *x,
                                      const char *name)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (strcmp(x->of[i].name, name) == 0) return &x->of[i];
    return NULL;
}

bool search_machines_have(const search_machines *x, const char *name)
{
    return axis_of(x, name) != NULL;
}

/* `--machine cluster=SPEC`, each with one machine. */
static sc_status read_clusters(cli *c, const search_opts *o, search_machines *x)
{
    static const char name[] = SC_MACHINE_AXIS_CLUSTER "=";
    sc_node all = {.kind = SC_N_SEQ}, **next = &all.child;
    for (const char *const *w = o->machine; w && *w; w++) {
        if (strncmp(*w, name, sizeof name - 1) != 0) continue;
        sc_node *n = SC_NEW(c->arena, sc_node);
        if (!n) return sc_error_nomem(c->err);
        *n = sc_search_word(*w + sizeof name - 1,
                            sc_pos_option(c->arena, "--machine", *w));
        if (all.n++ == 0) all.pos = n->pos;
        *next = n;
        next = &n->next;
    }
    return all.n ? search_machines_add(c, SC_MACHINE_AXIS_CLUSTER, &all, x)
                 : SC_OK;
}

/* The first of several clusters is the machine of the job. */
static sc_status take_cluster(cli *c, const search_machines *x, sc_job *job)
{
    const sc_machine_axis *all = axis_of(x, SC_MACHINE_AXIS_CLUSTER);
    if (!all) return SC_OK;
    if (axis_of(x, "node"))
        return sc_error(c->err, SC_EUSAGE, SC_C_CONFLICT,
                        sc_pos_file("--machine"), "leave one of them out",
                        "both clusters and nodes of the catalogue are axes");
    job->cluster = all->value[0];
    return SC_OK;
}

sc_status search_machines_read(cli *c, const search_opts *o,
                               const sc_search_config *file, search_machines *x,
                               sc_job *job)
{
    const sc_node *keys = file->machine;
    SC_TRY(read_clusters(c, o, x));
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
        if (strcmp(name, SC_MACHINE_AXIS_CLUSTER) == 0) continue;
        SC_TRY(search_machines_add(c, name, &value, x));
    }
    /* the command line overrides the file */
    for (const sc_node *n = keys ? keys->child : NULL; n; n = n->next)
        if (!search_machines_have(x, n->key))
            SC_TRY(search_machines_add(c, n->key, n, x));
    if (file->clusters && !job->cluster &&
        !search_machines_have(x, SC_MACHINE_AXIS_CLUSTER))
        SC_TRY(
            search_machines_add(c, SC_MACHINE_AXIS_CLUSTER, file->clusters, x));
    SC_TRY(take_cluster(c, x, job));
    if (x->n == 0 || !o->nodes) return SC_OK;
    const sc_node nodes =
        sc_search_word(o->nodes, sc_pos_option(c->arena, "--nodes", o->nodes));
    return search_machines_add(c, "nodes", &nodes, x);
}
