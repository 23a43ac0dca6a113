/* SPDX-License-Identifier: Apache-2.0 */
/*
 * et_args.c - the arguments of a node in the form in which Kineto records shapes:
 * dims "[[32, 64], [64], []]", types '["float", "Scalar", ""]' and scalars
 * '["", "1", "[3, 3]"]'.
 *
 * Of a list of tensors Kineto only says that it is one; here it has the dims of
 * its tensors and the type of the first.
 */
#include "trace/et.h"

#include <stdlib.h>
#include <string.h>

#define MOST_LISTED 512 /* ranks of a group that are written as a list */

static bool is_list(const scan_token *type)
{
    return type->len > 12 && memcmp(type->at, "GenericList[", 12) == 0;
}

/* "Tensor(c10::Half)" and "GenericList[Tensor(c10::Half),...]" have "c10::Half".
 * Types have brackets of their own: "Tensor(nullptr (uninitialized))". */
static scan_token element_type(const scan_token *type)
{
    scan_token out = {SCAN_STRING, type->at, 0};
    const char *open = memchr(type->at, '(', type->len);
    int depth = 0;
    if (!open) return out;
    out.at = open + 1;
    for (const char *p = open; p < type->at + type->len; p++) {
        depth += (*p == '(') - (*p == ')');
        if (depth > 0) continue;
        out.len = (uint32_t)(p - out.at);
        break;
    }
    return out;
}

static void put(sc_text *to, const char *text)
{
    sc_text_put(to, text, strlen(text));
}

/* A list of numbers with a blank behind each comma. */
static void add_list(sc_text *to, const scan_token *t)
{
    for (const char *p = t->at, *end = p + t->len; p < end;) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        const char *stop = comma ? comma : end;
        sc_text_put(to, p, (size_t)(stop - p));
        if (comma) put(to, ", ");
        for (p = stop + (comma != NULL); p < end && (unsigned char)*p <= ' ';)
            p++;
    }
}

static void add_type(sc_text *to, const scan_token *type, bool tensors)
{
    static const char *const scalars[] = {"Int", "Double", "Bool", "Float"};
    scan_token name = element_type(type);
    put(to, "\"");
    if (tensors) {
        sc_text_put(to, name.at, name.len);
    } else if (is_list(type)) {
        put(to, "ScalarList");
    } else {
        for (size_t i = 0; i < SC_COUNT(scalars); i++)
            if (scan_is(type, scalars[i], strlen(scalars[i])))
                put(to, "Scalar");
    }
    put(to, "\"");
}

/* Of scalars and lists of them; lists of texts have quotes of their own. */
static void add_concrete(sc_text *to, const scan_token *value,
                         const scan_token *type)
{
    bool text = value->type == SCAN_STRING || value->type == SCAN_OBJECT ||
                memchr(value->at, '"', value->len);
    put(to, "\"");
    if (SCAN_IS(value, "true"))
        put(to, "True");
    else if (SCAN_IS(value, "false"))
        put(to, "False");
    else if (!text && (value->type == SCAN_NUMBER || is_list(type)))
        add_list(to, value);
    put(to, "\"");
}

typedef enum part { DIMS, TYPES, CONCRETE } part;

/* One of the three texts; 0 if the node has no inputs. */
static uint32_t text_of(et_ops *x, const sc_et_node *n, part what)
{
    sc_et_args it;
    scan_token value, shape, type;
    sc_text *to = &x->text;
    const char *sep = "[";
    to->len = 0;
    sc_et_args_init(&it, &n->in);
    while (sc_et_args_next(&it, &value, &shape, &type)) {
        bool tensors = sc_et_is_tensor(&type) || sc_et_is_tensor_list(&type);
        put(to, sep);
        sep = ", ";
        if (what == TYPES)
            add_type(to, &type, tensors);
        else if (what == DIMS && tensors)
            add_list(to, &shape);
        else if (what == DIMS)
            put(to, "[]");
        else if (tensors)
            put(to, "\"\"");
        else
            add_concrete(to, &value, &type);
    }
    if (to->len == 0) return 0;
    put(to, "]");
    return profiled_name(&x->p, to->buf, to->len);
}

/* ---- collectives --------------------------------------------------------- */

/* Elements of the tensors of a side, and the type of the first. */
static uint64_t count_elements(const sc_et_side *s, scan_token *type)
{
    sc_et_args it;
    scan_token value, shape, t, e;
    sc_et_tensor x;
    uint64_t sum = 0;
    sc_et_args_init(&it, s);
    while (sc_et_args_next(&it, &value, &shape, &t)) {
        bool list = sc_et_is_tensor_list(&t) && value.type == SCAN_ARRAY;
        if (!list && !sc_et_is_tensor(&t)) continue;
        if (type->type == SCAN_NONE) *type = element_type(&t);
        if (!list && sc_et_tensor_read(&value, &x)) sum += x.elements;
        const char *p = value.at + 1, *end = value.at + value.len;
        while (list && scan_element(&p, end, &e))
            if (sc_et_tensor_read(&e, &x)) sum += x.elements;
    }
    return sum;
}

/* Before schema 1.1.0, a collective's kind is the text among its inputs, and its
 * group the first text of a pair; the last three numbers are the group's first
 * rank, stride and size, if there is a pair. */
static void from_inputs(const sc_et_node *n, sc_et_node *out)
{
    sc_et_args it;
    scan_token value, shape, type, last[3] = {{0}}, e;
    bool pair = false;
    sc_et_args_init(&it, &n->in);
    while (sc_et_args_next(&it, &value, &shape, &type)) {
        if (SCAN_IS(&type, "String")) out->coll = value;
        if (SCAN_IS(&type, "Tuple[String,String]")) {
            const char *p = value.at + 1;
            pair = scan_element(&p, value.at + value.len, &e);
            if (pair) out->group = e;
        }
        last[0] = last[1];
        last[1] = last[2];
        last[2] = value;
    }
    if (!pair) return;
    out->first_rank = last[0];
    out->rank_stride = last[1];
    out->group_size = last[2];
}

/* Ranks by the first one and their distance: "[0, 2, 4]". */
static uint32_t listed_ranks(et_ops *x, const sc_et_node *n, uint64_t size)
{
    uint64_t first, stride;
    if (!sc_et_whole(&n->first_rank, &first) ||
        !sc_et_whole(&n->rank_stride, &stride) || size < 2 ||
        size > MOST_LISTED || stride > UINT32_MAX || first > UINT32_MAX)
        return 0;
    x->text.len = 0;
    for (uint64_t i = 0; i < size; i++)
        sc_text_add(&x->text, "%s%llu", i ? ", " : "[",
                    (unsigned long long)(first + i * stride));
    sc_text_add(&x->text, "]");
    return profiled_name(&x->p, x->text.buf, x->text.len);
}

static void add_comm(et_ops *x, const sc_et_node *n, sc_trace_span_args *args)
{
    sc_et_node c = *n;
    scan_token type = {0};
    uint64_t size = 0;
    if (c.coll.type == SCAN_NONE) from_inputs(n, &c);
    if (c.coll.type != SCAN_STRING || SCAN_IS(&c.coll, "wait")) return;
    if (!scan_uint(&c.in_elems, &args->in_elems))
        args->in_elems = count_elements(&n->in, &type);
    if (!scan_uint(&c.out_elems, &args->out_elems))
        args->out_elems = count_elements(&n->out, &type);
    if (c.dtype.type == SCAN_NONE) c.dtype = type;
    (void)sc_et_whole(&c.group_size, &size);
    args->group_size = size < UINT32_MAX ? (uint32_t)size : 0;
    args->coll = profiled_token(&x->p, &c.coll);
    args->dtype = profiled_token(&x->p, &c.dtype);
    args->group = profiled_token(&x->p, &c.group);
    args->ranks = listed_ranks(x, &c, size);
}

bool et_args_of(et_ops *x, const sc_et_node *n, uint32_t *out)
{
    sc_trace_span_args args = profiled_no_args;
    args.dims = text_of(x, n, DIMS);
    args.types = text_of(x, n, TYPES);
    args.concrete = text_of(x, n, CONCRETE);
    if (SCAN_IS(&n->name, "record_param_comms")) add_comm(x, n, &args);
    *out = profiled_args(&x->p, &args);
    return !x->p.out_of_memory;
}
