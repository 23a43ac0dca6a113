/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_xml.h - a small XML document as a tree, read with expat. */
#ifndef HW_NCCL_XML_H
#define HW_NCCL_XML_H

#include "base/base.h"

#define HW_XML_BYTES    ((size_t)8 << 20)
#define HW_XML_DEPTH    32
#define HW_XML_ELEMENTS 65536

typedef struct hw_xml_attr {
    const char *key, *value; /* terminated */
} hw_xml_attr;

typedef struct hw_xml_node hw_xml_node;

struct hw_xml_node {
    const char *name;
    size_t offset; /* of its '<' in the text */
    uint32_t n_attrs;
    hw_xml_attr *attr;
    hw_xml_node *parent, *child, *last, *next;
};

typedef struct hw_xml {
    const char *file;
    const char *text; /* a copy, terminated */
    size_t len;
    uint32_t n; /* elements */
    hw_xml_node *root;
} hw_xml;

/* Everything lives in the arena. `doctype` is the only document type that the
 * text may name, although it is not read; NULL: none. */
sc_status hw_xml_parse(const char *text, size_t len, const char *file,
                       const char *doctype, sc_arena *a, hw_xml *out,
                       sc_err *err);

/* The value of an attribute; NULL if the element does not have it. */
const char *hw_xml_get(const hw_xml_node *n, const char *key);

/* The offset of the text in an element without children. References to entities
 * are not replaced. */
size_t hw_xml_content(const hw_xml *x, const hw_xml_node *n, size_t *len);

/* The position of an attribute's name, or of the element if `key` is NULL or
 * missing. */
sc_pos hw_xml_pos(const hw_xml *x, const hw_xml_node *n, const char *key);

#endif
