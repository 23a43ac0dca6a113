/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_xml.c - XML by libxml2's SAX interface.
 *
 * The parser gets no way to anything but the text: no network, no files, no
 * DTD (hence no entities but the five of XML), no encoding but UTF-8.
 */
#include "hw/nccl_xml.h"

#include "base/utf8.h"

#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <string.h>

typedef struct reader {
    hw_xml *doc;
    sc_arena *arena;
    sc_err *err;
    sc_status status; /* of the first error */
    xmlParserCtxtPtr parser;
    const char *doctype; /* that may be named */
    hw_xml_node *open;
    uint32_t depth;
} reader;

static void stop(reader *r, sc_status status)
{
    if (r->status == SC_OK) r->status = status;
    xmlStopParser(r->parser);
}

/* Start elements are reported at the end of the tag; no '<' stands inside. */
static size_t tag_offset(const reader *r)
{
    long at = xmlByteConsumed(r->parser);
    size_t i = at < 0 ? 0 : (size_t)at;
    if (i >= r->doc->len) i = r->doc->len - 1;
    while (i > 0 && r->doc->text[i] != '<') i--;
    return i;
}

/* Five pointers each: name, prefix, URI, value and its end. */
static bool copy_attrs(reader *r, hw_xml_node *node, int n,
                       const xmlChar **attrs)
{
    node->n_attrs = (uint32_t)n;
    node->attr = SC_NEW_N(r->arena, hw_xml_attr, (size_t)n);
    if (node->attr == NULL) return false;
    for (int i = 0; i < n; i++, attrs += 5) {
        size_t len = (size_t)(attrs[4] - attrs[3]);
        hw_xml_attr *to = &node->attr[i];
        to->key = sc_strdup(r->arena, (const char *)attrs[0]);
        to->value = sc_strndup(r->arena, (const char *)attrs[3], len);
        if (to->key == NULL || to->value == NULL) return false;
    }
    return true;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are libxml2's */
static void start_element(void *ctx, const xmlChar *name, const xmlChar *prefix,
                          const xmlChar *uri, int n_namespaces,
                          const xmlChar **namespaces, int n_attrs,
                          int n_defaulted, const xmlChar **attrs)
{
    reader *r = ctx;
    (void)prefix, (void)uri, (void)n_namespaces, (void)namespaces;
    (void)n_defaulted;
    if (r->status != SC_OK) return;
    hw_xml_node *node = SC_NEW(r->arena, hw_xml_node);
    if (node == NULL || !copy_attrs(r, node, n_attrs, attrs) ||
        (node->name = sc_strdup(r->arena, (const char *)name)) == NULL) {
        stop(r, sc_error_nomem(r->err));
        return;
    }
    node->offset = tag_offset(r);
    node->parent = r->open;
    if (++r->depth > HW_XML_DEPTH || ++r->doc->n > HW_XML_ELEMENTS) {
        stop(r, sc_error(r->err, SC_EINPUT, SC_C_TOO_BIG,
                         hw_xml_pos(r->doc, node, NULL), NULL,
                         "more than %d elements, or nested deeper than %d",
                         HW_XML_ELEMENTS, HW_XML_DEPTH));
        return;
    }
    if (r->open == NULL)
        r->doc->root = node;
    else if (r->open->last == NULL)
        r->open->child = node;
    else
        r->open->last->next = node;
    if (r->open != NULL) r->open->last = node;
    r->open = node;
}

static void end_element(void *ctx, const xmlChar *name, const xmlChar *prefix,
                        const xmlChar *uri)
{
    reader *r = ctx;
    (void)name, (void)prefix, (void)uri;
    if (r->open == NULL) return;
    r->open = r->open->parent;
    r->depth--;
}

static void refuse(reader *r)
{
    if (r->status != SC_OK) return;
    sc_pos at =
        utf8_position(r->doc->text, r->doc->len, tag_offset(r), r->doc->file);
    stop(r, sc_error(r->err, SC_EINPUT, SC_C_UNSUPPORTED, at,
                     "remove <!DOCTYPE ...>", "document types are not read"));
}

static void on_dtd(void *ctx, const xmlChar *name, const xmlChar *public_id,
                   const xmlChar *system_id)
{
    reader *r = ctx;
    (void)public_id, (void)system_id;
    if (r->doctype == NULL || strcmp((const char *)name, r->doctype) != 0)
        refuse(r);
}

/* libxml2's type, not const where it could be */
static void on_entity(void *ctx, const xmlChar *name, int type,
                      const xmlChar *public_id, const xmlChar *system_id,
                      /* NOLINTNEXTLINE(readability-non-const-parameter) */
                      xmlChar *content)
{
    (void)name, (void)type, (void)public_id, (void)system_id, (void)content;
    refuse(ctx);
}

#if LIBXML_VERSION >= 21200
typedef const xmlError *error_arg;
#else
typedef xmlErrorPtr error_arg;
#endif

static void on_error(void *ctx, error_arg e)
{
    reader *r = ctx;
    if (r->status != SC_OK || e->level < XML_ERR_ERROR) return;
    if (e->code == XML_ERR_NO_MEMORY) {
        stop(r, sc_error_nomem(r->err));
        return;
    }
    sc_pos at = {r->doc->file, e->line > 0 ? (uint32_t)e->line : 0,
                 e->int2 > 0 ? (uint32_t)e->int2 : 0};
    const char *text = e->message == NULL ? "not readable" : e->message;
    int len = (int)strcspn(text, "\n");
    stop(r, sc_error(r->err, SC_EINPUT, SC_C_SYNTAX, at, NULL, "bad XML: %.*s",
                     len, text));
}

static void run(reader *r)
{
    xmlSAXHandler sax;
    memset(&sax, 0, sizeof sax);
    sax.initialized = XML_SAX2_MAGIC;
    sax.startElementNs = start_element;
    sax.endElementNs = end_element;
    sax.internalSubset = on_dtd;
    sax.entityDecl = on_entity;
    sax.serror = on_error;
    *r->parser->sax = sax;
    r->parser->userData = r;
    xmlCtxtUseOptions(r->parser, XML_PARSE_NONET | XML_PARSE_IGNORE_ENC);
    /* The call above may have set handlers for its own tree. */
    *r->parser->sax = sax;
    xmlParseDocument(r->parser);
}

sc_status hw_xml_parse(const char *text, size_t len, const char *file,
                       const char *doctype, sc_arena *a, hw_xml *out,
                       sc_err *err)
{
    hw_xml doc = {.file = file, .len = len};
    sc_pos start = {file, 1, 1};
    if (len > HW_XML_BYTES)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, start, NULL,
                        "%zu bytes of XML are too many", len);
    SC_TRY(utf8_check(text, len, file, err));
    if (len == 0)
        return sc_error(err, SC_EINPUT, SC_C_SYNTAX, start, NULL,
                        "bad XML: the file is empty");
    doc.text = sc_strndup(a, text, len);
    if (doc.text == NULL) return sc_error_nomem(err);
    reader r = {.doc = &doc, .arena = a, .err = err, .doctype = doctype};
    r.parser = xmlCreateMemoryParserCtxt(text, (int)len);
    if (r.parser == NULL) return sc_error_nomem(err);
    run(&r);
    bool good = r.parser->wellFormed == 1 && doc.root != NULL;
    xmlDocPtr left = r.parser->myDoc;
    r.parser->myDoc = NULL;
    if (left != NULL) xmlFreeDoc(left);
    xmlFreeParserCtxt(r.parser);
    if (r.status != SC_OK) return r.status;
    if (!good)
        return sc_error(err, SC_EINPUT, SC_C_SYNTAX, start, NULL,
                        "bad XML: not well-formed");
    *out = doc;
    return SC_OK;
}

const char *hw_xml_get(const hw_xml_node *n, const char *key)
{
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (strcmp(n->attr[i].key, key) == 0) return n->attr[i].value;
    return NULL;
}

size_t hw_xml_content(const hw_xml *x, const hw_xml_node *n, size_t *len)
{
    size_t i = n->offset;
    char quote = '\0';
    *len = 0;
    while (i < x->len && (quote != '\0' || x->text[i] != '>')) {
        char c = x->text[i++];
        if (quote == '\0' && (c == '"' || c == '\''))
            quote = c;
        else if (c == quote)
            quote = '\0';
    }
    if (i == x->len || x->text[i - 1] == '/') return i;
    i++;
    while (i + *len < x->len && x->text[i + *len] != '<') ++*len;
    return i;
}

/* Offset of an attribute's name in a well-formed tag, or of the tag. */
static size_t attr_offset(const hw_xml *x, size_t tag, const char *key)
{
    static const char blank[] = " \t\r\n";
    size_t i = tag + 1 + strcspn(x->text + tag + 1, " \t\r\n/>");
    for (;;) {
        i += strspn(x->text + i, blank);
        size_t len = strcspn(x->text + i, " \t\r\n=/>");
        if (len == 0) return tag;
        if (len == strlen(key) && memcmp(x->text + i, key, len) == 0) return i;
        i += len + strspn(x->text + i + len, " \t\r\n=");
        char quote[2] = {x->text[i], '\0'};
        if (quote[0] != '"' && quote[0] != '\'') return tag;
        i += 1 + strcspn(x->text + i + 1, quote);
        if (x->text[i] == '\0') return tag;
        i++;
    }
}

sc_pos hw_xml_pos(const hw_xml *x, const hw_xml_node *n, const char *key)
{
    size_t at = key == NULL ? n->offset : attr_offset(x, n->offset, key);
    return utf8_position(x->text, x->len, at, x->file);
}
