/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_hwloc.c - turns hwloc's XML (`lstopo FILE.xml`) into NCCL's graph of a
 * node.
 *
 * Bridges, devices, NUMA domains and the speeds of PCI links come from the
 * file. Such files have no rates of adapters' ports. These, and everything else
 * that is missing, come from the machine.
 */
#include "hw/nccl_hwloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NVIDIA 0x10deu

void hw_hwloc_note(hw_hwloc *h, sc_status s)
{
    if (h->status == SC_OK) h->status = s;
}

static bool is(const hw_xml_node *n, const char *key, const char *value)
{
    const char *text = hw_xml_get(n, key);
    return text != NULL && strcmp(text, value) == 0;
}

static bool is_object(const hw_xml_node *n, const char *type)
{
    return strcmp(n->name, "object") == 0 && is(n, "type", type);
}

bool hw_hwloc_number(hw_hwloc *h, const hw_xml_node *n, const char *key,
                     uint64_t most, uint64_t *out)
{
    const char *text = hw_xml_get(n, key);
    char *end = NULL;
    *out = text == NULL ? 0 : strtoull(text, &end, 10);
    if (text != NULL && text[0] >= '0' && text[0] <= '9' && *end == '\0' &&
        *out <= most)
        return true;
    hw_hwloc_note(h, sc_error(h->err, SC_EINPUT,
                              text == NULL ? SC_C_MISSING : SC_C_RANGE,
                              hw_xml_pos(&h->doc, n, key), NULL,
                              "<%.40s> needs %s, a number up to %llu", n->name,
                              key, (unsigned long long)most));
    return false;
}

/* ---- devices ---- */

/* Parses exactly `n` hexadecimal digits after a given text. */
static bool digits(const char **at, const char *before, unsigned n,
                   uint32_t *out)
{
    static const char hex[] = "0123456789abcdef0123456789ABCDEF";
    size_t len = strlen(before);
    if (strncmp(*at, before, len) != 0) return false;
    *at += len;
    *out = 0;
    for (; n > 0; n--, ++*at) {
        const char *d = **at == '\0' ? NULL : strchr(hex, **at);
        if (d == NULL) return false;
        *out = *out << 4 | (uint32_t)(d - hex) % 16;
    }
    return true;
}

/* "0302 [10de:1db8] [10de:131d] a1": class, and the two ids. */
static bool pci_ids(const hw_xml_node *n, uint32_t out[5])
{
    const char *at = hw_xml_get(n, "pci_type");
    return at != NULL && digits(&at, "", 4, &out[0]) &&
           digits(&at, " [", 4, &out[1]) && digits(&at, ":", 4, &out[2]) &&
           digits(&at, "] [", 4, &out[3]) && digits(&at, ":", 4, &out[4]);
}

uint32_t hw_hwloc_class(const hw_xml_node *pci, uint32_t *vendor)
{
    uint32_t id[5];
    if (!pci_ids(pci, id)) return 0;
    *vendor = id[1];
    return id[0];
}

/* "0000:18:00.0" as its digits, in the order of a bus scan. */
static bool bus_id(const hw_xml_node *n, uint64_t *out)
{
    uint32_t domain, bus, device, function;
    const char *at = hw_xml_get(n, "pci_busid");
    const char *colon = at == NULL ? NULL : strchr(at, ':');
    if (colon == NULL || colon - at > 8 ||
        !digits(&at, "", (unsigned)(colon - at), &domain) ||
        !digits(&at, ":", 2, &bus) || !digits(&at, ":", 2, &device) ||
        !digits(&at, ".", 1, &function) || *at != '\0')
        return false;
    *out = (uint64_t)domain << 20 | bus << 12 | device << 4 | function;
    return true;
}

static bool is_bridge(const hw_xml_node *n)
{
    return n != NULL && is_object(n, "Bridge") && is(n, "bridge_type", "1-1");
}

/* GB/s as NCCL counts: 12 of the 15.75 of Gen 3 x16. Up to Gen 2, links carry
 * multiples of 0.25 GB/s; from Gen 3 on, of 8 GT/s with 128 of 130 bits. */
static float pci_width(hw_hwloc *h, const hw_xml_node *n)
{
    const char *text = hw_xml_get(n, "pci_link_speed");
    sc_pos pos = hw_xml_pos(&h->doc, n, "pci_link_speed");
    double speed = 0;
    if (text == NULL) return 0;
    sc_status s = sc_unit_parse(text, SC_U_NONE, pos, &speed, h->err);
    hw_hwloc_note(h, s);
    if (s == SC_OK && !(speed >= 0 && speed <= 1e4))
        hw_hwloc_note(h, sc_error(h->err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                                  "pci_link_speed=\"%.40s\" is not in 0 to "
                                  "10000 GB/s",
                                  text));
    double lanes = speed * 130 / 128;
    bool old = fabs(lanes - round(lanes)) > 1e-3;
    return (float)(0.75 * (old ? speed : round(lanes)));
}

/* The value of an element's <info> with this name. */
static const char *info(const hw_xml_node *n, const char *name)
{
    for (const hw_xml_node *c = n->child; c != NULL; c = c->next)
        if (strcmp(c->name, "info") == 0 && is(c, "name", name))
            return hw_xml_get(c, "value");
    return NULL;
}

/* The value of the first element, in the order of the file, that has this
 * info. */
static const char *anywhere(const hw_xml_node *n, const char *name)
{
    const char *found = info(n, name);
    for (const hw_xml_node *c = n->child; c != NULL && found == NULL;
         c = c->next)
        found = anywhere(c, name);
    return found;
}

/* Whether a port of the verbs library is up. In version 3 the numbers of
 * osdev_type became bits. */
static bool has_port(const hw_hwloc *h, const hw_xml_node *pci)
{
    const char *type = h->major < 3 ? "3" : "32";
    for (const hw_xml_node *c = pci->child; c != NULL; c = c->next) {
        const char *state = info(c, "Port1State");
        if (is_object(c, "OSDev") && is(c, "osdev_type", type) &&
            (state == NULL || strcmp(state, "4") == 0))
            return true;
    }
    return false;
}

static void add_device(hw_hwloc *h, const hw_xml_node *n, bool gpu)
{
    hw_hwloc_device *list = gpu ? h->gpu : h->nic;
    uint32_t *n_list = gpu ? &h->n_gpus : &h->n_nics, i = *n_list;
    uint32_t most = gpu ? SC_TOPO_GPUS : SC_TOPO_KIND;
    hw_hwloc_device d = {n, 0, UINT32_MAX};
    if (!bus_id(n, &d.id)) {
        hw_hwloc_note(h, sc_error(h->err, SC_EINPUT, SC_C_TYPE,
                                  hw_xml_pos(&h->doc, n, "pci_busid"),
                                  "write it like 0000:18:00.0",
                                  "a PCI device has no bus id"));
        return;
    }
    if (i == most) {
        hw_hwloc_note(h, sc_error(h->err, SC_EINPUT, SC_C_TOO_BIG,
                                  hw_xml_pos(&h->doc, n, NULL), NULL,
                                  "a node has more than %u of one kind", most));
        return;
    }
    for (; i > 0 && list[i - 1].id > d.id; i--) list[i] = list[i - 1];
    if (i > 0 && list[i - 1].id == d.id)
        hw_hwloc_note(h, sc_error(h->err, SC_EINPUT, SC_C_DUPLICATE,
                                  hw_xml_pos(&h->doc, n, "pci_busid"), NULL,
                                  "another PCI device has this bus id"));
    list[i] = d;
    ++*n_list;
}

static void find_devices(hw_hwloc *h, const hw_xml_node *n)
{
    uint32_t id[5];
    if (is_object(n, "PCIDev")) {
        if (!pci_ids(n, id))
            hw_hwloc_note(h, sc_error(h->err, SC_EINPUT, SC_C_TYPE,
                                      hw_xml_pos(&h->doc, n, "pci_type"),
                                      "write it like 0302 [10de:20b2] "
                                      "[10de:1463] a1",
                                      "a PCI device has no class"));
        else if (id[0] >> 8 == 0x03 && id[1] == NVIDIA)
            add_device(h, n, true);
        else if (id[0] >> 8 == 0x02 && has_port(h, n))
            add_device(h, n, false);
    }
    for (const hw_xml_node *c = n->child; c != NULL; c = c->next)
        find_devices(h, c);
}

/* ---- the tree ---- */

/* The first NUMA domain below the element, or the element itself. */
static const hw_xml_node *numa_below(const hw_xml_node *n)
{
    const hw_xml_node *found = is_object(n, "NUMANode") ? n : NULL;
    for (const hw_xml_node *c = n->child; c != NULL && found == NULL;
         c = c->next)
        found = numa_below(c);
    return found;
}

/* The NUMA domain of a device. Up to version 1 of the format devices are below
 * their domain, later next to it. */
static uint64_t numa_of(hw_hwloc *h, const hw_xml_node *n)
{
    const hw_xml_node *numa = NULL;
    uint64_t id = 0;
    for (; n != NULL && numa == NULL; n = n->parent) numa = numa_below(n);
    if (numa != NULL) hw_hwloc_number(h, numa, "os_index", 4095, &id);
    return id;
}

static uint32_t byte_of(const char *text)
{
    unsigned long v = text == NULL ? 0 : strtoul(text, NULL, 10);
    return (uint32_t)v & 0xff;
}

static sc_status find_cpu(hw_hwloc *h, const hw_xml_node *n, uint32_t *out)
{
    uint64_t id = numa_of(h, n);
    const hw_xml_node *root = h->doc.root;
    *out = hw_topo_find(h->x.b.t, SC_TOPO_CPU, id);
    if (*out != UINT32_MAX) return SC_OK;
    SC_TRY(hw_server_cpu(&h->x, id, hw_xml_pos(&h->doc, n, NULL), out));
    const char *arch = anywhere(root, "Architecture");
    if (arch == NULL) return SC_OK;
    hw_topo_cpu(&h->x.b.t->node[*out], arch, anywhere(root, "CPUVendor"),
                byte_of(anywhere(root, "CPUFamilyNumber")) << 8 |
                    byte_of(anywhere(root, "CPUModelNumber")));
    return SC_OK;
}

/* A switch consists of two bridges, of which NCCL sees the upper one. A device
 * at a root port is attached to the CPU. */
static const hw_xml_node *switch_above(const hw_xml_node *n)
{
    const hw_xml_node *below = n->parent;
    if (!is_bridge(below) || !is_bridge(below->parent)) return NULL;
    return below->parent;
}

static sc_status find_parent(hw_hwloc *h, const hw_xml_node *n, uint32_t *out)
{
    const hw_xml_node *sw = switch_above(n);
    uint32_t id[5] = {0};
    hw_part p = {0};
    if (sw == NULL) return find_cpu(h, n, out);
    p.pos = hw_xml_pos(&h->doc, sw, "pci_busid");
    if (!bus_id(sw, &p.id))
        return sc_error(h->err, SC_EINPUT, SC_C_TYPE, p.pos,
                        "write it like 0000:18:00.0",
                        "a PCI bridge has no bus id");
    *out = hw_topo_find(h->x.b.t, SC_TOPO_PCI, p.id);
    if (*out != UINT32_MAX) return SC_OK;
    SC_TRY(find_parent(h, sw, &p.parent));
    p.width = pci_width(h, sw);
    SC_TRY(hw_server_switch(&h->x, &p, out));
    if (pci_ids(sw, id))
        h->x.b.t->node[*out].device =
            (uint64_t)id[1] << 48 | (uint64_t)id[2] << 32 | id[3] << 16 | id[4];
    return SC_OK;
}

static sc_status add_gpus(hw_hwloc *h)
{
    for (uint32_t i = 0; i < h->n_gpus; i++) {
        const hw_xml_node *n = h->gpu[i].pci;
        hw_part p = {.id = h->gpu[i].id,
                     .dev = i,
                     .width = pci_width(h, n),
                     .pos = hw_xml_pos(&h->doc, n, NULL)};
        SC_TRY(find_parent(h, n, &p.parent));
        SC_TRY(hw_server_gpu(&h->x, &p));
        h->gpu[i].node = hw_server_find(&h->x, i);
    }
    return SC_OK;
}

/* 0: below a switch with a GPU, 1: at a CPU with one, 2: elsewhere. */
static int distance(const hw_hwloc *h, const hw_xml_node *nic, uint64_t numa)
{
    const sc_topo *t = h->x.b.t;
    for (const hw_xml_node *s = switch_above(nic); s != NULL;
         s = switch_above(s)) {
        uint64_t id;
        if (bus_id(s, &id) && hw_topo_find(t, SC_TOPO_PCI, id) != UINT32_MAX)
            return 0;
    }
    return hw_topo_find(t, SC_TOPO_CPU, numa) != UINT32_MAX ? 1 : 2;
}

/* A node has adapters for storage and management that the network between nodes
 * does not use. The adapters nearest to GPUs carry the traffic. The functions
 * of one card share its link. */
static sc_status add_nics(hw_hwloc *h)
{
    uint32_t left = hw_server_ports(&h->x), dev = 0;
    int *far = SC_NEW_N(h->arena, int, h->n_nics);
    bool *use = SC_NEW_N(h->arena, bool, h->n_nics);
    if (far == NULL || use == NULL) return sc_error_nomem(h->err);
    for (uint32_t i = 0; i < h->n_nics && left > 0; i++)
        far[i] = distance(h, h->nic[i].pci, numa_of(h, h->nic[i].pci));
    for (int d = 0; d < 3; d++)
        for (uint32_t i = 0; i < h->n_nics && left > 0; i++) {
            if (far[i] != d) continue;
            use[i] = true;
            left--;
        }
    for (uint32_t i = 0; i < h->n_nics; i++) {
        const hw_xml_node *n = h->nic[i].pci;
        hw_part p = {.id = h->nic[i].id & ~UINT64_C(0xf), .dev = dev};
        if (!use[i]) continue;
        dev++;
        p.width = pci_width(h, n);
        p.pos = hw_xml_pos(&h->doc, n, NULL);
        SC_TRY(find_parent(h, n, &p.parent));
        SC_TRY(hw_server_nic(&h->x, &p));
    }
    return SC_OK;
}

/* ---- the file ---- */

static sc_status check_root(hw_hwloc *h)
{
    const hw_xml_node *root = h->doc.root;
    const char *version = hw_xml_get(root, "version");
    if (strcmp(root->name, "topology") != 0)
        return sc_error(
            h->err, SC_EINPUT, SC_C_TYPE, hw_xml_pos(&h->doc, root, NULL),
            "write it with lstopo FILE.xml",
            "hwloc's XML starts with <topology>, not <%.40s>", root->name);
    h->major = 1; /* files of version 1 do not have the attribute */
    if (version == NULL) return SC_OK;
    h->major = version[0] - '0';
    if (h->major >= 1 && h->major <= 3 && version[1] == '.') return SC_OK;
    return sc_error(h->err, SC_EINPUT, SC_C_UNSUPPORTED,
                    hw_xml_pos(&h->doc, root, "version"), NULL,
                    "hwloc's XML of version %.20s; 1 to 3 are known", version);
}

/* If the file has no matrix of NVLinks (lstopo was built without NVML), the
 * machine's fabric is used. */
static sc_status add_fabric(hw_hwloc *h)
{
    if (hw_hwloc_nvlinks(h)) return h->status;
    if (h->n_gpus != h->x.hw->node_size) return SC_OK;
    return hw_server_fabric(&h->x);
}

sc_status sc_topo_read_hwloc(const char *text, size_t len, const char *file,
                             const sc_hw *hw, sc_arena *a, const sc_topo **out,
                             sc_err *err)
{
    hw_hwloc h = {.arena = a, .err = err};
    SC_TRY(hw_xml_parse(text, len, file, "topology", a, &h.doc, err));
    SC_TRY(check_root(&h));
    h.gpu = SC_NEW_N(a, hw_hwloc_device, SC_TOPO_GPUS);
    h.nic = SC_NEW_N(a, hw_hwloc_device, SC_TOPO_KIND);
    if (h.gpu == NULL || h.nic == NULL) return sc_error_nomem(err);
    SC_TRY(hw_server_init(&h.x, hw, (sc_nccl)hw->nccl,
                          h.doc.n + 2 * SC_TOPO_KIND, a, err));
    find_devices(&h, h.doc.root);
    if (h.status == SC_OK && h.n_gpus == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING,
                        hw_xml_pos(&h.doc, h.doc.root, NULL),
                        "let lstopo write it on the node, with I/O devices",
                        "there is no NVIDIA GPU in the file");
    SC_TRY(h.status);
    SC_TRY(add_gpus(&h));
    SC_TRY(add_nics(&h));
    SC_TRY(h.status);
    SC_TRY(add_fabric(&h));
    SC_TRY(hw_topo_finish(&h.x.b));
    *out = h.x.b.t;
    return SC_OK;
}
