/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_hwloc_links.c - reads the matrix "NVLinkBandwidth" of hwloc's XML.
 *
 * It has MB/s in one direction between GPUs (their NVML devices), ports of
 * NVSwitches (PCI devices) and POWER packages. Objects are named by their
 * gp_index; in <distances2hetero> type and colon precede it.
 */
#include "hw/nccl_hwloc.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SIDE ((uint64_t)SC_TOPO_GPUS + SC_TOPO_KIND)

typedef enum end_kind { END_GPU, END_SWITCH, END_CPU, END_NONE } end_kind;

typedef struct end {
    end_kind kind;
    uint32_t gpu; /* node of the graph */
} end;

typedef struct matrix {
    hw_hwloc *h;
    const hw_xml_node *at;
    uint32_t n;
    end *end;      /* [n] */
    double *value; /* [n * n] MB/s */
} matrix;

static void note(const matrix *m, const hw_xml_node *n, sc_code code,
                 const char *what)
{
    hw_hwloc_note(m->h,
                  sc_error(m->h->err, SC_EINPUT, code,
                           hw_xml_pos(&m->h->doc, n, NULL), NULL, "%s", what));
}

/* ---- objects ---- */

static const hw_xml_node *by_index(const hw_xml_node *n, const char *text)
{
    const char *index = hw_xml_get(n, "gp_index");
    if (index != NULL && strcmp(index, text) == 0) return n;
    const hw_xml_node *found = NULL;
    for (const hw_xml_node *c = n->child; c != NULL && found == NULL;
         c = c->next)
        found = by_index(c, text);
    return found;
}

static end end_of(const matrix *m, const hw_xml_node *n)
{
    const char *type = hw_xml_get(n, "type");
    end e = {END_CPU, UINT32_MAX};
    uint32_t vendor = 0;
    if (type != NULL && strcmp(type, "OSDev") == 0 && n->parent != NULL) {
        n = n->parent;
        type = hw_xml_get(n, "type");
    }
    if (type == NULL || strcmp(type, "PCIDev") != 0) return e;
    e.kind = END_NONE;
    for (uint32_t i = 0; i < m->h->n_gpus; i++)
        if (m->h->gpu[i].pci == n) e = (end){END_GPU, m->h->gpu[i].node};
    /* A device whose class could not be read still has its name. */
    const char *what = hw_xml_get(n, "subtype");
    bool named = what != NULL && strcmp(what, "NVSwitch") == 0;
    if (e.kind == END_NONE && (named || hw_hwloc_class(n, &vendor) == 0x0680))
        e.kind = END_SWITCH;
    return e;
}

/* ---- numbers and names between blanks ---- */

/* The next word in the texts of all elements with one name. */
typedef struct words {
    const matrix *m;
    const hw_xml_node *node; /* that holds the word */
    const char *name;
    size_t at, end; /* rest of its text */
} words;

static const hw_xml_node *named(const hw_xml_node *n, const char *name)
{
    while (n != NULL && strcmp(n->name, name) != 0) n = n->next;
    return n;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static void open_text(words *w, const hw_xml_node *from)
{
    size_t len = 0;
    w->node = named(from, w->name);
    w->at = w->end = 0;
    if (w->node == NULL) return;
    w->at = hw_xml_content(&w->m->h->doc, w->node, &len);
    w->end = w->at + len;
}

/* Copies the word, cut to the buffer; false at the end. */
static bool next_word(words *w, char *buf, size_t size)
{
    const char *text = w->m->h->doc.text;
    size_t n = 0;
    while (w->node != NULL) {
        while (w->at < w->end && is_blank(text[w->at])) w->at++;
        if (w->at < w->end) break;
        open_text(w, w->node->next);
    }
    if (w->node == NULL) return false;
    for (; w->at < w->end && !is_blank(text[w->at]); w->at++)
        if (n + 1 < size) buf[n++] = text[w->at];
    buf[n] = '\0';
    return true;
}

static bool named_before(const matrix *m, uint32_t n)
{
    for (uint32_t i = 0; i < n && m->end[n].kind == END_GPU; i++)
        if (m->end[i].kind == END_GPU && m->end[i].gpu == m->end[n].gpu)
            return true;
    return false;
}

static bool read_objects(matrix *m)
{
    words w = {.m = m, .name = "indexes"};
    char text[64];
    uint32_t n = 0;
    open_text(&w, m->at->child);
    for (; n < m->n && next_word(&w, text, sizeof text); n++) {
        const char *colon = strchr(text, ':');
        const hw_xml_node *o =
            by_index(m->h->doc.root, colon != NULL ? colon + 1 : text);
        if (o == NULL) {
            note(m, w.node, SC_C_REFERENCE,
                 "the NVLink matrix names an object that is not in the file");
            return false;
        }
        m->end[n] = end_of(m, o);
        if (named_before(m, n)) {
            note(m, w.node, SC_C_DUPLICATE,
                 "the NVLink matrix names a GPU twice");
            return false;
        }
    }
    if (n == m->n && !next_word(&w, text, sizeof text)) return true;
    note(m, m->at, SC_C_CONFLICT, "nbobjs is not the number of objects");
    return false;
}

static bool read_values(matrix *m)
{
    words w = {.m = m, .name = "u64values"};
    char text[64];
    size_t n = 0, all = (size_t)m->n * m->n;
    open_text(&w, m->at->child);
    for (; n < all && next_word(&w, text, sizeof text); n++) {
        char *rest;
        unsigned long long v = strtoull(text, &rest, 10);
        if (text[0] < '0' || text[0] > '9' || *rest != '\0' || v > 100000000) {
            note(m, w.node, SC_C_RANGE, "a bandwidth is not a number in MB/s");
            return false;
        }
        m->value[n] = (double)v;
    }
    if (n == all && !next_word(&w, text, sizeof text)) return true;
    note(m, m->at, SC_C_CONFLICT, "the NVLink matrix is not nbobjs by nbobjs");
    return false;
}

/* ---- links ---- */

/* MB/s of one NVLink, as hwloc writes them. */
static double one_link(uint32_t sm)
{
    return sm < 70 ? 20000 : sm < 100 ? 25000 : 50000;
}

static float width_of(const matrix *m, uint32_t i, uint32_t k)
{
    const hw_server *x = &m->h->x;
    double v = m->value[(size_t)i * m->n + k];
    return (float)(v / one_link(x->sm)) *
           hw_topo_nvlink(x->b.t->version, x->sm);
}

static uint32_t cpu_of(const sc_topo *t, uint32_t node)
{
    /* Parents were created before their children. */
    for (uint32_t i = 0;
         t->node[node].kind != SC_TOPO_CPU && i < t->node[node].n_links; i++)
        if (t->node[node].link[i].wire == SC_WIRE_PCI &&
            t->node[node].link[i].to < node)
            return cpu_of(t, t->node[node].link[i].to);
    return node;
}

static sc_status add_link(matrix *m, uint32_t i, uint32_t k)
{
    hw_topo *b = &m->h->x.b;
    uint32_t gpu = m->end[i].gpu, to = UINT32_MAX;
    switch (m->end[k].kind) {
    case END_GPU:
        if (!(m->value[(size_t)k * m->n + i] > 0)) {
            note(m, m->at, SC_C_CONFLICT, "an NVLink has only one direction");
            return m->h->status;
        }
        return hw_topo_link(b, gpu, m->end[k].gpu, SC_WIRE_NVLINK,
                            width_of(m, i, k));
    case END_SWITCH:
        if (b->t->n[SC_TOPO_NVS] == 0)
            SC_TRY(hw_topo_add(b, SC_TOPO_NVS, 0,
                               hw_xml_pos(&m->h->doc, m->at, NULL), &to));
        to = b->t->of[SC_TOPO_NVS][0];
        break;
    case END_CPU: to = cpu_of(b->t, gpu); break;
    case END_NONE: return SC_OK;
    }
    return hw_topo_join(b, gpu, to, SC_WIRE_NVLINK, width_of(m, i, k));
}

static void read_matrix(matrix *m)
{
    uint64_t n;
    if (!hw_hwloc_number(m->h, m->at, "nbobjs", MAX_SIDE, &n)) return;
    m->n = (uint32_t)n;
    m->end = SC_NEW_N(m->h->arena, end, m->n);
    m->value = SC_NEW_N(m->h->arena, double, (size_t)m->n * m->n);
    if (m->end == NULL || m->value == NULL) {
        hw_hwloc_note(m->h, sc_error_nomem(m->h->err));
        return;
    }
    if (!read_objects(m) || !read_values(m)) return;
    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t k = 0; k < m->n && m->h->status == SC_OK; k++)
            if (i != k && m->end[i].kind == END_GPU &&
                m->value[(size_t)i * m->n + k] > 0)
                hw_hwloc_note(m->h, add_link(m, i, k));
}

bool hw_hwloc_nvlinks(hw_hwloc *h)
{
    for (const hw_xml_node *n = h->doc.root->child; n != NULL; n = n->next) {
        const char *name = hw_xml_get(n, "name");
        if (strncmp(n->name, "distances2", 10) != 0 || name == NULL ||
            strcmp(name, "NVLinkBandwidth") != 0)
            continue;
        matrix m = {.h = h, .at = n};
        read_matrix(&m);
        return true;
    }
    return false;
}
