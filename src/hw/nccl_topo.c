/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_topo.c - reads NCCL's topology XML as a graph. */
#include "hw/hw_nccl_graph.h"
#include "hw/nccl_xml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    hw_xml doc;
    hw_topo b;
    sc_err *err;
    sc_status status; /* of the first error; reading goes on */
} reader;

static const char *const elements[] = {
    "system", "cpu", "pci", "gpu", "nvlink", "c2c", "pcilink",
    "nic",    "net", "gin", "rma", "dev",    NULL};

static void note(reader *r, sc_status s)
{
    if (r->status == SC_OK) r->status = s;
}

static const char *text_of(reader *r, const hw_xml_node *n, const char *key)
{
    const char *text = hw_xml_get(n, key);
    if (text == NULL)
        note(r, sc_error(r->err, SC_EINPUT, SC_C_MISSING,
                         hw_xml_pos(&r->doc, n, NULL), NULL,
                         "<%.40s> has no %s", n->name, key));
    return text;
}

typedef struct range {
    int64_t lo, hi, preset; /* preset INT64_MIN: required */
} range;

#define REQUIRED INT64_MIN

static int64_t number(reader *r, const hw_xml_node *n, const char *key,
                      range in)
{
    int64_t least = in.lo > 0 ? in.lo : 0;
    if (in.preset != REQUIRED && hw_xml_get(n, key) == NULL) return in.preset;
    const char *text = text_of(r, n, key);
    if (text == NULL) return least;
    char *end;
    int base = strncmp(text, "0x", 2) == 0 ? 16 : 10;
    long long v = strtoll(text, &end, base);
    if (end == text || *end != '\0') {
        note(r, sc_error(r->err, SC_EINPUT, SC_C_TYPE,
                         hw_xml_pos(&r->doc, n, key), "write a whole number",
                         "%s=\"%.40s\" is not a number", key, text));
        return least;
    }
    if (v >= in.lo && v <= in.hi) return v;
    note(r, sc_error(r->err, SC_EINPUT, SC_C_RANGE, hw_xml_pos(&r->doc, n, key),
                     NULL, "%s=\"%.40s\" is not in %lld to %lld", key, text,
                     (long long)in.lo, (long long)in.hi));
    return least;
}

static uint64_t hex(const char *text)
{
    return text == NULL ? 0 : strtoull(text, NULL, 16);
}

/* "0000:18:00.0" as hexadecimal digits. */
static bool bus_id(reader *r, const hw_xml_node *n, const char *key,
                   uint64_t *out)
{
    const char *text = text_of(r, n, key);
    if (text == NULL) return false;
    uint64_t id = 0;
    uint32_t digits = 0;
    const char *c = text;
    for (; *c != '\0' && digits <= 16; c++) {
        if (*c == ':' || *c == '.') continue;
        const char *all = "0123456789abcdef0123456789ABCDEF";
        const char *at = strchr(all, *c);
        if (at == NULL) break;
        id = id << 4 | (uint64_t)(at - all) % 16;
        digits++;
    }
    *out = id;
    if (*c == '\0' && digits > 0 && digits <= 16) return true;
    note(r, sc_error(r->err, SC_EINPUT, SC_C_TYPE, hw_xml_pos(&r->doc, n, key),
                     "write it like 0000:18:00.0",
                     "%s=\"%.40s\" is not a bus id", key, text));
    return false;
}

/* Finds the first row whose text is a prefix of the value. */
typedef struct word {
    const char *text;
    int value;
} word;

static int look_up(const word *row, const char *text)
{
    while (row->text != NULL &&
           strncmp(text, row->text, strlen(row->text)) != 0)
        row++;
    return row->value;
}

static const word pci_classes[] = {
    {"0x060400", SC_TOPO_PCI}, {"0x068000", SC_TOPO_NVS},
    {"0x068001", SC_TOPO_CPU}, {"0x03", SC_TOPO_GPU},
    {"0x02", SC_TOPO_NIC},     {NULL, SC_TOPO_PCI}};
/* In 100 Mb/s per lane, without encoding and headers; an unknown text counts as
 * Gen 3. The old version does not know the texts of newer kernels. */
static const word pci_speeds[SC_N_NCCLS][11] = {{{"2.5 GT/s", 15},
                                                 {"5 GT/s", 30},
                                                 {"8 GT/s", 60},
                                                 {"16 GT/s", 120},
                                                 {NULL, 60}},
                                                {{"2.5 GT/s", 15},
                                                 {"5 GT/s", 30},
                                                 {"8 GT/s", 60},
                                                 {"16 GT/s", 120},
                                                 {"32 GT/s", 240},
                                                 {"5.0 GT/s", 30},
                                                 {"8.0 GT/s", 60},
                                                 {"16.0 GT/s", 120},
                                                 {"32.0 GT/s", 240},
                                                 {"64.0 GT/s", 480},
                                                 {NULL, 60}}};

/* The latency of a NIC in us; 0 if it is not given. */
static float latency(reader *r, const hw_xml_node *n)
{
    const char *text = hw_xml_get(n, "latency");
    sc_pos pos = hw_xml_pos(&r->doc, n, "latency");
    double us = 0;
    if (text == NULL) return 0;
    note(r, sc_unit_parse(text, SC_U_NONE, pos, &us, r->err));
    if (!(us >= 0 && us <= 1e6))
        note(r, sc_error(r->err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                         "latency=\"%.40s\" is not in 0 to 1e6 us", text));
    return (float)us;
}

static void read_net(reader *r, const hw_xml_node *n, uint32_t nic)
{
    uint32_t i;
    if (hw_xml_get(n, "dev") == NULL) return; /* not in use */
    sc_pos pos = hw_xml_pos(&r->doc, n, "dev");
    uint64_t dev = (uint64_t)number(r, n, "dev", (range){0, 4095, REQUIRED});
    if (hw_topo_find(r->b.t, SC_TOPO_NET, dev) != UINT32_MAX) {
        note(r, sc_error(r->err, SC_EINPUT, SC_C_DUPLICATE, pos, NULL,
                         "two networks are dev %u", (unsigned)dev));
        return;
    }
    sc_status s = hw_topo_add(&r->b, SC_TOPO_NET, dev, pos, &i);
    note(r, s);
    if (s != SC_OK) return;
    sc_topo_node *net = &r->b.t->node[i];
    int64_t mbps = number(r, n, "speed", (range){-1, 100000000, 0});
    const char *guid = hw_xml_get(n, "guid");
    net->dev = (uint32_t)dev;
    net->device = guid == NULL ? dev : hex(guid);
    net->width = (float)((double)(mbps > 0 ? mbps : 10000) / 8000.0);
    net->port = (uint32_t)number(r, n, "port", (range){0, 65535, 0});
    net->gdr = number(r, n, "gdr", (range){0, 1, 0}) == 1;
    net->collnet = number(r, n, "coll", (range){0, 1, 0}) == 1;
    net->channels =
        (uint32_t)number(r, n, "maxconn", (range){0, INT32_MAX, 32});
    net->latency_us = latency(r, n);
    note(r, hw_topo_join(&r->b, nic, i, SC_WIRE_NET, net->width));
}

static void read_nets(reader *r, const hw_xml_node *nic, uint32_t node)
{
    for (const hw_xml_node *c = nic->child; c != NULL; c = c->next)
        if (strcmp(c->name, "net") == 0) read_net(r, c, node);
}

static const hw_xml_node *child_of(const hw_xml_node *n, const char *name)
{
    const hw_xml_node *c = n->child;
    while (c != NULL && strcmp(c->name, name) != 0) c = c->next;
    return c;
}

static uint32_t new_node(reader *r, const hw_xml_node *n, sc_topo_kind kind,
                         uint64_t id, const char *key)
{
    uint32_t node = UINT32_MAX;
    sc_pos pos = hw_xml_pos(&r->doc, n, key);
    if (hw_topo_find(r->b.t, kind, id) != UINT32_MAX)
        note(r, sc_error(r->err, SC_EINPUT, SC_C_DUPLICATE, pos, NULL,
                         "another <%.40s> has this %s", n->name, key));
    else
        note(r, hw_topo_add(&r->b, kind, id, pos, &node));
    return node;
}

static uint32_t read_gpu(reader *r, const hw_xml_node *pci,
                         const hw_xml_node *n, uint64_t id)
{
    sc_pos pos = hw_xml_pos(&r->doc, n, "dev");
    uint32_t node = new_node(r, pci, SC_TOPO_GPU, id, "busid");
    uint32_t dev = (uint32_t)number(r, n, "dev", (range){0, 4095, REQUIRED});
    uint32_t sm = (uint32_t)number(r, n, "sm", (range){10, 999, REQUIRED});
    bool gdr = number(r, n, "gdr", (range){0, 1, 0}) == 1;
    if (node == UINT32_MAX) return node;
    bool named = hw_xml_get(n, "dev") != NULL;
    for (uint32_t i = 0; i + 1 < r->b.t->n[SC_TOPO_GPU]; i++)
        if (named && r->b.t->node[r->b.t->of[SC_TOPO_GPU][i]].dev == dev)
            note(r, sc_error(r->err, SC_EINPUT, SC_C_DUPLICATE, pos, NULL,
                             "two GPUs are dev %u", dev));
    r->b.t->node[node].dev = dev;
    r->b.t->node[node].sm = sm;
    r->b.t->node[node].gdr = gdr;
    return node;
}

/* The four ids of a switch as one word. */
static uint64_t device_id(const hw_xml_node *n)
{
    static const char *const keys[] = {"vendor", "device", "subsystem_vendor",
                                       "subsystem_device"};
    uint64_t id = 0;
    for (int i = 0; i < 4; i++)
        id = id << 16 | (hex(hw_xml_get(n, keys[i])) & 0xffff);
    return id;
}

static void read_pci(reader *r, const hw_xml_node *n, uint32_t parent);

/* The functions of one card share its PCI link. */
static uint32_t read_nic(reader *r, const hw_xml_node *pci,
                         const hw_xml_node *n, uint64_t id, bool *is_new)
{
    id &= ~UINT64_C(0xf);
    uint32_t node = hw_topo_find(r->b.t, SC_TOPO_NIC, id);
    *is_new = node == UINT32_MAX;
    if (*is_new) node = new_node(r, pci, SC_TOPO_NIC, id, "busid");
    if (node != UINT32_MAX) read_nets(r, n, node);
    return node;
}

static uint32_t read_switch(reader *r, const hw_xml_node *n, uint64_t id)
{
    uint32_t node = new_node(r, n, SC_TOPO_PCI, id, "busid");
    if (node == UINT32_MAX) return node;
    r->b.t->node[node].device = device_id(n);
    for (const hw_xml_node *c = n->child; c != NULL; c = c->next)
        if (strcmp(c->name, "pci") == 0) read_pci(r, c, node);
    return node;
}

static void read_pci(reader *r, const hw_xml_node *n, uint32_t parent)
{
    uint64_t id;
    const hw_xml_node *gpu = child_of(n, "gpu"), *nic = child_of(n, "nic");
    const char *class = text_of(r, n, "class");
    if (!bus_id(r, n, "busid", &id) || class == NULL) return;
    uint32_t node = UINT32_MAX;
    bool is_new = true;
    if (gpu != NULL)
        node = read_gpu(r, n, gpu, id);
    else if (nic != NULL)
        node = read_nic(r, n, nic, id, &is_new);
    else if (look_up(pci_classes, class) == SC_TOPO_PCI)
        node = read_switch(r, n, id);
    if (node == UINT32_MAX || !is_new) return;
    int64_t lanes = number(r, n, "link_width", (range){0, 64, 0});
    const char *speed = hw_xml_get(n, "link_speed");
    int rate = look_up(pci_speeds[r->b.t->version], speed ? speed : "");
    if (lanes == 0) lanes = 16;
    float width = (float)((double)(lanes * rate) / 80.0);
    note(r, hw_topo_join(&r->b, node, parent, SC_WIRE_PCI, width));
}

static void read_cpu(reader *r, const hw_xml_node *n)
{
    int64_t numa = number(r, n, "numaid", (range){-1, 4095, REQUIRED});
    uint32_t cpu = new_node(r, n, SC_TOPO_CPU, (uint64_t)numa, "numaid");
    const char *arch = text_of(r, n, "arch");
    const char *vendor = hw_xml_get(n, "vendor");
    if (cpu == UINT32_MAX || arch == NULL) return;
    sc_topo_node *c = &r->b.t->node[cpu];
    uint32_t family = (uint32_t)number(r, n, "familyid", (range){-1, 255, 0});
    uint32_t model = (uint32_t)number(r, n, "modelid", (range){-1, 255, 0});
    hw_topo_cpu(c, arch, vendor, (family & 0xff) << 8 | (model & 0xff));
    for (const hw_xml_node *x = n->child; x != NULL; x = x->next) {
        if (strcmp(x->name, "pci") == 0) read_pci(r, x, cpu);
        if (strcmp(x->name, "nic") != 0) continue;
        /* NICs that are no PCI devices share one node. */
        uint32_t nic = hw_topo_find(r->b.t, SC_TOPO_NIC, 0);
        if (nic == UINT32_MAX) {
            nic = new_node(r, x, SC_TOPO_NIC, 0, "place");
            if (nic == UINT32_MAX) continue;
            note(r, hw_topo_join(&r->b, cpu, nic, SC_WIRE_PCI, HW_LOCAL_WIDTH));
        }
        read_nets(r, x, nic);
    }
}

/* The CPU above a GPU; parents were created before their children. */
static uint32_t local_cpu(const sc_topo *t, uint32_t node)
{
    while (t->node[node].kind != SC_TOPO_CPU) {
        uint32_t i = 0;
        while (t->node[node].link[i].wire != SC_WIRE_PCI ||
               t->node[node].link[i].to > node)
            i++;
        node = t->node[node].link[i].to;
    }
    return node;
}

static sc_status far_end(reader *r, const hw_xml_node *n, uint32_t gpu,
                         uint32_t *out)
{
    const sc_topo *t = r->b.t;
    const char *class = text_of(r, n, "tclass");
    uint64_t id;
    *out = UINT32_MAX;
    if (class == NULL) return SC_OK;
    switch (look_up(pci_classes, class)) {
    case SC_TOPO_GPU: /* a GPU of another communicator is not in the file */
        if (bus_id(r, n, "target", &id))
            *out = hw_topo_find(t, SC_TOPO_GPU, id);
        return SC_OK;
    case SC_TOPO_CPU: *out = local_cpu(t, gpu); return SC_OK;
    default: break;
    }
    if (t->n[SC_TOPO_NVS] > 0)
        *out = t->of[SC_TOPO_NVS][0];
    else
        return hw_topo_add(&r->b, SC_TOPO_NVS, 0, hw_xml_pos(&r->doc, n, NULL),
                           out);
    return SC_OK;
}

static void read_nvlink(reader *r, const hw_xml_node *n, uint32_t gpu)
{
    uint32_t end;
    int64_t count = number(r, n, "count", (range){1, 256, REQUIRED});
    note(r, far_end(r, n, gpu, &end));
    if (end == UINT32_MAX || r->status != SC_OK) return;
    float width =
        (float)count * hw_topo_nvlink(r->b.t->version, r->b.t->node[gpu].sm);
    note(r, hw_topo_link(&r->b, gpu, end, SC_WIRE_NVLINK, width));
    if (r->b.t->node[end].kind != SC_TOPO_GPU)
        note(r, hw_topo_link(&r->b, end, gpu, SC_WIRE_NVLINK, width));
}

/* NVLinks are read last, because they name GPUs anywhere in the file. */
static void read_nvlinks(reader *r, const hw_xml_node *n)
{
    const hw_xml_node *gpu = child_of(n, "gpu");
    uint64_t id;
    if (strcmp(n->name, "pci") == 0 && gpu != NULL &&
        bus_id(r, n, "busid", &id)) {
        uint32_t node = hw_topo_find(r->b.t, SC_TOPO_GPU, id);
        for (const hw_xml_node *c = gpu->child; c != NULL; c = c->next)
            if (node != UINT32_MAX && strcmp(c->name, "nvlink") == 0)
                read_nvlink(r, c, node);
    }
    for (const hw_xml_node *c = n->child; c != NULL; c = c->next)
        read_nvlinks(r, c);
}

static void check_names(reader *r, const hw_xml_node *n)
{
    bool known = false;
    for (const char *const *e = elements; *e != NULL; e++)
        if (strcmp(*e, n->name) == 0) known = true;
    if (!known) {
        char hint[40];
        const char *near = sc_nearest(n->name, elements);
        if (near != NULL)
            snprintf(hint, sizeof hint, "did you mean <%s>?", near);
        note(r,
             sc_error(r->err, SC_EINPUT, SC_C_UNKNOWN_KEY,
                      hw_xml_pos(&r->doc, n, NULL), near != NULL ? hint : NULL,
                      "NCCL has no element <%.40s>", n->name));
    }
    for (const hw_xml_node *c = n->child; c != NULL; c = c->next)
        check_names(r, c);
}

/* Checks that every NVLink between GPUs has one in the other direction. If not,
 * a GPU is missing in the file. */
static void check_back(reader *r)
{
    const sc_topo *t = r->b.t;
    for (uint32_t i = 0; i < t->n_nodes; i++)
        for (uint32_t k = 0; k < t->node[i].n_links; k++) {
            uint32_t to = t->node[i].link[k].to, m = 0;
            const sc_topo_node *far = &t->node[to];
            while (m < far->n_links && far->link[m].to != i) m++;
            if (m < far->n_links) continue;
            note(r, sc_error(r->err, SC_EINPUT, SC_C_REFERENCE,
                             hw_xml_pos(&r->doc, r->doc.root, NULL),
                             "write an NVLink at both of its ends",
                             "GPU %u has an NVLink to GPU %u, which has none "
                             "back",
                             t->node[i].dev, far->dev));
        }
}

/* False if the element is of another kind, which is not checked further. */
static bool check_root(reader *r)
{
    const hw_xml_node *root = r->doc.root;
    if (strcmp(root->name, "system") != 0) {
        note(r, sc_error(r->err, SC_EINPUT, SC_C_TYPE,
                         hw_xml_pos(&r->doc, root, NULL),
                         "write it with NCCL_TOPO_DUMP_FILE",
                         "an NCCL topology starts with <system>, not <%.40s>",
                         root->name));
        return false;
    }
    if (number(r, root, "version", (range){0, INT32_MAX, 1}) != 1)
        note(r, sc_error(r->err, SC_EINPUT, SC_C_UNSUPPORTED,
                         hw_xml_pos(&r->doc, root, "version"), NULL,
                         "NCCL topologies have version 1"));
    check_names(r, root);
    return true;
}

sc_status sc_topo_read(const char *text, size_t len, const char *file,
                       sc_nccl version, sc_arena *a, const sc_topo **out,
                       sc_err *err)
{
    reader r = {.err = err};
    SC_TRY(hw_xml_parse(text, len, file, NULL, a, &r.doc, err));
    SC_TRY(hw_topo_init(&r.b, version, r.doc.n + 2, a, err));
    if (!check_root(&r)) return r.status;
    for (const hw_xml_node *n = r.doc.root->child; n != NULL; n = n->next)
        if (strcmp(n->name, "cpu") == 0) read_cpu(&r, n);
    if (r.status == SC_OK) read_nvlinks(&r, r.doc.root);
    if (r.status == SC_OK && r.b.t->n[SC_TOPO_GPU] == 0)
        note(&r, sc_error(err, SC_EINPUT, SC_C_MISSING,
                          hw_xml_pos(&r.doc, r.doc.root, NULL),
                          "files for NCCL_TOPO_FILE leave GPUs out; let a run "
                          "write NCCL_TOPO_DUMP_FILE",
                          "there is no <gpu> in the file"));
    if (r.status == SC_OK) check_back(&r);
    if (r.status == SC_OK) note(&r, hw_topo_finish(&r.b));
    if (r.status == SC_OK) *out = r.b.t;
    return r.status;
}
