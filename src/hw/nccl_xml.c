/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_xml.c - reads XML with expat.
 *
 * The parser can only read the text: no network, no files, no DTD (hence only
 * the five entities of XML), and no encoding but UTF-8.
 */
#include "hw/nccl_xml.h"

#include "base/utf8.h"

#include <expat.h>
#include <string.h>

typedef struct reader {
    hw_xml *doc;
    sc_arena *arena;
    sc_err *err;
    sc_status status; /* of the first error */
    XML_Parser parser;
    const char *doctype; /* that may be named */
    hw_xml_node *open;
    uint32_t depth;
} reader;

static void stop(reader *r, sc_status status)
{
    if (r->status == SC_OK) r->status = status;
    XML_StopParser(r->parser, XML_FALSE);
}

/* Position of the markup that expat reports. */
static size_t markup_offset(const reader *r)
{
    XML_Index at = XML_GetCurrentByteIndex(r->parser);
    return at < 0 ? 0 : (size_t)at;
}

/* Stores name and value in turn, after the last NULL. */
static bool copy_attrs(reader *r, hw_xml_node *node, const XML_Char **attrs)
{
    while (attrs[(size_t)2 * node->n_attrs] != NULL) node->n_attrs++;
    node->attr = SC_NEW_N(r->arena, hw_xml_attr, node->n_attrs);
    if (node->attr == NULL) return false;
    for (uint32_t i = 0; i < node->n_attrs; i++) {
        hw_xml_attr *to = &node->attr[i];
        to->key = sc_strdup(r->arena, attrs[(size_t)2 * i]);
        to->value = sc_strdup(r->arena, attrs[(size_t)2 * i + 1]);
        if (to->key == NULL || to->value == NULL) return false;
    }
    return true;
}

static void start_element(void *ctx, const XML_Char *name,
                          const XML_Char **attrs)
{
    reader *r = ctx;
    if (r->status != SC_OK) return;
    hw_xml_node *node = SC_NEW(r->arena, hw_xml_node);
    if (node == NULL || !copy_attrs(r, node, attrs) ||
        (node->name = sc_strdup(r->arena, name)) == NULL) {
        stop(r, sc_error_nomem(r->err));
        return;
    }
    node->offset = markup_offset(r);
    node->parent = r->open;
    if (++r->depth > HW_XML_DEPTH || ++r->doc->n > HW_XML_ELEMENTS) {
        stop(r, sc_error(r->err, SC_EINPUT, SC_C_TOO_BIG,
                         hw_xml_pos(r->doc, node, NULL), NULL,
                         "the file has more than %d elements, or nests them "
                         "deeper than %d",
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

static void end_element(void *ctx, const XML_Char *name)
{
    reader *r = ctx;
    (void)name;
    if (r->open == NULL) return;
    r->open = r->open->parent;
    r->depth--;
}

static sc_pos here(const reader *r)
{
    return utf8_position(r->doc->text, r->doc->len, markup_offset(r),
                         r->doc->file);
}

static void refuse(reader *r)
{
    size_t i = markup_offset(r); /* of what ends it */
    if (r->status != SC_OK) return;
    while (i > 0 && r->doc->text[i] != '<') i--;
    sc_pos at = utf8_position(r->doc->text, r->doc->len, i, r->doc->file);
    stop(r, sc_error(r->err, SC_EINPUT, SC_C_UNSUPPORTED, at,
                     "remove <!DOCTYPE ...>", "document types are not read"));
}

static void on_doctype(void *ctx, const XML_Char *name, const XML_Char *system,
                       const XML_Char *public, int has_subset)
{
    reader *r = ctx;
    (void)system, (void)public, (void)has_subset;
    if (r->doctype == NULL || strcmp(name, r->doctype) != 0) refuse(r);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are expat's */
static void on_entity(void *ctx, const XML_Char *name, int is_parameter,
                      const XML_Char *value, int length, const XML_Char *base,
                      const XML_Char *system, const XML_Char *public,
                      const XML_Char *notation)
{
    (void)name, (void)is_parameter, (void)value, (void)length, (void)base;
    (void)system, (void)public, (void)notation;
    refuse(ctx);
}

static sc_status not_well_formed(const reader *r, const char *why)
{
    return sc_error(r->err, SC_EINPUT, SC_C_SYNTAX, here(r), NULL,
                    "bad XML: %s", why);
}

/* Reports an entity that only a document type could define, which is not read. */
static void on_skipped(void *ctx, const XML_Char *name, int is_parameter)
{
    reader *r = ctx;
    (void)name, (void)is_parameter;
    if (r->status == SC_OK)
        stop(r, not_well_formed(r, "an entity is not defined"));
}

static sc_status run(reader *r, const char *text, size_t len)
{
    XML_SetUserData(r->parser, r);
    XML_SetElementHandler(r->parser, start_element, end_element);
    XML_SetStartDoctypeDeclHandler(r->parser, on_doctype);
    XML_SetEntityDeclHandler(r->parser, on_entity);
    XML_SetSkippedEntityHandler(r->parser, on_skipped);
    enum XML_Status s = XML_Parse(r->parser, text, (int)len, XML_TRUE);
    if (r->status != SC_OK || s == XML_STATUS_OK) return r->status;
    enum XML_Error code = XML_GetErrorCode(r->parser);
    if (code == XML_ERROR_NO_MEMORY) return sc_error_nomem(r->err);
    if (code == XML_ERROR_NO_ELEMENTS && r->open != NULL)
        return sc_error(r->err, SC_EINPUT, SC_C_SYNTAX, here(r), NULL,
                        "bad XML: <%.60s> of line %u is not closed",
                        r->open->name, hw_xml_pos(r->doc, r->open, NULL).line);
    return not_well_formed(r, XML_ErrorString(code));
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
    doc.len = strlen(doc.text); /* a NUL in it is reported below */
    reader r = {.doc = &doc, .arena = a, .err = err, .doctype = doctype};
    r.parser = XML_ParserCreate("UTF-8");
    if (r.parser == NULL) return sc_error_nomem(err);
    sc_status s = run(&r, text, len);
    XML_ParserFree(r.parser);
    if (s == SC_OK) *out = doc;
    return s;
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
