/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - checks the options and turns them into a configuration.
 *
 * Every option is checked even if an earlier one was wrong, so that all errors
 * are reported in one pass.
 */
#include "emu/emu_log.h"
#include "emu/whatif.h"
#include "emu/world.h"
#include "trace/trace.h"
#include "trace/trace_system.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct resolve {
    const sc_emu_options *o;
    sc_arena *a;
    sc_err *err;
    sc_status first;
    const char *flag; /* of the list of ranks that is read */
    sc_emu_config c;
} resolve;

static sc_pos at(const resolve *r, const char *flag, const char *value)
{
    return sc_pos_option(r->a, flag, value);
}

static bool keep(resolve *r, sc_status s)
{
    if (r->first == SC_OK) r->first = s;
    return s == SC_OK;
}

/* ---- machine and world --------------------------------------------------- */

static sc_status find_machine(resolve *r)
{
    const sc_emu_options *o = r->o;
    if (!o->cluster || !o->cluster[0])
        return sc_error(r->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(),
                        "emulate needs --cluster and --world-size",
                        "--cluster is missing");
    return sc_hw_build(o->cluster, at(r, "--cluster", o->cluster), r->a,
                       &r->c.hw, r->err);
}

static sc_status find_world(resolve *r)
{
    char n[24], hint[160];
    int64_t world = r->o->world_size;
    snprintf(n, sizeof n, "%lld", (long long)world);
    if (world == 0)
        return sc_error(r->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(),
                        "emulate needs --cluster and --world-size",
                        "--world-size is missing");
    if (world < 0 || world > INT32_MAX)
        return sc_error(r->err, SC_EINPUT, SC_C_RANGE, at(r, "--world-size", n),
                        "1 or more", "the number of ranks is out of range");
    r->c.world = (uint32_t)world;
    if (!r->c.hw || r->c.hw->n_devices >= r->c.world) return SC_OK;
    snprintf(hint, sizeof hint,
             "choose a larger cluster, or --world-size %u or less",
             r->c.hw->n_devices);
    return sc_error(r->err, SC_EINPUT, SC_C_CONFLICT, at(r, "--world-size", n),
                    hint, "the cluster \"%.60s\" has %u devices", r->o->cluster,
                    r->c.hw->n_devices);
}

/* ---- real ranks ---------------------------------------------------------- */

static sc_status bad_ranks(resolve *r, const char *text)
{
    return sc_error(r->err, SC_EUSAGE, SC_C_SYNTAX, at(r, r->flag, text),
                    "write 0, 0,8, 0-3 or all", "not a list of ranks");
}

/* Parses FIRST or FIRST-LAST and marks the ranks in `real`. */
static sc_status read_range(resolve *r, const char *text, const char **s,
                            bool *real)
{
    uint64_t first, last;
    if (!emu_whole(s, UINT32_MAX, &first)) return bad_ranks(r, text);
    last = first;
    if (**s == '-') {
        (*s)++;
        if (!emu_whole(s, UINT32_MAX, &last) || last < first)
            return bad_ranks(r, text);
    }
    if (last >= r->c.world)
        return sc_error(r->err, SC_EINPUT, SC_C_RANGE, at(r, r->flag, text),
                        NULL, "ranks are 0 to %u", r->c.world - 1);
    for (; first <= last; first++) {
        if (real[first])
            return sc_error(r->err, SC_EINPUT, SC_C_DUPLICATE,
                            at(r, r->flag, text), NULL,
                            "rank %u is named twice", (uint32_t)first);
        real[first] = true;
    }
    return SC_OK;
}

static sc_status read_ranks(resolve *r, const char *text, bool *real)
{
    const char *s = text;
    if (strcmp(text, "all") == 0) {
        for (uint32_t i = 0; i < r->c.world; i++) real[i] = true;
        return SC_OK;
    }
    for (;;) {
        SC_TRY(read_range(r, text, &s, real));
        if (*s == '\0') return SC_OK;
        if (*s++ != ',') return bad_ranks(r, text);
    }
}

static sc_status chosen(resolve *r, const bool *in, const uint32_t **out,
                        uint32_t *n)
{
    uint32_t *v = SC_NEW_N(r->a, uint32_t, r->c.world);
    if (!v) return sc_error_nomem(r->err);
    *out = v;
    for (uint32_t i = 0; i < r->c.world; i++)
        if (in[i]) v[(*n)++] = i;
    return SC_OK;
}

static sc_status find_ranks(resolve *r)
{
    static const char *const usual[] = {"0", NULL};
    const char *const *list =
        r->o->ranks ? (const char *const *)r->o->ranks : usual;
    if (r->c.world == 0) return SC_OK; /* said above */
    bool *real = SC_NEW_N(r->a, bool, r->c.world);
    if (!real) return sc_error_nomem(r->err);
    r->flag = "--ranks";
    for (; *list; list++) SC_TRY(read_ranks(r, *list, real));
    return chosen(r, real, &r->c.real, &r->c.n_real);
}

/* ---- delay model --------------------------------------------------------- */

static bool has_file(const char *text, const char *name, const char **file)
{
    size_t n = strlen(name);
    if (strncmp(text, name, n) != 0 || text[n] != ':' || !text[n + 1])
        return false;
    *file = text + n + 1;
    return true;
}

static sc_status unknown(resolve *r, const char *flag, const char *text,
                         const char *const *names, const char *other)
{
    const char *near = sc_nearest(text, names);
    const char *hint = near ? sc_sprintf(r->a, "did you mean %s?", near) : NULL;
    return sc_error(r->err, SC_EUSAGE, SC_C_UNKNOWN_NAME, at(r, flag, text),
                    hint ? hint : other, "there is no \"%.60s\"", text);
}

/* Splits "FILE,ranks=16". */
static sc_status split_ranks(resolve *r, const char *text)
{
    const char *file = r->c.delay_file, *end = strstr(file, SC_EMU_TABLE_RANKS);
    if (end == NULL) return SC_OK;
    const char *s = end + strlen(SC_EMU_TABLE_RANKS);
    uint64_t n = 0;
    if (!emu_whole(&s, 1000000000, &n) || *s || n < 2 || end == file)
        return sc_error(r->err, SC_EUSAGE, SC_C_RANGE,
                        at(r, "--delay-model", text),
                        "for example table:osu_allreduce.log,ranks=16",
                        "ranks= is not a number of ranks from 2 on");
    r->c.delay_ranks = (uint32_t)n;
    r->c.delay_file = sc_strndup(r->a, file, (size_t)(end - file));
    return r->c.delay_file ? SC_OK : sc_error_nomem(r->err);
}

static sc_status find_delay(resolve *r)
{
    static const char *const names[] = {
        "analytic",        "host",       "chunk", "flow",
        "alpha-beta:FILE", "table:FILE", NULL};
    static const sc_emu_delay_kind kinds[] = {
        SC_EMU_DELAY_ANALYTIC, SC_EMU_DELAY_HOST, SC_EMU_DELAY_CHUNK,
        SC_EMU_DELAY_FLOW};
    const char *text = r->o->delay_model ? r->o->delay_model : names[0];
    size_t len = strlen(text);
    for (size_t i = 0; i < SC_COUNT(kinds); i++)
        if (strcmp(text, names[i]) == 0) {
            r->c.delay = kinds[i];
            return SC_OK;
        }
    if (has_file(text, "alpha-beta", &r->c.delay_file)) {
        r->c.delay = SC_EMU_DELAY_ALPHA_BETA;
    } else if (has_file(text, "table", &r->c.delay_file)) {
        r->c.delay = SC_EMU_DELAY_TABLE;
        return split_ranks(r, text);
    } else if (len > 3 && strcmp(text + len - 3, ".so") == 0) {
        r->c.delay = SC_EMU_DELAY_PLUGIN;
        r->c.delay_file = text;
    } else {
        return unknown(
            r, "--delay-model", text, names,
            "analytic, host, chunk, flow, alpha-beta:FILE, table:FILE or "
            "./PLUGIN.so");
    }
    return SC_OK;
}

/* ---- peers --------------------------------------------------------------- */

bool sc_emu_is_real(const sc_emu_config *c, uint32_t rank)
{
    return emu_real_number(c, rank) != EMU_NONE;
}

static sc_status check_whatif(resolve *r, const sc_emu_whatif *w)
{
    bool late = w->what == SC_EMU_STALL || w->what == SC_EMU_FAIL;
    bool slow = w->what == SC_EMU_STRAGGLER;
    if ((!late && !slow) || !sc_emu_is_real(&r->c, w->rank)) return SC_OK;
    if (late)
        return sc_error(
            r->err, SC_EINPUT, SC_C_CONFLICT, w->pos,
            "let its program stop by itself, or name an emulated rank",
            "rank %u is real", w->rank);
    if (r->c.clock == SC_EMU_VIRTUAL) return SC_OK;
    return sc_error(r->err, SC_EINPUT, SC_C_CONFLICT, w->pos,
                    "use --clock virtual, or name an emulated rank",
                    "rank %u is real, and on the real clock its speed is that "
                    "of this machine",
                    w->rank);
}

static sc_status find_whatifs(resolve *r)
{
    uint32_t n = 0;
    const char **text = r->o->what_if;
    while (text && text[n]) n++;
    sc_emu_whatif *w = SC_NEW_N(r->a, sc_emu_whatif, n);
    if (!w) return sc_error_nomem(r->err);
    r->c.whatif = w;
    for (uint32_t i = 0; i < n; i++) {
        sc_emu_whatif *x = &w[r->c.n_whatif];
        uint32_t world = r->c.world ? r->c.world : UINT32_MAX;
        sc_pos pos = at(r, "--what-if", text[i]);
        if (keep(r, emu_whatif_parse(text[i], world, pos, x, r->err)) &&
            keep(r, check_whatif(r, x)))
            r->c.n_whatif++;
    }
    return SC_OK;
}

static sc_status find_data(resolve *r)
{
    static const char *const names[] = {"mirror", "none", "noise:SIGMA", NULL};
    const char *text = r->o->peer_data ? r->o->peer_data : names[0];
    const char *sigma;
    sc_pos pos = at(r, "--peer-data", text);
    if (strcmp(text, "mirror") == 0) {
        r->c.data = SC_EMU_DATA_MIRROR;
    } else if (strcmp(text, "none") == 0) {
        r->c.data = SC_EMU_DATA_NONE;
    } else if (has_file(text, "noise", &sigma)) {
        r->c.data = SC_EMU_DATA_NOISE;
        SC_TRY(sc_unit_parse(sigma, SC_U_NONE, pos, &r->c.sigma, r->err));
        if (!(r->c.sigma >= 0 && r->c.sigma <= 1e6))
            return sc_error(r->err, SC_EINPUT, SC_C_RANGE, pos,
                            "write noise:0.1, a multiple of the standard "
                            "deviation of the data",
                            "the noise is out of range");
    } else {
        return unknown(r, "--peer-data", text, names,
                       "mirror, noise:SIGMA or none");
    }
    return SC_OK;
}

static sc_status check_durations(resolve *r, const sc_workload *w)
{
    bool computes = false;
    for (uint32_t i = 0; i < w->n_classes; i++)
        for (uint32_t k = 0; k < w->classes[i].n_tasks; k++) {
            if (w->classes[i].kind[k] != SC_TASK_COMP) continue;
            if (w->classes[i].duration[k] > 0) return SC_OK;
            computes = true;
        }
    if (!computes) return SC_OK;
    return sc_error(r->err, SC_EINPUT, SC_C_MISSING,
                    at(r, "--peers", r->o->peers),
                    "record durations, or use --peers mirror",
                    "no kernel of these traces has a duration");
}

/* The list behind "scout:". */
static sc_status find_scouts(resolve *r, const char *list)
{
    bool *in = SC_NEW_N(r->a, bool, r->c.world);
    if (!in) return sc_error_nomem(r->err);
    r->flag = "--peers";
    SC_TRY(read_ranks(r, list, in));
    SC_TRY(chosen(r, in, &r->c.scout, &r->c.n_scouts));
    for (uint32_t i = 0; i < r->c.n_scouts; i++)
        if (sc_emu_is_real(&r->c, r->c.scout[i]))
            return sc_error(
                r->err, SC_EINPUT, SC_C_CONFLICT, at(r, r->flag, r->o->peers),
                "scouts are emulated ranks", "rank %u is real", r->c.scout[i]);
    return SC_OK;
}

/* The scouts' logs: PREFIX.0, PREFIX.1 ... */
static sc_status read_scouts(resolve *r, const char *prefix)
{
    sc_emu_run *run = SC_NEW_N(r->a, sc_emu_run, r->c.world);
    sc_workload *w = SC_NEW(r->a, sc_workload);
    uint32_t n = 0;
    if (!run || !w) return sc_error_nomem(r->err);
    for (; n < r->c.world; n++) {
        const char *path = sc_sprintf(r->a, "%s.%u", prefix, n);
        if (!path) return sc_error_nomem(r->err);
        if (access(path, F_OK) != 0) break;
        SC_TRY(sc_emu_log_load(path, r->a, &run[n], r->err));
    }
    SC_TRY(sc_emu_workload(run, n, &(sc_emu_trace_opts){.envelopes = true},
                           r->a, w, r->err));
    r->c.peers = w;
    return SC_OK;
}

static sc_status find_peers(resolve *r)
{
    static const char scouts[] = "scout:";
    const char *prefix = r->o->peers;
    sc_trace_opts t = {.sparse = true};
    if (!prefix || strcmp(prefix, "mirror") == 0 || r->c.world == 0)
        return SC_OK;
    bool listed = strncmp(prefix, scouts, sizeof scouts - 1) == 0;
    r->c.peer_tags = listed && prefix[sizeof scouts - 1] == '/';
    r->c.scouts = !r->c.peer_tags && (listed || strcmp(prefix, "scout") == 0);
    if (listed) prefix += sizeof scouts - 1;
    if (r->c.peer_tags) return read_scouts(r, prefix);
    if (listed) return find_scouts(r, prefix);
    if (r->c.scouts) return SC_OK;
    uint32_t n = 0;
    while (n < r->c.world && !sc_trace_exists(prefix, n)) n++;
    if (n == r->c.world)
        return sc_error(r->err, SC_EINPUT, SC_C_REFERENCE,
                        at(r, "--peers", prefix),
                        "traces are PREFIX.<rank>.et, .et.gz, .et.zst or .json",
                        "there is no trace of ranks 0 to %u", r->c.world - 1);
    sc_workload *w = SC_NEW(r->a, sc_workload);
    char *groups = sc_sprintf(r->a, "%s.json", prefix);
    sc_rank_group *g = NULL;
    if (!w || !groups) return sc_error_nomem(r->err);
    if (access(groups, F_OK) == 0)
        SC_TRY(
            sc_groups_read(groups, r->c.world, r->a, &g, &t.n_groups, r->err));
    t.groups = g;
    SC_TRY(sc_trace_read(prefix, r->c.world, &t, r->a, w, r->err));
    SC_TRY(check_durations(r, w));
    r->c.peers = w;
    return SC_OK;
}

/* ---- clusters of several devices ------------------------------------------ */

/* By what factor `d` computes longer than `first`, if half of the time on
 * `first` goes to matrix products and half is limited by device memory. */
static double factor_of(const sc_cost *c, const sc_device *d,
                        const sc_device *first)
{
    bool bf16 = d->peak[SC_BF16] > 0 && first->peak[SC_BF16] > 0;
    sc_kernel gemm = {.kind = SC_K_GEMM,
                      .precision = bf16 ? SC_BF16 : SC_FP16,
                      .batch = 1,
                      .m = 8192,
                      .n = 8192,
                      .k = 8192};
    sc_kernel memory = {
        .kind = SC_K_MEMORY, .precision = gemm.precision, .bytes = 1 << 28};
    return (sc_cost_kernel(c, d, &gemm).seconds /
                sc_cost_kernel(c, first, &gemm).seconds +
            sc_cost_kernel(c, d, &memory).seconds /
                sc_cost_kernel(c, first, &memory).seconds) /
           2;
}

static sc_status find_factors(resolve *r)
{
    sc_emu_config *c = &r->c;
    const sc_device *first = sc_hw_device_at(c->hw, c->real[0]);
    const sc_device *last = NULL;
    double f = 1;
    bool differ = false;
    double *v = c->hw->n_groups ? SC_NEW_N(r->a, double, c->world) : NULL;
    if (c->hw->n_groups == 0) return SC_OK;
    if (!v) return sc_error_nomem(r->err);
    for (uint32_t i = 0; i < c->world; i++) {
        const sc_device *d = sc_hw_device_at(c->hw, i);
        if (d != last) f = d == first ? 1 : factor_of(c->cost, d, first);
        last = d;
        v[i] = f;
        differ = differ || f != 1;
    }
    if (differ) c->compute_factor = v;
    return SC_OK;
}

static sc_status find_prices(resolve *r)
{
    sc_cost *cost = SC_NEW(r->a, sc_cost);
    if (!cost) return sc_error_nomem(r->err);
    r->c.cost = cost;
    SC_TRY(sc_cost_builtin(r->a, cost, r->err));
    return sc_cost_profile(r->o->profile, r->a, cost, r->err);
}

sc_status sc_emu_resolve(const sc_emu_options *o, sc_arena *a,
                         sc_emu_config *out, sc_err *err)
{
    resolve r = {.o = o, .a = a, .err = err};
    r.c.api = (sc_emu_api)o->api;
    r.c.clock = (sc_emu_clock)o->clock;
    r.c.progress = (sc_emu_progress)o->progress;
    r.c.siblings = o->siblings;
    r.c.step_collectives = (uint64_t)o->step_collectives;
    r.c.seed = (uint64_t)o->seed;
    keep(&r, find_machine(&r));
    keep(&r, find_world(&r));
    keep(&r, find_ranks(&r));
    keep(&r, find_delay(&r));
    keep(&r, find_whatifs(&r));
    keep(&r, find_data(&r));
    keep(&r, find_peers(&r));
    SC_TRY(r.first);
    SC_TRY(find_prices(&r));
    SC_TRY(find_factors(&r));
    *out = r.c;
    return SC_OK;
}
