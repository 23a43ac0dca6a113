/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_matrix.c - turns `nvidia-smi topo -m` into NCCL's graph of a node.
 *
 * The table shows how near two devices are, but not where they are attached.
 * Devices at PIX share a switch, those at PXB a switch above it, and those at
 * PHB or NODE and GPUs of one NUMA affinity share a CPU. NV# hides how near two
 * GPUs are on PCI, which then follows from the adapters between them. Rates
 * come from the machine.
 */
#include "hw/matrix_lex.h"
#include "hw/nccl_server.h"

#include <stdlib.h>
#include <string.h>

enum { SWITCH, TOP, CPU, N_LEVELS };

typedef struct builder {
    hw_matrix m;
    hw_server x;
    sc_arena *arena;
    sc_err *err;
    sc_status status;         /* of the first error */
    uint32_t *set[N_LEVELS];  /* [n] parent of a disjoint set */
    uint32_t *node[N_LEVELS]; /* [n]: the node of each set, by its root */
} builder;

static void note(builder *b, sc_status s)
{
    if (b->status == SC_OK) b->status = s;
}

/* ---- who shares what ---- */

static uint32_t root(uint32_t *set, uint32_t i)
{
    while (set[i] != i) i = set[i] = set[set[i]];
    return i;
}

/* The root of a set is its first member. */
static void unite(uint32_t *set, uint32_t i, uint32_t k)
{
    i = root(set, i);
    k = root(set, k);
    set[i < k ? k : i] = i < k ? i : k;
}

/* If affinities are missing, the places of GPUs that NVLinks join are
 * unknown. */
static bool same_numa(const hw_matrix *m, uint32_t i, uint32_t k)
{
    if (m->numa[i] == NULL && m->numa[k] == NULL)
        return m->cell[i * m->n + k].near == HW_NEAR_NVLINK;
    return m->numa[i] != NULL && m->numa[k] != NULL &&
           strcmp(m->numa[i], m->numa[k]) == 0;
}

static sc_status find_sets(builder *b)
{
    static const hw_near most[] = {HW_NEAR_PIX, HW_NEAR_PXB, HW_NEAR_NODE};
    const hw_matrix *m = &b->m;
    for (int l = 0; l < N_LEVELS; l++) {
        b->set[l] = SC_NEW_N(b->arena, uint32_t, m->n);
        b->node[l] = SC_NEW_N(b->arena, uint32_t, m->n);
        if (b->set[l] == NULL || b->node[l] == NULL)
            return sc_error_nomem(b->err);
        for (uint32_t i = 0; i < m->n; i++) {
            b->set[l][i] = i;
            b->node[l][i] = UINT32_MAX;
        }
        for (uint32_t i = 0; i < m->n; i++)
            for (uint32_t k = 0; k < i; k++)
                if (m->cell[i * m->n + k].near <= (uint8_t)most[l] ||
                    (l == CPU && same_numa(m, i, k)))
                    unite(b->set[l], i, k);
    }
    return SC_OK;
}

static uint32_t members(const builder *b, int level, uint32_t i)
{
    uint32_t n = 0, r = root(b->set[level], i);
    for (uint32_t k = 0; k < b->m.n; k++) n += root(b->set[level], k) == r;
    return n;
}

/* ---- the tree ---- */

/* The first of the bus ids that no other part of the node has. */
static uint64_t id_of(int level, uint32_t i)
{
    return (uint64_t)(level + 1) << 16 | i;
}

/* The number of the NUMA domain, if no other CPU has it. */
static uint64_t numa_id(const builder *b, uint32_t i)
{
    const char *text = b->m.numa[i];
    char *end = NULL;
    unsigned long id = text == NULL ? 0 : strtoul(text, &end, 10);
    if (text != NULL && end != text && *end == '\0' && id < 4096 &&
        hw_topo_find(b->x.b.t, SC_TOPO_CPU, id) == UINT32_MAX)
        return id;
    return id_of(CPU, i);
}

/* The node that device i is attached to, created if it is missing. Only GPUs
 * state the number of their NUMA domain. */
static sc_status find_parent(builder *b, uint32_t i, uint32_t *out)
{
    uint32_t cpu = root(b->set[CPU], i), top = root(b->set[TOP], i);
    uint32_t leaf = root(b->set[SWITCH], i);
    if (b->node[CPU][cpu] == UINT32_MAX)
        SC_TRY(hw_server_cpu(&b->x, numa_id(b, i), b->m.row[i],
                             &b->node[CPU][cpu]));
    *out = b->node[CPU][cpu];
    uint32_t n_leaf = members(b, SWITCH, i), n_top = members(b, TOP, i);
    hw_part p = {.id = id_of(TOP, top), .parent = *out, .pos = b->m.row[i]};
    if (n_top > n_leaf) {
        if (b->node[TOP][top] == UINT32_MAX)
            SC_TRY(hw_server_switch(&b->x, &p, &b->node[TOP][top]));
        *out = b->node[TOP][top];
    }
    if (n_top == 1) return SC_OK;
    p.id = id_of(SWITCH, leaf);
    p.parent = *out;
    if (b->node[SWITCH][leaf] == UINT32_MAX)
        SC_TRY(hw_server_switch(&b->x, &p, &b->node[SWITCH][leaf]));
    *out = b->node[SWITCH][leaf];
    return SC_OK;
}

static sc_status add_gpus(builder *b)
{
    for (uint32_t i = 0; i < b->m.n; i++) {
        hw_part p = {
            .id = id_of(N_LEVELS, i), .dev = b->m.dev[i], .pos = b->m.row[i]};
        if (!b->m.gpu[i]) continue;
        SC_TRY(find_parent(b, i, &p.parent));
        SC_TRY(hw_server_gpu(&b->x, &p));
    }
    return SC_OK;
}

/* The distance of a device from the nearest GPU. */
static uint8_t nearest_gpu(const hw_matrix *m, uint32_t i)
{
    uint8_t best = HW_NEAR_SYS;
    for (uint32_t k = 0; k < m->n; k++)
        if (m->gpu[k] && m->cell[i * m->n + k].near < best)
            best = m->cell[i * m->n + k].near;
    return best;
}

/* A node has adapters for storage and management that the network between nodes
 * does not use. The adapters nearest to GPUs carry the traffic. */
static sc_status add_nics(builder *b)
{
    const hw_matrix *m = &b->m;
    uint32_t left = hw_server_ports(&b->x), dev = 0;
    bool *use = SC_NEW_N(b->arena, bool, m->n);
    if (use == NULL) return sc_error_nomem(b->err);
    for (int near = HW_NEAR_PIX; near <= HW_NEAR_SYS; near++)
        for (uint32_t i = 0; i < m->n && left > 0; i++)
            if (!m->gpu[i] && nearest_gpu(m, i) == near) {
                use[i] = true;
                left--;
            }
    for (uint32_t i = 0; i < m->n; i++) {
        hw_part p = {.id = id_of(N_LEVELS, i), .dev = dev, .pos = m->row[i]};
        if (!use[i]) continue;
        dev++;
        SC_TRY(find_parent(b, i, &p.parent));
        SC_TRY(hw_server_nic(&b->x, &p));
    }
    return SC_OK;
}

/* ---- NVLinks ---- */

/* NVLinks per GPU if every pair had links of its own. */
static uint32_t links_of(const hw_matrix *m, uint32_t i)
{
    uint32_t sum = 0;
    for (uint32_t k = 0; k < m->n; k++) sum += m->cell[i * m->n + k].links;
    return sum;
}

/* With NVSwitches the table shows all links of a GPU for each of its peers, so
 * their sum exceeds the GPU's links. */
static bool switched(const builder *b)
{
    const sc_device *d = b->x.hw->device;
    uint32_t most = d != NULL && d->links > 0 ? d->links : 18;
    for (uint32_t i = 0; i < b->m.n; i++)
        if (b->m.gpu[i] && links_of(&b->m, i) > most) return true;
    return false;
}

static sc_status add_switched(builder *b)
{
    const hw_matrix *m = &b->m;
    uint32_t nvs = UINT32_MAX;
    uint8_t links = 0;
    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t k = 0; k < i; k++) {
            hw_cell c = m->cell[i * m->n + k];
            if (links == 0) links = c.links;
            if (!m->gpu[i] || !m->gpu[k] || c.links == links) continue;
            return sc_error(
                b->err, SC_EINPUT, SC_C_CONFLICT, hw_matrix_pos(m, i, k),
                "behind NVSwitches all GPUs see each other over "
                "equally many links; say which device it is",
                "%.40s has more NVLinks than its device", m->name[i]);
        }
    SC_TRY(hw_topo_add(&b->x.b, SC_TOPO_NVS, 0, m->row[0], &nvs));
    float width = (float)links * hw_topo_nvlink(b->x.b.t->version, b->x.sm);
    for (uint32_t i = 0; i < m->n; i++)
        if (m->gpu[i])
            SC_TRY(hw_topo_join(&b->x.b, hw_server_find(&b->x, m->dev[i]), nvs,
                                SC_WIRE_NVLINK, width));
    return SC_OK;
}

static sc_status add_nvlinks(builder *b)
{
    const hw_matrix *m = &b->m;
    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t k = 0; k < m->n; k++) {
            uint8_t links = m->cell[i * m->n + k].links;
            if (links == 0 || i == k) continue;
            float one = hw_topo_nvlink(b->x.b.t->version, b->x.sm);
            SC_TRY(hw_topo_link(&b->x.b, hw_server_find(&b->x, m->dev[i]),
                                hw_server_find(&b->x, m->dev[k]),
                                SC_WIRE_NVLINK, (float)links * one));
        }
    return SC_OK;
}

/* Checks that NVLinks join GPUs and that there are not too many GPUs. */
static void check(builder *b)
{
    const hw_matrix *m = &b->m;
    for (uint32_t i = 0; i < m->n; i++) {
        bool equal = false;
        for (uint32_t k = 0; k < i; k++)
            equal |= m->gpu[i] && m->gpu[k] && m->dev[i] == m->dev[k];
        if (equal)
            note(b, sc_error(b->err, SC_EINPUT, SC_C_DUPLICATE, m->row[i], NULL,
                             "two GPUs are dev %u", m->dev[i]));
        for (uint32_t k = 0; k < m->n; k++)
            if (!(m->gpu[i] && m->gpu[k]) && m->cell[i * m->n + k].links > 0)
                note(b, sc_error(
                            b->err, SC_EINPUT, SC_C_CONFLICT,
                            hw_matrix_pos(m, i, k), NULL,
                            "NVLinks between %.40s and %.40s are not possible",
                            m->name[i], m->name[k]));
    }
}

sc_status sc_topo_read_matrix(const char *text, size_t len, const char *file,
                              const sc_hw *hw, sc_arena *a, const sc_topo **out,
                              sc_err *err)
{
    builder b = {.arena = a, .err = err};
    SC_TRY(hw_matrix_parse(text, len, file, a, &b.m, err));
    check(&b);
    SC_TRY(b.status);
    SC_TRY(find_sets(&b));
    /* Each device may need itself, a port, two switches and a CPU. */
    SC_TRY(hw_server_init(&b.x, hw, (sc_nccl)hw->nccl, 5 * b.m.n + 1, a, err));
    SC_TRY(add_gpus(&b));
    SC_TRY(add_nics(&b));
    SC_TRY(switched(&b) ? add_switched(&b) : add_nvlinks(&b));
    SC_TRY(hw_topo_finish(&b.x.b));
    *out = b.x.b.t;
    return SC_OK;
}
