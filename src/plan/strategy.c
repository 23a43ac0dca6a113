/* SPDX-License-Identifier: Apache-2.0 */
/* strategy.c - strategies in memory: defaults, axes, places, patterns. */
#include "plan/strategy.h"

#include <math.h>
#include <string.h>

const char *const sc_rule_tensor_names[] = {
    "op", "weight", "bias", "grad", "optim", "out", "out_grad", "in", NULL};
const char *const sc_rc_method_names[] = {"uniform", "block", NULL};
const char *const sc_offload_to_names[] = {"cpu", "nvme", "expanded", NULL};

sc_tier sc_offload_tier(int to)
{
    return to == SC_OFFLOAD_EXPANDED ? SC_TIER_EXPANDED
           : to == SC_OFFLOAD_NVME   ? SC_TIER_NVME
                                     : SC_TIER_CPU;
}

const char *const sc_tier_names[] = {"device", "expanded", "cpu", "nvme", NULL};

_Static_assert(SC_COUNT(sc_rule_tensor_names) == SC_N_RULE_TENSORS + 1,
               "names");

void sc_strategy_init(sc_strategy *s)
{
    *s = (sc_strategy){.tensor_parallel = -1,
                       .zero = -1,
                       .zero_axis = -1,
                       .precision = -1,
                       .context_parallel = -1,
                       .recompute = -1,
                       .rc_method = -1,
                       .data_parallel = true,
                       .schedule = -1,
                       .grad_overlap = -1,
                       .p2p_overlap = -1,
                       .tp_overlap = -1,
                       .gamma = NAN,
                       .offload_activations = -1,
                       .offload_to = -1,
                       .optimizer_tier = -1};
}

int sc_strategy_axis(const sc_strategy *s, sc_axis axis)
{
    for (uint32_t i = 0; i < s->n_axes; i++)
        if (s->axis[i].is == axis) return (int)i;
    return -1;
}

void sc_strategy_add_axis(sc_strategy *s, sc_axis axis, uint32_t size)
{
    sc_assert(s->n_axes < SC_MESH_AXES && axis < SC_N_AX_NAMES);
    s->axis[s->n_axes++] = (sc_mesh_axis){.name = sc_axis_names[axis],
                                          .size = size,
                                          .pos = sc_pos_none(),
                                          .is = axis};
}

sc_axes sc_axes_add(sc_axes list, uint32_t axis)
{
    uint32_t shift = 0;
    while (list >> shift & 15) shift += 4;
    return list | (uint64_t)(axis + 1) << shift;
}

uint32_t sc_axes_mask(sc_axes list)
{
    uint32_t mask = 0;
    for (; list; list >>= 4) mask |= 1u << ((list & 15) - 1);
    return mask;
}

uint64_t sc_strategy_ranks(const sc_strategy *s)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < s->n_axes; i++) n *= s->axis[i].size;
    return n;
}

uint32_t sc_strategy_stride(const sc_strategy *s, int axis)
{
    uint32_t n = 1;
    for (int i = axis + 1; axis >= 0 && i < (int)s->n_axes; i++)
        n *= s->axis[i].size;
    return n;
}

uint32_t sc_strategy_coordinate(const sc_strategy *s, int axis, uint32_t rank)
{
    if (axis < 0) return 0;
    return rank / sc_strategy_stride(s, axis) % s->axis[axis].size;
}

uint64_t sc_strategy_degree(const sc_strategy *s, sc_axis axis)
{
    int i = sc_strategy_axis(s, axis);
    return i < 0 ? 1 : s->axis[i].size;
}

uint32_t sc_strategy_chunks(const sc_strategy *s)
{
    bool interleaved = s->schedule == SC_SCH_INTERLEAVED;
    if (s->virtual_stages > 0) return (uint32_t)s->virtual_stages;
    if (s->n_cuts == 0 || s->schedule > SC_SCH_INTERLEAVED) return 0;
    uint64_t stages = s->n_cuts + (s->cut[0].path != NULL);
    uint64_t per = stages / sc_strategy_degree(s, SC_AX_PP);
    return interleaved && per ? (uint32_t)per : 1;
}

sc_pos sc_strategy_pos(const sc_strategy *s, const char *section,
                       const char *key)
{
    const sc_node *n = s->doc;
    if (n && section) n = sc_node_get(n, section);
    if (n) n = sc_node_get(n, key);
    return n ? n->pos : sc_pos_file(s->file);
}

bool sc_rule_matches(const char *glob, const char *path)
{
    return sc_path_match(glob, strlen(glob), path);
}

size_t sc_rule_specificity(const char *glob)
{
    return sc_path_specificity(glob);
}

sc_axes sc_strategy_axes(const sc_strategy *s, uint32_t mask)
{
    sc_axes list = 0;
    for (uint32_t i = 0; i < s->n_axes; i++)
        if (mask >> s->axis[i].is & 1) list = sc_axes_add(list, i);
    return list;
}

/* Resolves a file name relative to the strategy's folder.  Names without a file
 * extension are names of a catalogue and stay as they are. */
static sc_status resolve(const char *path, const char **name, sc_arena *a,
                         sc_err *err)
{
    static const char *const ends[] = {".yml", ".yaml", ".json", ".xml"};
    const char *slash = strrchr(path, '/');
    bool file = false;
    if (!*name || !slash || **name == '/') return SC_OK;
    for (size_t i = 0; i < SC_COUNT(ends); i++) {
        size_t n = strlen(*name), k = strlen(ends[i]);
        file |= n > k && strcmp(*name + n - k, ends[i]) == 0;
    }
    if (!file) return SC_OK;
    *name = sc_sprintf(a, "%.*s/%s", (int)(slash - path), path, *name);
    return *name ? SC_OK : sc_error_nomem(err);
}

sc_status sc_strategy_load(const char *path, sc_arena *a,
                           const sc_strategy **out, sc_err *err)
{
    char *text = NULL;
    size_t len = 0;
    SC_TRY(sc_file_read(path, SC_DOC_MAX_BYTES, a, &text, &len, err));
    sc_strategy *s = SC_NEW(a, sc_strategy);
    if (!s) return sc_error_nomem(err);
    SC_TRY(sc_strategy_read(text, len, path, a, s, err));
    SC_TRY(resolve(path, &s->model, a, err));
    SC_TRY(resolve(path, &s->cluster, a, err));
    SC_TRY(resolve(path, &s->schedule_file, a, err));
    *out = s;
    return SC_OK;
}

sc_axes sc_strategy_samples(const sc_strategy *s)
{
    return sc_strategy_axes(s, 1u << SC_AX_REP | 1u << SC_AX_DP |
                                   1u << SC_AX_FSDP | 1u << SC_AX_EP);
}

uint64_t sc_strategy_replicas(const sc_strategy *s)
{
    uint32_t over = 0;
    uint64_t n = 1;
    if (s->data_parallel) over = sc_axes_mask(sc_strategy_samples(s));
    for (uint32_t i = 0; i < s->n_rules; i++)
        for (uint32_t k = 0; k < s->rule[i].n_split; k++)
            if (s->rule[i].tensor == SC_RT_OP &&
                strcmp(s->rule[i].split[k].dim, "batch") == 0)
                over |= sc_axes_mask(s->rule[i].split[k].axes);
    for (uint32_t ax = 0; ax < s->n_axes; ax++)
        if (over >> ax & 1) n *= s->axis[ax].size;
    return n;
}
