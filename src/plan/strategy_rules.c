/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_rules.c - strategy.yml: the list of rules. */
#include "plan/strategy.h"

#include <stdio.h>
#include <string.h>

#define MAX_MATCH  120 /* characters of a pattern */
#define MAX_INPUTS 16

/* ---- axes ------------------------------------------------------------ */

static void unknown_axis(strategy_reader *r, const char *name, sc_pos pos)
{
    const sc_strategy *s = r->s;
    const char *names[SC_MESH_AXES + 1] = {NULL};
    char hint[200] = "axes are";
    size_t at = strlen(hint);
    if (s->n_axes == 0) {
        r->no_mesh = true; /* so that it is reported once */
        strategy_wrong(r, SC_C_REFERENCE, pos, "add mesh: {dp: 4, tp: 4}",
                       "axis \"%.40s\" needs a mesh in the strategy", name);
        return;
    }
    for (uint32_t i = 0; i < s->n_axes; i++) {
        names[i] = s->axis[i].name;
        at += (size_t)snprintf(hint + at, sizeof hint - at, "%s %s",
                               i ? "," : "", names[i]);
        if (at >= sizeof hint) break;
    }
    const char *near = sc_nearest(name, names);
    if (near) snprintf(hint, sizeof hint, "did you mean %s?", near);
    strategy_wrong(r, SC_C_REFERENCE, pos, hint,
                   "the mesh has no axis \"%.40s\"", name);
}

int strategy_axis_of(strategy_reader *r, const char *name, sc_pos pos)
{
    for (uint32_t i = 0; i < r->s->n_axes; i++)
        if (strcmp(r->s->axis[i].name, name) == 0) return (int)i;
    if (!r->no_mesh) unknown_axis(r, name, pos);
    return -1;
}

static sc_axes add_axis(strategy_reader *r, sc_axes list, const sc_node *n)
{
    if (n->kind != SC_N_SCALAR) {
        strategy_wrong(r, SC_C_TYPE, n->pos, "write dp or [tp, cp]",
                       "the name of an axis was expected");
        return list;
    }
    int axis = strategy_axis_of(r, n->text, n->pos);
    if (axis < 0) return list;
    if (sc_axes_mask(list) >> axis & 1) {
        strategy_wrong(r, SC_C_CONFLICT, n->pos, NULL,
                       "axis %s is twice in one list", n->text);
        return list;
    }
    return sc_axes_add(list, (uint32_t)axis);
}

/* All axes but pp, which does not split operators. */
static sc_axes all_axes(const sc_strategy *s)
{
    return sc_strategy_axes(s, ~(1u << SC_AX_PP));
}

/* Reads "dp", [tp, cp], all or none. */
static sc_axes strategy_axes(strategy_reader *r, const sc_node *n)
{
    sc_axes list = 0;
    bool word = n->kind == SC_N_SCALAR;
    if (word && strcmp(n->text, "none") == 0) return 0;
    if (word && strcmp(n->text, "all") == 0) return all_axes(r->s);
    if (n->kind != SC_N_SEQ) return add_axis(r, 0, n);
    for (const sc_node *e = n->child; e; e = e->next)
        list = add_axis(r, list, e);
    return list;
}

/* ---- one rule -------------------------------------------------------- */

typedef struct rule_words {
    const char *match, *tensor;
    int assign;
    const sc_node *recompute, *split, *place, *over, *devices;
} rule_words;

#define OFF(f) offsetof(rule_words, f)

static const char *const assign_names[] = {"round_robin", "balanced", NULL};

static const sc_key rule_keys[] = {
    {.name = "match",
     .type = SC_T_STRING,
     .offset = OFF(match),
     .help = "pattern on module paths, such as layers.*.qkv",
     .required = true},
    {.name = "split",
     .type = SC_T_NODE,
     .offset = OFF(split),
     .help = "dimensions of the operator and the axes that split them"},
    {.name = "tensor",
     .type = SC_T_STRING,
     .offset = OFF(tensor),
     .help = "tensor that place applies to"},
    {.name = "place",
     .type = SC_T_NODE,
     .offset = OFF(place),
     .help = "dimensions of the tensor and the axes that split them, or cpu, "
             "nvme, device"},
    {.name = "recompute",
     .type = SC_T_NODE,
     .offset = OFF(recompute),
     .help =
         "recomputed in the backward pass: yes, no, {uniform: 2}, {block: 3}"},
    {.name = "assign",
     .type = SC_T_ENUM,
     .offset = OFF(assign),
     .names = assign_names,
     .help = "whole operators are assigned to single ranks"},
    {.name = "over",
     .type = SC_T_NODE,
     .offset = OFF(over),
     .help = "axes of assign"},
    {.name = "devices",
     .type = SC_T_NODE,
     .offset = OFF(devices),
     .help = "coordinates on axes, or pool.NAME"},
    {0}};

static void read_tensor(strategy_reader *r, const sc_node *n,
                        sc_strategy_rule *rule)
{
    char hint[160] = "one of";
    size_t at = strlen(hint);
    if (!n || n->kind != SC_N_SCALAR) return;
    const char *text = n->text;
    bool input = strncmp(text, "in:", 3) == 0;
    size_t digits = input ? strspn(text + 3, "0123456789") : 0;
    if (input && digits && digits < 3 && !text[3 + digits]) {
        uint32_t k = (uint32_t)(text[3] - '0');
        if (digits == 2) k = 10 * k + (uint32_t)(text[4] - '0');
        rule->tensor = SC_RT_IN;
        rule->input = k;
        if (k < MAX_INPUTS) return;
    }
    for (int i = SC_RT_WEIGHT; !input && i < SC_N_RULE_TENSORS; i++)
        if (strcmp(text, sc_rule_tensor_names[i]) == 0) {
            rule->tensor = (sc_rule_tensor)i;
            return;
        }
    for (int i = SC_RT_WEIGHT; i < SC_N_RULE_TENSORS; i++)
        at += (size_t)snprintf(hint + at, sizeof hint - at, "%s %s",
                               i > SC_RT_WEIGHT ? "," : "",
                               sc_rule_tensor_names[i]);
    strategy_wrong(r, SC_C_UNKNOWN_NAME, n->pos, hint,
                   "\"%.40s\" is not a tensor of an operator", text);
}

/* An axis may split only one dim in a rule: a second use would contradict the
 * first. */
static void axis_once(strategy_reader *r, const sc_strategy_rule *rule,
                      const sc_rule_split *now, uint32_t before)
{
    for (uint32_t i = 0; i < before; i++) {
        uint32_t both =
            sc_axes_mask(rule->split[i].axes) & sc_axes_mask(now->axes);
        for (uint32_t ax = 0; both >> ax; ax++)
            if (both >> ax & 1)
                strategy_wrong(r, SC_C_CONFLICT, now->pos,
                               "an axis can split only one dimension",
                               "axis %s splits both %s and %s",
                               r->s->axis[ax].name, rule->split[i].dim,
                               now->dim);
    }
}

static void read_split(strategy_reader *r, const sc_node *map,
                       sc_strategy_rule *rule)
{
    if (map->kind != SC_N_MAP) {
        strategy_wrong(r, SC_C_TYPE, map->pos, "{batch: dp, out: [tp, cp]}",
                       "%s must be a mapping of dimensions to axes", map->key);
        return;
    }
    rule->has_split = true;
    rule->split = SC_NEW_N(r->a, sc_rule_split, map->n);
    if (!rule->split) {
        strategy_keep(r, sc_error_nomem(r->err));
        return;
    }
    for (const sc_node *n = map->child; n; n = n->next) {
        sc_rule_split *d = &rule->split[rule->n_split];
        *d = (sc_rule_split){n->key, strategy_axes(r, n), n->key_pos};
        axis_once(r, rule, d, rule->n_split++);
    }
}

static void read_place(strategy_reader *r, const sc_node *map,
                       sc_strategy_rule *rule)
{
    const sc_node *n = sc_node_get(map, "place");
    if (!n) return;
    if (!sc_node_get(map, "tensor"))
        strategy_wrong(
            r, SC_C_MISSING, n->pos,
            "write tensor: weight, bias, grad, optim, out, out_grad or in",
            "place needs the tensor that it applies to");
    if (n->kind != SC_N_SCALAR) {
        read_split(r, n, rule);
        return;
    }
    for (int i = 0; sc_tier_names[i]; i++)
        if (strcmp(n->text, sc_tier_names[i]) == 0) rule->tier = i;
    if (rule->tier < 0)
        strategy_wrong(r, SC_C_UNKNOWN_NAME, n->pos,
                       "device, expanded, cpu, nvme, or {dim0: dp}",
                       "\"%.40s\" is not a place for a tensor", n->text);
}

static void read_assign(strategy_reader *r, const sc_node *map,
                        sc_strategy_rule *rule)
{
    const sc_node *assign = sc_node_get(map, "assign");
    const sc_node *over = sc_node_get(map, "over");
    if (assign && !over)
        strategy_wrong(
            r, SC_C_MISSING, assign->pos, "over: dp",
            "assign needs the axes over whose ranks operators are distributed");
    if (over && !assign)
        strategy_wrong(r, SC_C_MISSING, over->pos, "assign: round_robin",
                       "over needs assign");
    if (!over) return;
    rule->assign = strategy_axes(r, over);
    bool none = over->kind == SC_N_SCALAR && strcmp(over->text, "none") == 0;
    if (none || (over->kind == SC_N_SEQ && over->n == 0))
        strategy_wrong(r, SC_C_MISSING, over->pos, "over: dp",
                       "over names no axis");
}

static void read_pool(strategy_reader *r, const sc_node *n,
                      sc_strategy_rule *rule)
{
    const sc_strategy *s = r->s;
    const char *name = n->text + 5;
    if (strncmp(n->text, "pool.", 5) != 0) {
        strategy_wrong(r, SC_C_TYPE, n->pos, "write {pp: 1} or pool.NAME",
                       "\"%.40s\" does not name devices", n->text);
        return;
    }
    rule->pool = name;
    for (uint32_t i = 0; i < s->n_pools; i++)
        if (s->pool[i].name && strcmp(s->pool[i].name, name) == 0) return;
    strategy_wrong(r, SC_C_REFERENCE, n->pos,
                   "define it under pools:", "there is no pool \"%.40s\"",
                   name);
}

static void read_coordinate(strategy_reader *r, const sc_node *n,
                            sc_strategy_rule *rule)
{
    int64_t coord = 0;
    int axis = strategy_axis_of(r, n->key, n->key_pos);
    if (axis < 0 || rule->n_at == SC_MESH_AXES) return;
    const sc_key key = {.name = n->key, .type = SC_T_INT, .unit = SC_U_COUNT};
    bool bare = n->kind == SC_N_SCALAR && !n->quoted;
    sc_status s = SC_OK;
    if (!bare)
        strategy_wrong(r, SC_C_TYPE, n->pos, NULL,
                       "a coordinate on %s must be a whole number", n->key);
    else
        s = sc_schema_set(&key, n->text, n->pos, &coord, r->a, r->err);
    strategy_keep(r, s);
    if (s != SC_OK || !bare) return;
    uint32_t size = r->s->axis[axis].size;
    if (coord < 0 || (coord >= (int64_t)size && !r->no_sizes)) {
        strategy_wrong(
            r, SC_C_RANGE, n->pos, NULL,
            "coordinate %lld is outside of axis %s, which has 0 to %u",
            (long long)coord, n->key, size - 1);
        return;
    }
    rule->at[rule->n_at].axis = (uint8_t)axis;
    rule->at[rule->n_at++].coord = (uint32_t)coord;
}

static void read_devices(strategy_reader *r, const sc_node *n,
                         sc_strategy_rule *rule)
{
    if (!n) return;
    if (n->kind == SC_N_SCALAR) {
        read_pool(r, n, rule);
        return;
    }
    if (n->kind != SC_N_MAP || n->n == 0) {
        strategy_wrong(r, SC_C_TYPE, n->pos, "write {pp: 1} or pool.NAME",
                       "devices must be coordinates on axes, or a pool");
        return;
    }
    for (const sc_node *c = n->child; c; c = c->next)
        read_coordinate(r, c, rule);
}

/* Reads `yes`, `no`, or a method with a number of blocks: {uniform: 2}. */
static void read_recompute(strategy_reader *r, const sc_node *n,
                           sc_strategy_rule *rule)
{
    const sc_key word = {.name = "recompute", .type = SC_T_BOOL};
    const sc_key size = {.name = "recompute",
                         .type = SC_T_INT,
                         .unit = SC_U_COUNT,
                         .min = 1,
                         .max = 1 << 20};
    const sc_node *c = n && n->kind == SC_N_MAP && n->n == 1 ? n->child : NULL;
    bool again = true;
    int64_t blocks = 0;
    int method = -1;
    if (!n) return;
    for (int i = 0; c && sc_rc_method_names[i]; i++)
        if (strcmp(c->key, sc_rc_method_names[i]) == 0) method = i;
    bool bare = n->kind == SC_N_SCALAR && !n->quoted;
    if (bare)
        strategy_keep(
            r, sc_schema_set(&word, n->text, n->pos, &again, r->a, r->err));
    else if (method >= 0 && c->kind == SC_N_SCALAR && !c->quoted)
        strategy_keep(
            r, sc_schema_set(&size, c->text, c->pos, &blocks, r->a, r->err));
    else
        strategy_wrong(r, SC_C_TYPE, n->pos,
                       "write yes, no, {uniform: 2} or {block: 3}",
                       "recompute has an unknown form");
    rule->recompute = again;
    if (method == SC_RCM_UNIFORM) rule->rc_group = (uint32_t)blocks;
    if (method == SC_RCM_BLOCK) rule->rc_first = (uint32_t)blocks;
}

/* ---- contradictions within a rule ------------------------------------ */

/* Whether all brackets form non-empty sets such as "[02-4]". */
static bool closed(const char *p)
{
    for (p = strpbrk(p, "[]"); p; p = strpbrk(p + 1, "[]")) {
        const char *close = strchr(p, ']');
        if (*p == ']' || !close || close == p + 1) return false;
        if (memchr(p + 1, '[', (size_t)(close - p) - 1)) return false;
        p = close;
    }
    return true;
}

static void check_match(strategy_reader *r, const sc_node *n)
{
    if (!n || n->kind != SC_N_SCALAR) return;
    if (n->text[0] == '\0' || strlen(n->text) > MAX_MATCH ||
        strpbrk(n->text, " ,\t{}") || !closed(n->text))
        strategy_wrong(r, SC_C_TYPE, n->pos,
                       "write one path such as layers.0-11.qkv, with *, ?, "
                       "[0-4] and ranges of numbers",
                       "\"%.60s\" is not a pattern on module paths", n->text);
    else if (sc_path_empty(n->text))
        strategy_wrong(r, SC_C_RANGE, n->pos,
                       "write ranges from small to large: 0-11",
                       "a range in \"%.60s\" is empty", n->text);
}

static void check_rule(strategy_reader *r, const sc_node *map,
                       const sc_strategy_rule *rule)
{
    const sc_node *split = sc_node_get(map, "split");
    const sc_node *place = sc_node_get(map, "place");
    const sc_node *tensor = sc_node_get(map, "tensor");
    const sc_node *assign = sc_node_get(map, "assign");
    if (map->n < 2 && map->n == (sc_node_get(map, "match") != NULL))
        strategy_wrong(r, SC_C_MISSING, rule->pos,
                       "add split, place, recompute, assign or devices",
                       "the rule has no effect");
    if (split && tensor)
        strategy_wrong(r, SC_C_CONFLICT, split->pos, "write place",
                       "split divides operators, not their tensors");
    if (tensor && !place && !split)
        strategy_wrong(r, SC_C_MISSING, tensor->pos,
                       "add place: {dim0: dp} or place: cpu",
                       "the rule names a tensor, but not its place");
    if (split && assign)
        strategy_wrong(r, SC_C_CONFLICT, split->pos, NULL,
                       "split and assign are in one rule, but an operator is "
                       "either divided or whole on one rank");
    for (uint32_t i = 0; i < rule->n_split; i++)
        for (uint32_t k = 0; k < rule->n_at; k++)
            if (sc_axes_mask(rule->split[i].axes) >> rule->at[k].axis & 1)
                strategy_wrong(r, SC_C_CONFLICT, rule->split[i].pos, NULL,
                               "%s is split over %s, but `devices` selects one "
                               "coordinate of it",
                               rule->split[i].dim,
                               r->s->axis[rule->at[k].axis].name);
}

static void read_rule(strategy_reader *r, const sc_node *n,
                      sc_strategy_rule *rule)
{
    rule_words w = {0};
    *rule = (sc_strategy_rule){
        .match = "", .pos = n->pos, .recompute = -1, .tier = -1};

    rule->origin =
        sc_sprintf(r->a, "%s:%u", r->s->file ? r->s->file : "?", n->pos.line);
    if (!rule->origin) strategy_keep(r, sc_error_nomem(r->err));
    sc_status s = sc_schema_read(rule_keys, n, &w, NULL, r->a, r->err);
    strategy_keep(r, s);
    if (n->kind != SC_N_MAP) return;
    if (s == SC_OK) {
        rule->match = w.match;
        rule->round_robin = sc_node_get(n, "assign") != NULL;
        rule->balanced = rule->round_robin && w.assign == 1;
    }
    check_match(r, sc_node_get(n, "match"));
    read_recompute(r, sc_node_get(n, "recompute"), rule);
    read_tensor(r, sc_node_get(n, "tensor"), rule);
    if (sc_node_get(n, "split"))
        read_split(r, sc_node_get(n, "split"), rule);
    else
        read_place(r, n, rule);
    read_assign(r, n, rule);
    read_devices(r, sc_node_get(n, "devices"), rule);
    check_rule(r, n, rule);
}

/* ---- all rules ------------------------------------------------------- */

/* Reports two rules with the same pattern that split a dim differently, which
 * is probably a mistake. */
static void clash_dims(strategy_reader *r, const sc_strategy_rule *a,
                       const sc_strategy_rule *b)
{
    for (uint32_t i = 0; i < a->n_split; i++)
        for (uint32_t k = 0; k < b->n_split; k++) {
            const sc_rule_split *x = &a->split[i], *y = &b->split[k];
            if (strcmp(x->dim, y->dim) != 0 || x->axes == y->axes) continue;
            strategy_wrong(r, SC_C_CONFLICT, y->pos, "keep one of them",
                           "rule '%s' splits %s differently at %s:%u:%u",
                           b->match, y->dim, r->s->file, x->pos.line,
                           x->pos.col);
        }
}

static void clash(strategy_reader *r, const sc_strategy_rule *a,
                  const sc_strategy_rule *b)
{
    const char *what = NULL;
    if (strcmp(a->match, b->match) != 0 || !a->match[0]) return;
    bool again = a->recompute >= 0 && b->recompute >= 0;
    if (again && (a->recompute != b->recompute || a->rc_group != b->rc_group ||
                  a->rc_first != b->rc_first))
        what = "recompute";
    bool same = a->tensor == b->tensor && a->input == b->input;
    if (same && a->tier >= 0 && b->tier >= 0 && a->tier != b->tier)
        what = "place";
    if (what)
        strategy_wrong(r, SC_C_CONFLICT, b->pos, "keep one of them",
                       "rule '%s' gives another %s at %s:%u:%u", b->match, what,
                       r->s->file, a->pos.line, a->pos.col);
    if (same) clash_dims(r, a, b);
}

void strategy_read_rules(strategy_reader *r, const sc_node *list)
{
    sc_strategy *s = r->s;
    if (!list || list->kind == SC_N_NULL) return;
    if (list->kind != SC_N_SEQ) {
        strategy_wrong(r, SC_C_TYPE, list->pos,
                       "begin each with \"- {match: ...\"",
                       "rules must be a list");
        return;
    }
    s->rule = SC_NEW_N(r->a, sc_strategy_rule, list->n);
    if (!s->rule) {
        strategy_keep(r, sc_error_nomem(r->err));
        return;
    }
    for (const sc_node *n = list->child; n; n = n->next)
        read_rule(r, n, &s->rule[s->n_rules++]);
    for (uint32_t i = 0; i < s->n_rules && i < 1024; i++)
        for (uint32_t k = 0; k < i; k++) clash(r, &s->rule[k], &s->rule[i]);
}
