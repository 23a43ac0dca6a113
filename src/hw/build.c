/* SPDX-License-Identifier: Apache-2.0 */
/* build.c - builds an sc_hw from catalogue names, cluster files and numbers. */
#include "hw/build.h"

#include "hw/device.h"
#include "hw/fabric.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const sc_net_kind_names[] = {"unknown", "infiniband", "roce",
                                         "efa",     "tcp",        NULL};

const char *const sc_dim_kind_names[] = {"switch", "fc",   "ring", "mesh",
                                         "tree",   "cube", NULL};

sc_status hw_add_dim(sc_hw *hw, const sc_dim *dim, sc_pos pos, sc_err *err)
{
    if (hw->n_dims == SC_HW_DIMS)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, pos, NULL,
                        "there are more than %d dimensions", SC_HW_DIMS);
    uint64_t n = (uint64_t)hw->n_devices * dim->size;
    if (n > HW_MAX_DEVICES || n > UINT32_MAX)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, pos,
                        "a machine has at most 2147483648 devices",
                        "%llu devices are too many", (unsigned long long)n);
    hw->n_devices = (uint32_t)n;
    hw->dim[hw->n_dims++] = *dim;
    return SC_OK;
}

static sc_status check_pod(const hw_spec *s, sc_err *err)
{
    sc_pos pos = hw_spec_pos(s, "pod");
    if (s->pod == 0) return SC_OK;
    if (s->group > 0)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, pos,
                        "give group for a dragonfly, pod for a third tier",
                        "a dragonfly has no pods");
    if (s->leaf > 0 && s->pod % s->leaf == 0) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_DIVIDE, pos,
                    "give leaf, the nodes under one leaf switch; a pod must "
                    "have a whole number of leaves",
                    "leaves of %lld nodes don't divide a pod of %lld",
                    (long long)s->leaf, (long long)s->pod);
}

sc_status hw_net_dim(const hw_spec *s, uint32_t node_size, uint32_t nodes,
                     double latency, sc_dim *out, sc_err *err)
{
    if (s->nics < 1)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, hw_spec_pos(s, "nics"),
                        "give nics and nic_bw",
                        "a machine of several nodes needs nics");
    if (s->nic_bw <= 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, hw_spec_pos(s, "nics"),
                        "write nic_bw, for example 200Gb/s",
                        "nics need nic_bw");
    if (s->nics % s->rails != 0)
        return sc_error(err, SC_EINPUT, SC_C_DIVIDE, hw_spec_pos(s, "rails"),
                        "give rails: a number that divides nics",
                        "%lld rails don't divide %lld nics",
                        (long long)s->rails, (long long)s->nics);
    if (s->group > 0 && s->group % (s->leaf > 0 ? s->leaf : s->group) != 0)
        return sc_error(err, SC_EINPUT, SC_C_DIVIDE, hw_spec_pos(s, "group"),
                        "a dragonfly group must be a whole number of leaves",
                        "leaves of %lld nodes don't divide a group of %lld",
                        (long long)s->leaf, (long long)s->group);
    SC_TRY(check_pod(s, err));
    *out = (sc_dim){.kind = SC_DIM_SWITCH,
                    .size = nodes,
                    .bw = (double)s->nics * s->nic_bw / node_size,
                    .latency_s = latency,
                    .ports = (uint32_t)s->nics,
                    .port_bw = s->nic_bw,
                    .oversub = s->oversubscription,
                    .leaf = (uint32_t)(s->leaf > 0 ? s->leaf : s->group),
                    .group = (uint32_t)s->group,
                    .pod = (uint32_t)s->pod,
                    .core_oversub = s->core_oversubscription,
                    .rails = (uint32_t)s->rails,
                    .network = (sc_net_kind)s->network};
    return SC_OK;
}

static uint64_t hash_double(double v, uint64_t h)
{
    return sc_hash(&v, sizeof v, h);
}

static uint64_t hash_uint(uint64_t v, uint64_t h)
{
    return sc_hash(&v, sizeof v, h);
}

static uint64_t hash_device(const sc_device *d, uint64_t h)
{
    h = sc_hash(d->name, strlen(d->name), h);
    h = sc_hash(d->arch, strlen(d->arch), h);
    for (int p = 0; p < SC_N_PRECISIONS; p++) h = hash_double(d->peak[p], h);
    h = hash_double(d->vector_flops, h);
    h = hash_uint(d->mem_bytes, h);
    h = hash_double(d->mem_bw, h);
    h = hash_uint(d->l2_bytes, h);
    h = hash_uint(d->units, h);
    h = hash_double(d->clock_hz, h);
    h = hash_uint(d->links, h);
    h = hash_double(d->link_bw, h);
    h = hash_double(d->host_bw, h);
    return hash_double(d->power_w, h);
}

static uint64_t hash_dim(const sc_dim *d, uint64_t h)
{
    h = hash_uint((uint64_t)d->kind, h);
    h = hash_uint(d->size, h);
    h = hash_double(d->bw, h);
    h = hash_double(d->latency_s, h);
    h = hash_uint(d->ports, h);
    h = hash_double(d->port_bw, h);
    h = hash_double(d->oversub, h);
    h = hash_uint(d->leaf, h);
    h = hash_uint(d->rails, h);
    if (d->group > 0) h = hash_uint(d->group, h);
    if (d->pod > 0) h = hash_double(d->core_oversub, hash_uint(d->pod, h));
    if (d->network != SC_NETWORK_UNKNOWN)
        h = hash_uint((uint64_t)d->network, h);
    return hash_uint(d->multicast, h);
}

/* The devices of a pool use it at the same time, because they do the same, so
 * each has an equal part of its bandwidth (the max-min share of equal flows). */
static double pool_share(const hw_spec *s, uint32_t pool)
{
    if (s->expanded_pool_bw <= 0) return s->expanded_bw;
    return fmin(s->expanded_bw, s->expanded_pool_bw / pool);
}

static sc_status expanded(const hw_spec *s, sc_hw *hw, sc_err *err)
{
    uint64_t given = (uint64_t)s->expanded_pool;
    uint32_t pool = given < hw->n_devices ? (uint32_t)given : hw->n_devices;
    if (s->expanded_memory <= 0) return SC_OK;
    if (s->expanded_bw <= 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING,
                        hw_spec_pos(s, "expanded_memory"),
                        "write expanded_bw, for example 60GB/s",
                        "expanded_memory needs expanded_bw");
    hw->expanded = (sc_expanded){.bytes = s->expanded_memory,
                                 .bw = pool_share(s, pool),
                                 .latency_s = s->expanded_latency,
                                 .pool = pool};
    return SC_OK;
}

static uint64_t hash_expanded(const sc_expanded *x, uint64_t h)
{
    if (x->bytes <= 0) return h;
    h = hash_double(x->bw, hash_double(x->bytes, h));
    return hash_uint(x->pool, hash_double(x->latency_s, h));
}

sc_status hw_finish(sc_hw *hw, const hw_spec *s, bool net, sc_err *err)
{
    hw->n_nodes = net ? hw->dim[hw->n_dims - 1].size : 1;
    hw->node_size = hw->n_devices / hw->n_nodes;
    hw->host_size = s->host > 0 && s->host < hw->node_size ? (uint32_t)s->host
                                                           : hw->node_size;
    hw->cpu_vendor = s->cpu == 0 ? "" : hw_cpus[s->cpu];
    hw->node_assumed = s->node_assumed;
    hw->node_power_w = s->node_power;
    hw->pue = s->pue;
    hw->price = s->price;
    hw->n_values = s->values.n;
    hw->values = s->values.v;
    uint64_t h = hash_device(hw->device, 1);
    for (uint32_t d = 0; d < hw->n_dims; d++) h = hash_dim(&hw->dim[d], h);
    h = hash_uint(hw->n_nodes, h);
    for (uint32_t g = 0; g < hw->n_groups; g++) {
        h = hash_device(hw->groups[g].device, h);
        h = hash_uint(hw->groups[g].n, h);
        h = hash_uint(hw->groups[g].ports, h);
        h = hash_double(hw->groups[g].port_bw, h);
    }
    if (hw->host_size != hw->node_size) h = hash_uint(hw->host_size, h);
    h = sc_hash(hw->cpu_vendor, strlen(hw->cpu_vendor), h);
    SC_TRY(expanded(s, hw, err));
    h = hash_expanded(&hw->expanded, h);
    if (hw->price > 0) h = hash_double(hw->price, h);
    hw->hash = hash_double(hw->pue, hash_double(hw->node_power_w, h));
    return SC_OK;
}

sc_status hw_spec_device(const hw_spec *s, sc_arena *a, const sc_device **out,
                         sc_err *err)
{
    *out = hw_own_device(s->own, s->device);
    if (*out != NULL) return SC_OK;
    return hw_device_find(s->device, hw_spec_pos(s, "device"), a, out, err);
}

/* Replaces the rate of the machine's network adapters. */
static sc_status set_nics(const hw_adapters *nics, hw_spec *s, sc_err *err)
{
    if (nics == NULL || nics->bw <= 0) return SC_OK;
    if (s->groups != NULL)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, nics->at,
                        "write nic_bw into the groups of the cluster file",
                        "one rate is given for nodes with different adapters");
    s->nic_bw = nics->bw;
    return SC_OK;
}

sc_status hw_build_spec(const char *name, hw_spec *s, sc_arena *a,
                        const sc_hw **out, sc_err *err)
{
    if (s->groups != NULL) return hw_build_groups(name, s, a, out, err);
    sc_hw *hw = SC_NEW(a, sc_hw);
    if (hw == NULL || (hw->name = sc_strdup(a, name)) == NULL)
        return sc_error_nomem(err);
    if (s->device == NULL)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, s->pos,
                        "name a device, or a node of the catalogue",
                        "missing key \"device\"");
    SC_TRY(hw_spec_device(s, a, &hw->device, err));
    hw->n_devices = 1;
    SC_TRY(hw_fabric_dims(s, hw, err));
    bool net = s->nodes > 1;
    if (net) {
        sc_dim d = {.size = 1};
        SC_TRY(hw_net_dim(s, hw->n_devices, (uint32_t)s->nodes, s->nic_latency,
                          &d, err));
        SC_TRY(hw_add_dim(hw, &d, hw_spec_pos(s, "nodes"), err));
    }
    SC_TRY(hw_finish(hw, s, net, err));
    SC_TRY(hw_library(s, hw, a, err));
    SC_TRY(hw_network_power(hw, a, err));
    *out = hw;
    return SC_OK;
}

static sc_status spec_text(const char *text, size_t len, const char *file,
                           const hw_adapters *nics, sc_arena *a, hw_spec *s,
                           sc_err *err)
{
    SC_TRY(hw_spec_init(s, sc_pos_file(file), a, err));
    SC_TRY(hw_cluster_read(text, len, file, s, a, err));
    return set_nics(nics, s, err);
}

sc_status hw_build_text(const char *text, size_t len, const char *file,
                        const hw_adapters *nics, sc_arena *a, const sc_hw **out,
                        sc_err *err)
{
    hw_spec s;
    SC_TRY(spec_text(text, len, file, nics, a, &s, err));
    return hw_build_spec(file, &s, a, out, err);
}

/* The usual node of a device, with that device in it. */
static sc_status device_node(const sc_device *d, hw_spec *s, sc_arena *a,
                             sc_err *err)
{
    sc_pos pos = s->pos;
    hw_name found;
    SC_TRY(hw_name_find(d->node, 1u << HW_NODE, pos, a, &found, err));
    SC_TRY(hw_node_read(found.file, s, a, err));
    s->device = d->name;
    s->pos = pos;
    s->map = NULL;
    if (s->devices_per_node > 0) return SC_OK;
    sc_error(err, SC_EBUG, SC_C_BUG, pos, NULL,
             "node %.80s of the catalogue is incomplete", d->node);
    return SC_EBUG;
}

const char *sc_hw_assumed(const sc_hw *hw, sc_arena *a)
{
    if (hw->node_assumed == NULL || hw->n_devices == 1) return NULL;
    const char *nodes =
        hw->n_nodes == 1
            ? sc_sprintf(a, "%u devices of one %s", (unsigned)hw->n_devices,
                         hw->node_assumed)
            : sc_sprintf(a, "%u nodes of %u devices, like %s",
                         (unsigned)hw->n_nodes, (unsigned)hw->node_size,
                         hw->node_assumed);
    if (nodes == NULL) return NULL;
    return sc_sprintf(a,
                      "%s: usual for %s; to choose another system, name it "
                      "(stepcast list clusters) or describe it in a cluster "
                      "file",
                      nodes, hw->device->name);
}

/* `n` devices of one kind: a part of one node, or several whole nodes. */
static sc_status device_count(const char *spec, uint64_t n, hw_spec *s,
                              sc_arena *a, sc_err *err)
{
    uint64_t per_node = (uint64_t)s->devices_per_node;
    s->nodes = 1;
    if (per_node == 0 || n <= per_node) return hw_resize(s, n, a, err);
    uint64_t part = n % per_node == 0 ? per_node : hw_domain(s, n);
    if (part == 0) {
        char hint[120];
        snprintf(hint, sizeof hint, "%.60s usually sits in nodes of %llu",
                 s->device, (unsigned long long)per_node);
        return sc_error(err, SC_EINPUT, SC_C_DIVIDE, s->pos, hint,
                        "%.80s is not a whole number of nodes", spec);
    }
    s->nodes = (int64_t)(n / part);
    return hw_resize(s, part, a, err);
}

/* Reads the number after the last ':' and cuts it off. */
static sc_status take_count(const char *spec, char *name, sc_pos pos,
                            uint64_t *out, sc_err *err)
{
    char *colon = strrchr(name, ':');
    *out = 1;
    if (colon == NULL) return SC_OK;
    *colon = '\0';
    if (pos.line == 0) pos.line = 1;
    pos.col += (uint32_t)(colon + 1 - name) + (pos.col == 0);
    uint64_t n = 0;
    const char *p = colon + 1;
    for (; *p >= '0' && *p <= '9' && n <= HW_MAX_DEVICES; p++)
        n = 10 * n + (uint64_t)(*p - '0');
    if (n > HW_MAX_DEVICES)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, pos,
                        "a machine has at most 2147483648 devices",
                        "%.80s has too many nodes", spec);
    if (n == 0 || *p != '\0')
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos,
                        "write NAME:N, for example dgx-h100:16",
                        "%.80s does not give a number of nodes", spec);
    *out = n;
    return SC_OK;
}

/* `n` nodes or devices as the named file describes them. */
static sc_status spec_of_name(const char *spec, uint64_t n,
                              const hw_name *found, sc_pos pos, hw_spec *s,
                              sc_arena *a, sc_err *err)
{
    SC_TRY(hw_spec_init(s, pos, a, err));
    if (found->kind == HW_NODE) {
        SC_TRY(hw_node_read(found->file, s, a, err));
        s->nodes = (int64_t)n;
        s->pos = pos;
        if (s->unit != HW_UNIT_CHIP) return SC_OK;
        return device_count(spec, n, s, a, err);
    }
    const sc_device *d;
    SC_TRY(hw_device_read(found->file, a, &d, err));
    SC_TRY(device_node(d, s, a, err));
    SC_TRY(device_count(spec, n, s, a, err));
    s->node_assumed = d->node;
    return SC_OK;
}

/* What a name stands for: a node, a device, or a device with factors, which is
 * set. */
static sc_status find(const char *name, sc_pos pos, hw_name *found,
                      const sc_device **scaled, sc_arena *a, sc_err *err)
{
    size_t base = hw_scaled_base(name);
    *scaled = NULL;
    if (base == 0)
        return hw_name_find(name, 1u << HW_NODE | 1u << HW_DEVICE, pos, a,
                            found, err);
    const char *of = sc_strndup(a, name, base);
    if (of == NULL) return sc_error_nomem(err);
    SC_TRY(hw_name_find(of, 1u << HW_DEVICE, pos, a, found, err));
    return hw_device_scaled(name, pos, a, scaled, err);
}

/* The options behind a name. A node of another size has adapters and rails in
 * proportion, unless they are given. */
static sc_status name_options(const char *spec, size_t at, sc_pos pos,
                              hw_spec *s, sc_arena *a, sc_err *err)
{
    sc_given given = {{0, 0, 0, 0}};
    hw_spec first = *s, sized = *s;
    SC_TRY(hw_line_options(spec, at, pos, s, &given, a, err));
    if (sc_given_has(&given, sc_hw_name_keys, "devices_per_node")) {
        SC_TRY(hw_resize(&sized, (uint64_t)s->devices_per_node, a, err));
        s->shape = sized.shape;
        if (!sc_given_has(&given, sc_hw_name_keys, "nics"))
            s->nics = sized.nics;
        if (!sc_given_has(&given, sc_hw_name_keys, "rails") &&
            s->nics == sized.nics)
            s->rails = sized.rails;
        if (s->host == 0 && s->devices_per_node > first.devices_per_node)
            s->host = first.devices_per_node;
    }
    hw_own_rails(s, sc_given_has(&given, sc_hw_name_keys, "rails"));
    return SC_OK;
}

static sc_status spec_named(const char *spec, sc_pos pos,
                            const hw_adapters *nics, sc_arena *a, hw_spec *s,
                            sc_err *err)
{
    uint64_t n;
    hw_name found;
    const sc_device *scaled;
    size_t len = strcspn(spec, ";"), end = len;
    while (end > 0 && spec[end - 1] == ' ') end--;
    char *name = sc_strndup(a, spec, end);
    if (name == NULL) return sc_error_nomem(err);
    SC_TRY(take_count(spec, name, pos, &n, err));
    SC_TRY(find(name, pos, &found, &scaled, a, err));
    SC_TRY(spec_of_name(spec, n, &found, pos, s, a, err));
    if (scaled) s->device = scaled->name;
    s->pos = pos; /* later errors concern what the user wrote */
    s->map = NULL;
    if (spec[len] == ';') SC_TRY(name_options(spec, len, pos, s, a, err));
    return set_nics(nics, s, err);
}

/* A file in which a tool describes the wiring of a node. */
static bool describes_node(const char *spec)
{
    return hw_ends_with(spec, ".xml") || hw_ends_with(spec, ".txt");
}

bool sc_hw_is_file(const char *spec)
{
    return hw_is_document(spec) || describes_node(spec);
}

sc_status hw_spec_find(const char *spec, sc_pos pos, const hw_adapters *nics,
                       sc_arena *a, hw_spec *out, sc_err *err)
{
    char *text;
    size_t len;
    if (!hw_is_document(spec)) return spec_named(spec, pos, nics, a, out, err);
    SC_TRY(sc_file_read(spec, (size_t)1 << 20, a, &text, &len, err));
    return spec_text(text, len, spec, nics, a, out, err);
}

sc_status sc_hw_build_nics(const char *spec, sc_pos pos, double nic_bw,
                           sc_pos at, sc_arena *a, const sc_hw **out,
                           sc_err *err)
{
    hw_spec s;
    const hw_adapters nics = {nic_bw, at};
    if (hw_is_line(spec)) return hw_build_line(spec, pos, &nics, a, out, err);
    if (describes_node(spec))
        return sc_error(
            err, SC_EINPUT, SC_C_TYPE, pos,
            "write a cluster file: node: dgx-a100-80g, nodes: 2, "
            "topology: FILE",
            "the file describes the wiring of one node, not a cluster");
    SC_TRY(hw_spec_find(spec, pos, &nics, a, &s, err));
    return hw_build_spec(spec, &s, a, out, err);
}

sc_status sc_hw_build(const char *spec, sc_pos pos, sc_arena *a,
                      const sc_hw **out, sc_err *err)
{
    return sc_hw_build_nics(spec, pos, 0, pos, a, out, err);
}

/* Sets the adapters of a node to `total` bytes/s: fewer of the usual adapters
 * if that is possible, otherwise equally many with another rate. */
static void set_adapters(hw_spec *s, double total)
{
    double n = floor(total / s->nic_bw + 0.5);
    bool each = s->rails == s->nics; /* each adapter has a rail of its own */
    if (n >= 1 && n < (double)s->nics && (each || s->rails == 1) &&
        fabs(total / (n * s->nic_bw) - 1) < 1e-6) {
        s->nics = (int64_t)n;
        if (each) s->rails = s->nics;
    }
    s->nic_bw = total / (double)s->nics;
}

/* It has nine parameters because a table's row is flat.  NOLINTNEXTLINE */
sc_status sc_hw_from_numbers(const char *device, uint32_t nodes,
                             uint32_t per_node, double intra_bw,
                             double inter_bw, sc_pos pos, sc_arena *a,
                             const sc_hw **out, sc_err *err)
{
    const sc_device *d;
    hw_spec s;
    SC_TRY(hw_device_find(device, pos, a, &d, err));
    if (nodes == 0 || per_node == 0 || per_node > 65536)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                        "%u nodes of %u devices", nodes, per_node);
    if (!(intra_bw >= 0 && intra_bw < 1e17 && inter_bw >= 0 && inter_bw < 1e15))
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                        "bandwidths of %g and %g bytes/s are not possible",
                        intra_bw, inter_bw);
    SC_TRY(hw_spec_init(&s, pos, a, err));
    SC_TRY(device_node(d, &s, a, err));
    uint64_t all = (uint64_t)nodes * per_node, part = per_node;
    if (per_node == s.host && hw_domain(&s, all) > 0) part = hw_domain(&s, all);
    s.nodes = (int64_t)(all / part);
    /* The row states nodes that the usual one of the device cannot be. */
    if (s.host > 0 && part > (uint64_t)s.host)
        s.host = (int64_t)sc_gcd((uint64_t)s.host, part);
    if (s.fabric == HW_NONE && part > 1)
        s.fabric = intra_bw > 0 ? HW_NVSWITCH : HW_PCIE_TREE;
    SC_TRY(hw_resize(&s, part, a, err));
    if (intra_bw > 0) s.bandwidth = intra_bw;
    if (inter_bw > 0) {
        set_adapters(&s, inter_bw * (double)part);
        s.network = SC_NETWORK_UNKNOWN; /* the usual node's, not the row's */
    }
    char *name = sc_sprintf(a, "%ux%u %s", nodes, per_node, d->name);
    if (name == NULL) return sc_error_nomem(err);
    return hw_build_spec(name, &s, a, out, err);
}

sc_status sc_hw_with_network(const sc_hw *hw, sc_net_kind kind, sc_arena *a,
                             const sc_hw **out, sc_err *err)
{
    sc_hw *own = SC_NEW(a, sc_hw);
    if (own == NULL) return sc_error_nomem(err);
    *own = *hw;
    for (uint32_t i = 0; i < own->n_dims; i++)
        if (own->dim[i].ports > 0) own->dim[i].network = kind;
    own->hash = hash_uint((uint64_t)kind, hw->hash);
    *out = own;
    return SC_OK;
}
