/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_graph.c - nodes and links in NCCL's order, with NCCL's widths. */
#include "hw/hw_nccl_graph.h"

#include <string.h>

/* Widths for each version (NCCL topo.h): the bandwidth that NCCL's search
 * assigns to a link, which is below the data sheet's. */
typedef struct width_row {
    uint32_t from_sm;
    float width[SC_N_NCCLS];
} width_row;

static const width_row nvlinks[] = {
    {100, {22, 40.1F}}, {90, {22, 20.6F}}, {87, {22, 20}}, {86, {12, 12}},
    {80, {22, 20}},     {70, {22, 20}},    {60, {18, 18}}, {0, {22, 20}}};

float hw_topo_nvlink(sc_nccl version, uint32_t sm)
{
    uint32_t i = 0;
    while (sm < nvlinks[i].from_sm) i++;
    return nvlinks[i].width[version];
}

/* The width between two CPUs; `from_model` is family << 8
 *
 * model. */
typedef struct cpu_row {
    sc_cpu_arch arch;
    sc_cpu_vendor vendor; /* UNKNOWN: any */
    uint32_t from_model, to_model;
    float width[SC_N_NCCLS];
} cpu_row;

#define ANY_MODEL 0, UINT32_MAX

static const cpu_row cpu_links[] = {
    {SC_CPU_POWER, SC_CPU_VENDOR_UNKNOWN, ANY_MODEL, {32, 32}},
    {SC_CPU_ARM, SC_CPU_VENDOR_UNKNOWN, ANY_MODEL, {6, 6}},
    {SC_CPU_X86, SC_CPU_INTEL, 0x6cf, 0x6ff, {9, 40}}, /* Emerald Rapids */
    {SC_CPU_X86, SC_CPU_INTEL, 0x68f, 0x6ff, {9, 22}}, /* Sapphire Rapids */
    {SC_CPU_X86, SC_CPU_INTEL, 0x655, 0x6ff, {9, 10}}, /* Skylake */
    {SC_CPU_X86, SC_CPU_INTEL, ANY_MODEL, {6, 6}},
    {SC_CPU_X86, SC_CPU_ZHAOXIN, 0x75b, 0x75b, {9, 9}},
    {SC_CPU_X86, SC_CPU_ZHAOXIN, ANY_MODEL, {6, 6}},
    {SC_CPU_X86, SC_CPU_AMD, ANY_MODEL, {HW_LOCAL_WIDTH, 16}}};

static float cpu_link(sc_nccl version, const sc_topo_node *cpu)
{
    for (size_t i = 0; i < SC_COUNT(cpu_links); i++) {
        const cpu_row *r = &cpu_links[i];
        if (r->arch == cpu->arch && cpu->model >= r->from_model &&
            cpu->model <= r->to_model &&
            (r->vendor == SC_CPU_VENDOR_UNKNOWN || r->vendor == cpu->vendor))
            return r->width[version];
    }
    return HW_LOCAL_WIDTH;
}

/* Finds the first row whose text is a prefix of the value. */
typedef struct word {
    const char *text;
    int value;
} word;

static const word cpu_arches[] = {{"x86_64", SC_CPU_X86},
                                  {"arm64", SC_CPU_ARM},
                                  {"aarch64", SC_CPU_ARM},
                                  {"ppc64", SC_CPU_POWER},
                                  {NULL, SC_CPU_ARCH_UNKNOWN}};
static const word cpu_vendors[] = {{"GenuineIntel", SC_CPU_INTEL},
                                   {"AuthenticAMD", SC_CPU_AMD},
                                   {"CentaurHauls", SC_CPU_ZHAOXIN},
                                   {"  Shanghai  ", SC_CPU_ZHAOXIN},
                                   {NULL, SC_CPU_VENDOR_UNKNOWN}};

static int look_up(const word *row, const char *text)
{
    while (row->text != NULL &&
           (text == NULL || strncmp(text, row->text, strlen(row->text)) != 0))
        row++;
    return row->value;
}

void hw_topo_cpu(sc_topo_node *cpu, const char *arch, const char *vendor,
                 uint32_t model)
{
    cpu->arch = (sc_cpu_arch)look_up(cpu_arches, arch);
    cpu->vendor = (sc_cpu_vendor)look_up(cpu_vendors, vendor);
    if (cpu->arch != SC_CPU_X86) cpu->vendor = SC_CPU_VENDOR_UNKNOWN;
    cpu->model = model;
}

sc_status hw_topo_init(hw_topo *b, sc_nccl version, uint32_t max_nodes,
                       sc_arena *a, sc_err *err)
{
    *b = (hw_topo){.cap = max_nodes, .arena = a, .err = err};
    b->t = SC_NEW(a, sc_topo);
    if (b->t == NULL) return sc_error_nomem(err);
    b->t->version = version;
    b->t->node = SC_NEW_N(a, sc_topo_node, max_nodes);
    if (b->t->node == NULL) return sc_error_nomem(err);
    for (int k = 0; k < SC_N_TOPO_KINDS; k++) {
        b->t->of[k] = SC_NEW_N(a, uint32_t, SC_TOPO_KIND);
        if (b->t->of[k] == NULL) return sc_error_nomem(err);
    }
    return SC_OK;
}

sc_status hw_topo_add(hw_topo *b, sc_topo_kind kind, uint64_t id, sc_pos pos,
                      uint32_t *out)
{
    sc_topo *t = b->t;
    uint32_t most = kind == SC_TOPO_GPU ? SC_TOPO_GPUS : SC_TOPO_KIND;
    if (t->n_nodes == b->cap || t->n[kind] == most)
        return sc_error(b->err, SC_EINPUT, SC_C_TOO_BIG, pos, NULL,
                        "a node has more than %u of one kind",
                        t->n_nodes == b->cap ? b->cap : most);
    uint32_t i = t->n_nodes++;
    t->node[i] = (sc_topo_node){.kind = kind, .id = id};
    t->of[kind][t->n[kind]++] = i;
    *out = i;
    if (kind != SC_TOPO_GPU) return SC_OK;
    return hw_topo_link(b, i, i, SC_WIRE_SELF, HW_LOCAL_WIDTH);
}

uint32_t hw_topo_find(const sc_topo *t, sc_topo_kind kind, uint64_t id)
{
    for (uint32_t i = 0; i < t->n[kind]; i++)
        if (t->node[t->of[kind][i]].id == id) return t->of[kind][i];
    return UINT32_MAX;
}

static sc_status room_for_link(hw_topo *b, sc_topo_node *n)
{
    sc_topo_link *link =
        sc_grow(b->arena, n->link, n->n_links, &n->cap, 8, sizeof *link);
    if (link == NULL) return sc_error_nomem(b->err);
    n->link = link;
    return SC_OK;
}

sc_status hw_topo_link(hw_topo *b, uint32_t from, uint32_t to, sc_wire wire,
                       float width)
{
    sc_topo_node *n = &b->t->node[from];
    uint32_t i = 0;
    while (i < n->n_links && (n->link[i].to != to || n->link[i].wire != wire))
        i++;
    if (i == n->n_links) {
        SC_TRY(room_for_link(b, n));
        n->link[n->n_links++] = (sc_topo_link){to, wire, 0};
    }
    sc_topo_link link = n->link[i];
    link.width += width;
    for (; i > 0 && n->link[i - 1].width < link.width; i--)
        n->link[i] = n->link[i - 1];
    n->link[i] = link;
    return SC_OK;
}

sc_status hw_topo_join(hw_topo *b, uint32_t x, uint32_t y, sc_wire wire,
                       float width)
{
    SC_TRY(hw_topo_link(b, x, y, wire, width));
    return hw_topo_link(b, y, x, wire, width);
}

static void drop_link(sc_topo_node *n, uint32_t i)
{
    n->n_links--;
    memmove(&n->link[i], &n->link[i + 1], (n->n_links - i) * sizeof n->link[0]);
}

/* Moves everything below `sub` to `top`; `sub` keeps no links. */
static sc_status absorb(hw_topo *b, uint32_t top, uint32_t sub)
{
    sc_topo_node *s = &b->t->node[sub];
    for (uint32_t i = 0; i < s->n_links; i++) {
        sc_topo_link l = s->link[i];
        if (l.to == top) continue;
        sc_topo_node *n = &b->t->node[top];
        SC_TRY(room_for_link(b, n));
        n->link[n->n_links++] = l;
        sc_topo_node *below = &b->t->node[l.to];
        for (uint32_t k = 0; k < below->n_links; k++)
            if (below->link[k].to == sub) {
                below->link[k].to = top;
                break;
            }
    }
    s->n_links = 0;
    return SC_OK;
}

/* Broadcom's PEX Gen 4 switches show two levels, although all their ports have
 * full bandwidth. */
#define PEX_GEN4 UINT64_C(0x1000c0101000a000)

static sc_status flatten(hw_topo *b)
{
    sc_topo *t = b->t;
    for (uint32_t k = 0; k < t->n[SC_TOPO_PCI]; k++) {
        uint32_t top = t->of[SC_TOPO_PCI][k];
        uint64_t device = t->node[top].device;
        if ((device & ~UINT64_C(0xfff)) != PEX_GEN4) continue;
        uint32_t left = t->node[top].n_links;
        for (uint32_t i = 0; left > 0; i++, left--) {
            uint32_t sub = t->node[top].link[i].to;
            if (t->node[sub].kind != SC_TOPO_PCI || sub < top ||
                t->node[sub].device != device)
                continue;
            drop_link(&t->node[top], i--);
            t->node[sub].device = 0;
            SC_TRY(absorb(b, top, sub));
        }
    }
    return SC_OK;
}

static sc_status join_cpus(hw_topo *b)
{
    const sc_topo *t = b->t;
    for (uint32_t i = 0; i < t->n[SC_TOPO_CPU]; i++)
        for (uint32_t k = 0; k < t->n[SC_TOPO_CPU]; k++) {
            uint32_t from = t->of[SC_TOPO_CPU][i], to = t->of[SC_TOPO_CPU][k];
            if (i != k)
                SC_TRY(hw_topo_link(b, from, to, SC_WIRE_SYS,
                                    cpu_link(t->version, &t->node[from])));
        }
    return SC_OK;
}

/* Puts the link to the node above last, for all nodes below `node` on PCI. */
static void sort_tree(sc_topo *t, uint32_t node, uint32_t up)
{
    sc_topo_node *n = &t->node[node];
    for (uint32_t i = 0; up != UINT32_MAX && i < n->n_links; i++)
        if (n->link[i].to == up) {
            sc_topo_link l = n->link[i];
            drop_link(n, i);
            n->link[n->n_links++] = l;
            break;
        }
    for (uint32_t i = 0; i < n->n_links; i++)
        if (n->link[i].wire == SC_WIRE_PCI && n->link[i].to != up)
            sort_tree(t, n->link[i].to, node);
}

sc_status hw_topo_finish(hw_topo *b)
{
    SC_TRY(flatten(b));
    SC_TRY(join_cpus(b));
    for (uint32_t i = 0; i < b->t->n[SC_TOPO_CPU]; i++)
        sort_tree(b->t, b->t->of[SC_TOPO_CPU][i], UINT32_MAX);
    return SC_OK;
}

/* Copies the nodes that are kept, with their links; `place[old]` is the new
 * index. */
static sc_status copy_kept(hw_topo *b, const sc_topo *t, const uint32_t *place)
{
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        if (place[i] == UINT32_MAX) continue;
        const sc_topo_node *from = &t->node[i];
        sc_topo_node *to = &b->t->node[place[i]];
        *to = *from;
        to->n_links = 0;
        to->cap = from->n_links;
        to->link = SC_NEW_N(b->arena, sc_topo_link, from->n_links);
        if (to->link == NULL) return sc_error_nomem(b->err);
        for (uint32_t k = 0; k < from->n_links; k++) {
            sc_topo_link l = from->link[k];
            l.to = place[l.to];
            if (l.to != UINT32_MAX) to->link[to->n_links++] = l;
        }
    }
    return SC_OK;
}

static sc_status mark(const sc_topo *t, uint32_t n, const uint32_t *dev,
                      bool *keep, sc_err *err)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t found = UINT32_MAX;
        for (uint32_t g = 0; g < t->n[SC_TOPO_GPU]; g++)
            if (t->node[t->of[SC_TOPO_GPU][g]].dev == dev[i])
                found = t->of[SC_TOPO_GPU][g];
        if (found == UINT32_MAX)
            return sc_error(err, SC_EINPUT, SC_C_REFERENCE, sc_pos_none(), NULL,
                            "the node has no GPU %u", dev[i]);
        if (keep[found])
            return sc_error(err, SC_EINPUT, SC_C_DUPLICATE, sc_pos_none(), NULL,
                            "GPU %u is named twice", dev[i]);
        keep[found] = true;
    }
    return SC_OK;
}

sc_status sc_topo_select(const sc_topo *t, uint32_t n, const uint32_t *dev,
                         bool nets, sc_arena *a, const sc_topo **out,
                         sc_err *err)
{
    hw_topo b;
    bool *keep = SC_NEW_N(a, bool, t->n_nodes);
    uint32_t *place = SC_NEW_N(a, uint32_t, t->n_nodes);
    if (keep == NULL || place == NULL) return sc_error_nomem(err);
    if (n == 0)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                        "no GPU is named");
    SC_TRY(mark(t, n, dev, keep, err));
    SC_TRY(hw_topo_init(&b, t->version, t->n_nodes, a, err));
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        sc_topo_kind kind = t->node[i].kind;
        bool stays = kind == SC_TOPO_GPU   ? keep[i]
                     : kind == SC_TOPO_NET ? nets
                                           : true;
        place[i] = stays ? b.t->n_nodes++ : UINT32_MAX;
        if (stays) b.t->of[kind][b.t->n[kind]++] = place[i];
    }
    SC_TRY(copy_kept(&b, t, place));
    *out = b.t;
    return SC_OK;
}
