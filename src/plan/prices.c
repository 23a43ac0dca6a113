/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prices.c - explains the prices of a step's operators, exchanges and copies.
 *
 * The step is inferred and lowered once more, and the code that computes prices
 * reports each of them.  A number in a path becomes "*", so that the equal text
 * of repeated blocks is written once.
 */
#include "plan/prices.h"

#include "plan/infer.h"

#include <string.h>

struct infer_prices {
    sc_arena *a;
    sc_text *out;
    sc_map seen;         /* hashes of the text written so far */
    const char *heading; /* the last one written */
};

const char *prices_pass_name(sc_op_pass pass)
{
    static const char *const names[] = {
        [SC_PASS_FWD] = "forward",
        [SC_PASS_BWD] = "backward",
        [SC_PASS_DGRAD] = "backward, for inputs",
        [SC_PASS_WGRAD] = "backward, for weights",
        [SC_PASS_UPDATE] = "update"};
    return names[pass];
}

char *prices_starred(sc_arena *a, const char *path)
{
    char *out = sc_strdup(a, path), *to = out;
    for (const char *at = path; out && *at;) {
        bool number = at == path || at[-1] == '.' || at[-1] == ' ';
        size_t n = strspn(at, "0123456789");
        if (number && n > 0 && (at[n] == '.' || at[n] == ' ' || !at[n])) {
            *to++ = '*';
            at += n;
        } else {
            *to++ = *at++;
        }
    }
    if (out) *to = '\0';
    return out;
}

/* Adds a hash; `*out`: whether it is new. */
static sc_status first_time(infer_prices *p, uint64_t hash, bool *out,
                            sc_err *err)
{
    uint32_t at = 0;
    *out = sc_map_next(&p->seen, hash, &at) == SC_MAP_END;
    if (*out && !sc_map_add(&p->seen, p->a, hash, 0))
        return sc_error_nomem(err);
    return SC_OK;
}

static sc_status report(infer_prices *p, const char *path, const char *pass,
                        const sc_text *lines, sc_err *err)
{
    char *all = prices_starred(p->a, path);
    const char *heading = all ? sc_sprintf(p->a, "%s, %s", all, pass) : NULL;
    bool fresh = false;
    if (!heading || lines->failed) return sc_error_nomem(err);
    if (lines->len == 0) return SC_OK;
    uint64_t hash = sc_hash(heading, strlen(heading), 0);
    SC_TRY(first_time(p, sc_hash(lines->buf, lines->len, hash), &fresh, err));
    if (!fresh) return SC_OK;
    if (!p->heading || strcmp(p->heading, heading) != 0)
        sc_text_add(p->out, "%s\n", heading);
    p->heading = heading;
    sc_text_add(p->out, "%s", lines->buf);
    return p->out->failed ? sc_error_nomem(err) : SC_OK;
}

sc_status prices_report(infer_prices *p, const char *path, const char *pass,
                        sc_text *lines, sc_err *err)
{
    sc_status s = report(p, path, pass, lines, err);
    sc_text_free(lines);
    return s;
}

sc_status prices_report_exchange(const sc_net_run *job,
                                 const sc_net_exchange *x, const sc_place *at,
                                 const infer_exposure *e, sc_err *err)
{
    sc_text t;
    char part[32];
    sc_text_init(&t);
    sc_text_add(&t, "  %-22s %s over %u ranks, ", x->tensor,
                x->p2p ? "transfer" : sc_coll_names[x->coll], x->size);
    sc_cost_explain_coll(job->cost, job->hw, (sc_coll)x->coll, x->bytes, at,
                         &t);
    if (e->seconds != x->seconds) {
        sc_unit_print_short(e->seconds, SC_U_TIME, part, sizeof part);
        sc_text_add(&t, "  %s%s%s\n", part,
                    e->hidden_by ? " of it are exposed, the rest overlaps "
                                 : " as a dispatch of tokens",
                    e->hidden_by ? e->hidden_by : "");
    }
    return prices_report(job->prices, x->path ? x->path : "",
                         prices_pass_name((sc_op_pass)x->pass), &t, err);
}

sc_status prices_report_copy(const sc_net_run *job, const char *path,
                             const char *value, double bytes, double bw,
                             sc_err *err)
{
    sc_text t;
    char s[32], b[32], r[32];
    sc_text_init(&t);
    sc_unit_print_short(bytes / bw, SC_U_TIME, s, sizeof s);
    sc_unit_print_short(bytes, SC_U_BYTES, b, sizeof b);
    sc_unit_print_short(bw, SC_U_RATE, r, sizeof r);
    sc_text_add(&t, "  %-22s %9s  %9s  %9s  at %s\n", value, s, "", b, r);
    return prices_report(job->prices, path, "copies", &t, err);
}

sc_status sc_net_plan_prices(const sc_net_run *job, sc_arena *a, sc_text *out,
                             sc_err *err)
{
    sc_net_run telling = *job;
    infer_prices p = {.a = a, .out = out};
    sc_net_plan plan;
    telling.unfold = false;
    telling.prices = &p;
    SC_TRY(sc_net_plan_compile(&telling, a, &plan, err));
    return sc_net_plan_lower(&plan, a, err);
}
