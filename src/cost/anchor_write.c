/* SPDX-License-Identifier: Apache-2.0 */
/* anchor_write.c - lists what own runs moved, and writes them as a profile. */
#include "base/number.h"
#include "cost/anchor.h"

#include <math.h>
#include <string.h>

/* ---- what moved ---------------------------------------------------------- */

static const double least = 1e-3; /* smaller effects are not listed */

typedef struct lister {
    const sc_anchors *s;
    sc_arena *a;
    sc_anchor_effect *e;
    uint32_t n, cap;
    double *k, *b; /* [s->n] */
} lister;

static sc_status add(lister *l, sc_anchor_effect e, sc_err *err)
{
    sc_anchor_effect *grown =
        sc_grow(l->a, l->e, l->n, &l->cap, 16, sizeof *grown);
    if (!grown) return sc_error_nomem(err);
    l->e = grown;
    l->e[l->n++] = e;
    return SC_OK;
}

/* The standard deviation that is left of an effect with variance `v`, whose
 * covariances with the anchors are l->k. */
static double left(lister *l, double v)
{
    double explained = 0;
    memcpy(l->b, l->k, l->s->n * sizeof *l->b);
    anchor_solve(l->s->chol, l->s->n, l->b);
    for (uint32_t i = 0; i < l->s->n; i++) explained += l->k[i] * l->b[i];
    return sqrt(fmax(0, v - explained));
}

static double scaled(const sc_anchors *s, size_t j, size_t k)
{
    double f = s->effects.sd[SC_EFFECT_PARAMETERS];
    return f * f * s->cov.of_log[j * s->cov.n + k];
}

static sc_status parameter(lister *l, uint32_t j, const sc_cost *moved,
                           sc_err *err)
{
    const sc_anchors *s = l->s;
    sc_param p = s->cov.param[j];
    if (fabs(log(moved->p[p] / s->base[p])) < least) return SC_OK;
    for (uint32_t i = 0; i < s->n; i++) {
        const sc_traits *t = &s->a[i].traits;
        l->k[i] = 0;
        for (uint32_t k = 0; k < t->n_shares; k++) {
            int at = s->index[t->share[k].param];
            if (at >= 0)
                l->k[i] += t->share[k].share * scaled(s, j, (size_t)at);
        }
    }
    double v = scaled(s, j, j);
    double most = 0;
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < s->a[i].traits.n_shares; k++)
            if (s->a[i].traits.share[k].param == p)
                most = fmax(most, fabs(s->a[i].traits.share[k].share));
    const char *reason =
        most > 0.005
            ? sc_sprintf(l->a, "%.0f %% of an own run's step depends on it",
                         100 * most)
            : "the fit knows it only together with others that moved";
    if (!reason) return sc_error_nomem(err);
    sc_anchor_effect e = {.reason = reason,
                          .what = "parameter",
                          .name = sc_params[p].name,
                          .before = s->base[p],
                          .after = moved->p[p],
                          .sd_before = sqrt(v),
                          .sd_after = left(l, v),
                          .weight = most * fabs(log(moved->p[p] / s->base[p]))};
    return add(l, e, err);
}

static sc_status network(lister *l, sc_err *err)
{
    const sc_anchors *s = l->s;
    double v = s->effects.sd[SC_EFFECT_NETWORK];
    if (fabs(s->network) < least) return SC_OK;
    v *= v;
    double most = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        l->k[i] = v * s->a[i].traits.network;
        most = fmax(most, s->a[i].traits.network);
    }
    sc_anchor_effect e = {.reason = "part of the own runs' time is that of the "
                                    "network between nodes",
                          .what = "network",
                          .name = "between nodes",
                          .before = 1,
                          .after = exp(s->network),
                          .sd_before = sqrt(v),
                          .sd_after = left(l, v),
                          .weight = most * fabs(s->network)};
    return add(l, e, err);
}

/* A level that the anchors with the name of anchor `of` share; `name` NULL:
 * all of them. */
static sc_status level(lister *l, sc_effect effect, const char *what,
                       uint32_t of, int trait, sc_err *err)
{
    const sc_anchors *s = l->s;
    const char *name = trait < 0 ? "own runs" : s->a[of].traits.name[trait];
    double v = s->effects.sd[effect] * s->effects.sd[effect], sum = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        bool has = trait < 0 || strcmp(s->a[i].traits.name[trait], name) == 0;
        if (has && i < of) return SC_OK; /* listed before */
        l->k[i] = has ? v : 0;
        sum += l->k[i] * s->weight[i];
    }
    if (fabs(sum) < least) return SC_OK;
    sc_anchor_effect e = {.reason = trait < 0
                                        ? "all own runs share it"
                                        : "own runs with this name share it",
                          .what = what,
                          .name = name,
                          .before = 1,
                          .after = exp(sum),
                          .sd_before = sqrt(v),
                          .sd_after = left(l, v),
                          .weight = fabs(sum)};
    return add(l, e, err);
}

static void order(lister *l)
{
    for (uint32_t i = 1; i < l->n; i++)
        for (uint32_t k = i; k > 0 && l->e[k].weight > l->e[k - 1].weight;
             k--) {
            sc_anchor_effect e = l->e[k];
            l->e[k] = l->e[k - 1];
            l->e[k - 1] = e;
        }
}

sc_status sc_anchors_list(const sc_anchors *s, sc_arena *a,
                          sc_anchor_effect **out, uint32_t *n, sc_err *err)
{
    lister l = {.s = s, .a = a};
    sc_cost moved;
    sc_cost_centres(&moved);
    sc_anchors_move(s, &moved);
    l.k = SC_NEW_N(a, double, 2 * (size_t)s->n + 1);
    if (!l.k) return sc_error_nomem(err);
    l.b = l.k + s->n;
    for (uint32_t j = 0; j < s->cov.n; j++)
        SC_TRY(parameter(&l, j, &moved, err));
    SC_TRY(network(&l, err));
    SC_TRY(level(&l, SC_EFFECT_SITE, "site", 0, -1, err));
    for (uint32_t i = 0; i < s->n; i++) {
        SC_TRY(level(&l, SC_EFFECT_RELEASE, "software release", i,
                     SC_TRAIT_RELEASE, err));
        SC_TRY(level(&l, SC_EFFECT_DEVICE, "device", i, SC_TRAIT_DEVICE, err));
    }
    order(&l);
    *out = l.e;
    *n = l.n;
    return SC_OK;
}

/* ---- writing ------------------------------------------------------------- */

static void put(sc_text *t, const char *key, double v, const char *unit)
{
    char buf[40];
    number_print(v, 6, buf, sizeof buf);
    sc_text_add(t, "    %s: %s%s\n", key, buf, unit);
}

/* A quoted string of YAML; control characters become blanks. */
static void put_string(sc_text *t, const char *key, const char *v)
{
    sc_text_add(t, "    %s: \"", key);
    for (; *v; v++) {
        char c = *v;
        if ((unsigned char)c < ' ') c = ' ';
        sc_text_add(t, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    sc_text_add(t, "\"\n");
}

static void write_anchor(const sc_anchor *x, sc_text *out)
{
    const sc_traits *t = &x->traits;
    sc_text_add(out, "  -\n");
    put_string(out, "id", x->id);
    put(out, "measured", x->measured_s, "s");
    put(out, "predicted", x->predicted_s, "s");
    put(out, "moved", x->moved_s, "s");
    put(out, "noise", x->noise, "");
    put(out, "network", t->network, "");
    sc_text_add(out, "    unseen: %s\n    key: \"%016llx\"\n",
                t->unseen ? "true" : "false", (unsigned long long)t->key);
    for (int k = 0; k < (int)SC_N_TRAIT_NAMES; k++)
        put_string(out, sc_trait_name_names[k], t->name[k]);
    sc_text_add(out, "    sizes:\n");
    for (int k = 0; k < (int)SC_N_TRAIT_SIZES; k++) {
        sc_text_add(out, "  ");
        put(out, sc_trait_size_names[k], t->size[k], "");
    }
    sc_text_add(out, "    shares:%s\n", t->n_shares ? "" : " {}");
    for (uint32_t k = 0; k < t->n_shares; k++) {
        sc_text_add(out, "  ");
        put(out, sc_params[t->share[k].param].name, t->share[k].share, "");
    }
}

static void write_parameters(const sc_anchors *s, sc_text *out)
{
    sc_cost moved;
    bool any = false;
    char buf[40];
    sc_cost_centres(&moved);
    sc_anchors_move(s, &moved);
    sc_text_add(out, "parameters:");
    for (int k = 0; k < (int)SC_N_PARAMS; k++) {
        if (moved.p[k] == s->base[k]) continue;
        number_print(moved.p[k], 6, buf, sizeof buf);
        sc_text_add(out, "%s  %s: {value: %s", any ? "" : "\n",
                    sc_params[k].name, buf);
        number_print(s->base[k], 6, buf, sizeof buf);
        sc_text_add(out, ", before: %s}\n", buf);
        any = true;
    }
    if (!any) sc_text_add(out, " {}\n");
}

sc_status sc_anchors_write(const sc_anchors *s, const char *from, sc_arena *a,
                           sc_text *out, sc_err *err)
{
    sc_anchor_effect *e = NULL;
    uint32_t n = 0;
    SC_TRY(sc_anchors_list(s, a, &e, &n, err));
    sc_text_add(out, "%s", from);
    write_parameters(s, out);
    sc_text_add(out,
                "# What moved: factors on the step (of the network: on its "
                "time) with the standard\n# deviation of the logarithm, "
                "before and after.\n");
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(e[i].what, "parameter") != 0)
            sc_text_add(out, "# %s %s: %.4g, sd %.2g -> %.2g\n", e[i].what,
                        e[i].name, e[i].after, e[i].sd_before, e[i].sd_after);
    sc_text_add(out,
                "# The parameters with which `predicted` was computed.\n"
                "base: \"%016llx\"\nanchors:\n",
                (unsigned long long)s->base_hash);
    for (uint32_t i = 0; i < s->n; i++) write_anchor(&s->a[i], out);
    return out->failed ? sc_error_nomem(err) : SC_OK;
}
