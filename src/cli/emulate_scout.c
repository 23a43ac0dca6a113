/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulate_scout.c - `--peers scout`: traces of emulated ranks, made just before
 * the run.
 *
 * A scout is a run of the program as another rank, alone with emulated ranks
 * that mirror it. What it computes and calls is that rank's, and its waits do
 * not become part of a trace. It is ended when its log has enough steps.
 *
 * What a program does may depend on when messages arrive, or on what is in
 * them. If a scout notices that, or fails, all of them run once more, together
 * with the real ranks.
 */
#include "cli/emulate.h"

#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCOUTS 16u /* ranks that get a trace, if the user names none */
/* A scout is ended after so many repetitions, which can be micro-batches of a
 * first step; after fewer, if some time has passed, the user gave the length of
 * a step, or it will run once more; and after so many seconds in any case. */
#define MANY    65u
#define ENOUGH  5u
#define SOME_S  20.0
#define LIMIT_S 60.0
#define LOOK_S  0.1 /* between looks at the log */
#define SLOWER  10  /* the same, in times that a look takes */

typedef struct party {
    emulate_run *r;
    uint8_t *known; /* [world] real, or in the queue */
    uint32_t
        *queue; /* [world] partners, in the order in which they are found */
    uint32_t n, n_runs;
    sc_emu_run *run; /* [n_runs] with traces */
    bool warned;     /* the first warnings of a scout are passed on */
    bool again;      /* they are to run together */
    sc_text said;    /* warnings that are void if they do */
} party;

/* ---- runs of scouts ------------------------------------------------------ */

static bool repeats(emulate_run *s, uint32_t i, uint64_t least)
{
    const sc_emu_run *run = NULL;
    if (cli_emulate_log(s, s->rank[i].rank, &run) != SC_OK) {
        sc_err_init(s->c->err); /* the log has just been begun */
        return false;
    }
    if (!run || run->n_records == 0) return false;
    if (isnan(s->scout.began)) s->scout.began = cli_now_s();
    return sc_emu_loop_find(run, s->config.step_collectives, s->c->arena).n >=
           least;
}

static bool enough(emulate_run *s)
{
    double lasted = cli_now_s() - s->scout.began;
    bool soon =
        s->scout.soon || lasted >= SOME_S || s->config.step_collectives > 0;
    bool all = true;
    for (uint32_t i = 0; i < s->n && all; i++)
        all = s->rank[i].ended || repeats(s, i, soon ? ENOUGH : MANY);
    return all || lasted >= LIMIT_S;
}

bool cli_emulate_scout_look(emulate_run *s)
{
    double now = cli_now_s();
    if (now < s->scout.next) return false;
    sc_arena_mark mark = sc_arena_save(s->c->arena);
    bool done = enough(s);
    sc_arena_restore(s->c->arena, mark);
    double after = cli_now_s(), pause = SLOWER * (after - now);
    s->scout.next = after + (pause > LOOK_S ? pause : LOOK_S);
    return done;
}

/* The program as these ranks alone, which the launcher's files describe. More
 * ranks than processors need the virtual clock. */
static sc_status options(const emulate_run *r, const uint32_t *rank, uint32_t n,
                         sc_emu_options *e, sc_opt_set *set)
{
    sc_arena *a = r->c->arena;
    *e = *r->e;
    *set = (sc_opt_set){sc_emu_keys, e, r->set->given};
    e->peers = "mirror";
    e->what_if = NULL; /* they act on traces, too */
    e->ranks = SC_NEW_N(a, const char *, (size_t)n + 1);
    if (!e->ranks) return sc_error_nomem(r->c->err);
    for (uint32_t i = 0; i < n; i++)
        if (!(e->ranks[i] = sc_sprintf(a, "%u", rank[i])))
            return sc_error_nomem(r->c->err);
    if (n > 1 && (long)n > sysconf(_SC_NPROCESSORS_ONLN))
        e->clock = SC_EMU_VIRTUAL;
    sc_given_set(&set->given, sc_emu_keys, "ranks");
    sc_given_set(&set->given, sc_emu_keys, "clock");
    return SC_OK;
}

/* Why a rank has no trace. */
static void mirrors(party *p, uint32_t rank, const char *why)
{
    sc_text_add(&p->said,
                "the scout of rank %u %s; emulated ranks without a trace "
                "mirror\n",
                rank, why ? why : "failed");
}

/* Those of the first scout that has any: others mostly have the same. */
static void pass_on_warnings(party *p, const sc_emu_run *run)
{
    static const char mark[] = "warning: ";
    if (p->warned) return;
    for (uint32_t i = 0; i < run->n_texts; i++) {
        if (strncmp(run->text[i], mark, sizeof mark - 1) != 0) continue;
        p->warned = true;
        sc_text_add(&p->said, "scout of rank %u: %s\n", run->rank,
                    run->text[i] + sizeof mark - 1);
    }
}

/* What rank[i] did; n_records 0: nothing of use, which a warning explains. */
static sc_status read_scout(party *p, emulate_run *s, uint32_t i,
                            sc_emu_run *out)
{
    cli *c = s->c;
    sc_report_real *k = SC_NEW_N(c->arena, sc_report_real, s->n);
    if (!k) return sc_error_nomem(c->err);
    int status = s->rank[i].status;
    k[i].rank = s->rank[i].rank;
    sc_status st = cli_emulate_log(s, k[i].rank, &k[i].run);
    *out = (sc_emu_run){.rank = k[i].rank};
    if (k[i].run) {
        pass_on_warnings(p, k[i].run);
        p->again = p->again || k[i].run->totals.guessed;
    }
    if (st != SC_OK) {
        mirrors(p, k[i].rank, c->err->n ? c->err->d[0].msg : NULL);
        sc_err_init(c->err);
    } else if (s->end == EMULATE_RANK) {
        p->again = true;
        if (i != s->failed) return SC_OK;
        k[i].status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        if (k[i].status < 0)
            k[i].signal = cli_emulate_signal(c, WTERMSIG(status));
        mirrors(p, k[i].rank,
                sc_sprintf(c->arena, "failed: %s", cli_emulate_failure(s, k)));
    } else if (!k[i].run || k[i].run->n_records == 0) {
        mirrors(p, k[i].rank, "called no collective and sent no message");
    } else if (s->end != EMULATE_SIGNAL) {
        *out = *k[i].run;
    }
    return SC_OK;
}

/* Those that ran together go on together, or none of them does. */
static sc_status read_scouts(party *p, emulate_run *s, sc_emu_run *run)
{
    sc_arena *a = s->c->arena;
    sc_emu_loop *x = SC_NEW_N(a, sc_emu_loop, s->n);
    uint32_t once = UINT32_MAX;
    if (!x) return sc_error_nomem(s->c->err);
    for (uint32_t i = 0; i < s->n; i++) {
        SC_TRY(read_scout(p, s, i, &run[i]));
        if (run[i].n_records == 0) continue;
        x[i] = sc_emu_loop_find(&run[i], s->config.step_collectives, a);
        if (x[i].n < 2 && once == UINT32_MAX) once = i;
    }
    for (uint32_t i = 0; i < s->n && once == UINT32_MAX; i++)
        if (run[i].n_records > 0) sc_emu_loop_cut(&run[i], &x[i]);
    if (once < s->n &&
        (s->n > 1 || !sc_emu_is_real(&p->r->config, run[once].rank)))
        sc_text_add(&p->said,
                    "the scout of rank %u repeated no sequence of operations: "
                    "%s trace%s all that it did\n",
                    run[once].rank, s->n > 1 ? "the" : "its",
                    s->n > 1 ? " of each rank is" : " is");
    return SC_OK;
}

/* Runs the program as `n` ranks (rising) alone; run [n]: what each did. */
static sc_status scout(party *p, const uint32_t *rank, uint32_t n,
                       sc_emu_run *run)
{
    emulate_run *r = p->r, s = *r;
    sc_emu_options e;
    sc_opt_set set;
    emulate_opts o = *r->o;
    SC_TRY(options(r, rank, n, &e, &set));
    o.keep = false;
    s.o = &o;
    s.e = &e;
    s.set = &set;
    s.config.clock = (sc_emu_clock)e.clock;
    if (e.clock == SC_EMU_VIRTUAL) s.program.libs |= 1u << EMULATE_CLOCK;
    s.config.n_real = s.n = s.n_processes = n;
    s.config.real = rank;
    s.config.n_whatif = 0;
    s.rank = SC_NEW_N(r->c->arena, emulate_rank, n);
    if (!s.rank) return sc_error_nomem(r->c->err);
    for (uint32_t i = 0; i < n; i++) s.rank[i].rank = rank[i];
    s.scout = (emulate_scout){
        .active = true, .soon = p->again && n == 1, .began = (double)NAN};
    sc_text_init(&s.warnings);
    if (n == 1)
        cli_note(r->c, "scout: rank %u runs alone\n", rank[0]);
    else
        cli_note(r->c, "scouts: %u ranks run together\n", n);
    sc_status st = cli_emulate_live(&s);
    cli_emulate_store_stop(&s);
    cli_emulate_world_stop(&s);
    if (st == SC_OK) st = read_scouts(p, &s, run);
    cli_emulate_folder_remove(&s);
    cli_emulate_guard_stop(&s);
    sc_text_free(&s.warnings);
    if (s.end == EMULATE_SIGNAL) {
        r->end = s.end;
        r->signal = s.signal;
    }
    return st;
}

/* ---- which ranks --------------------------------------------------------- */

static void enqueue(party *p, uint32_t rank)
{
    if (rank >= p->r->config.world || p->known[rank]) return;
    p->known[rank] = 1;
    p->queue[p->n++] = rank;
}

/* Ranks that exchange messages with it and, if they are few, those that call
 * collectives with it. */
static void partners(party *p, const sc_emu_run *run)
{
    const sc_emu_config *c = &p->r->config;
    bool few = c->world - c->n_real <= SCOUTS;
    for (uint64_t i = 0; i < run->n_records; i++) {
        const sc_emu_record *o = &run->record[i];
        const sc_rank_group *g = &run->group[o->group];
        if (sc_coll_is_message(o->coll)) enqueue(p, o->peer);
        for (uint32_t k = 0; few && !sc_coll_is_message(o->coll) && k < g->n;
             k++)
            enqueue(p, g->rank[k]);
    }
}

/* Real ranks are scouted for their partners only. */
static sc_status find_partners(party *p)
{
    emulate_run *r = p->r;
    sc_emu_run run;
    for (uint32_t i = 0; i < r->n && r->end == EMULATE_ITSELF; i++) {
        SC_TRY(scout(p, &r->rank[i].rank, 1, &run));
        partners(p, &run);
    }
    return SC_OK;
}

static sc_status scout_all(party *p, uint32_t most)
{
    emulate_run *r = p->r;
    uint32_t i = 0;
    for (; i < p->n && i < most && r->end == EMULATE_ITSELF; i++) {
        sc_emu_run *run = &p->run[p->n_runs];
        SC_TRY(scout(p, &p->queue[i], 1, run));
        if (run->n_records == 0) continue;
        p->n_runs++;
        if (r->config.n_scouts == 0) partners(p, run);
    }
    if (i < p->n && r->end == EMULATE_ITSELF)
        sc_text_add(&r->warnings,
                    "messages reach more than %u emulated ranks; those behind "
                    "rank %u mirror, unless --peers scout:LIST names them\n",
                    most, p->queue[i - 1]);
    p->n = i;
    return SC_OK;
}

/* All scouts and the real ranks at once; their traces take the place of those
 * of scouts that were alone. */
static sc_status together(party *p)
{
    emulate_run *r = p->r;
    sc_arena *a = r->c->arena;
    uint32_t n = r->n + p->n, k = 0;
    uint32_t *rank = SC_NEW_N(a, uint32_t, n);
    sc_emu_run *run = SC_NEW_N(a, sc_emu_run, n);
    if (!rank || !run) return sc_error_nomem(r->c->err);
    memcpy(rank, r->config.real, r->n * sizeof *rank);
    memcpy(rank + r->n, p->queue, p->n * sizeof *rank);
    sc_sort_numbers(rank, n);
    party all = {.r = r};
    sc_text_init(&all.said);
    sc_status st = scout(&all, rank, n, run);
    sc_emu_run *real = SC_NEW_N(a, sc_emu_run, r->n);
    if (!real) return sc_error_nomem(r->c->err);
    for (uint32_t i = 0; i < n; i++) {
        if (run[i].n_records == 0) continue;
        if (sc_emu_is_real(&r->config, run[i].rank))
            real[r->n_together++] = run[i];
        else
            run[k++] = run[i];
    }
    if (k > 0) {
        sc_text_free(&p->said);
        p->said = all.said;
        memcpy(p->run, run, k * sizeof *run);
        p->n_runs = k;
        r->together = real;
    } else {
        sc_text_free(&all.said);
    }
    return st;
}

sc_status cli_emulate_scouts(emulate_run *r)
{
    cli *c = r->c;
    const sc_emu_config *e = &r->config;
    party p = {.r = r};
    if (!e->scouts || e->n_real == e->world) return SC_OK;
    uint32_t most = e->n_scouts ? e->n_scouts : SCOUTS;
    p.known = SC_NEW_N(c->arena, uint8_t, e->world);
    p.queue = SC_NEW_N(c->arena, uint32_t, e->world);
    p.run = SC_NEW_N(c->arena, sc_emu_run, most);
    if (!p.known || !p.queue || !p.run) return sc_error_nomem(c->err);
    sc_text_init(&p.said);
    for (uint32_t i = 0; i < r->n; i++) p.known[e->real[i]] = 1;
    for (uint32_t i = 0; i < e->n_scouts; i++) enqueue(&p, e->scout[i]);
    sc_status s = e->n_scouts == 0 ? find_partners(&p) : SC_OK;
    if (s == SC_OK) s = scout_all(&p, most);
    if (s == SC_OK && p.again && p.n > 0 && r->end == EMULATE_ITSELF)
        s = together(&p);
    if (p.said.len) sc_text_add(&r->warnings, "%s", p.said.buf);
    sc_text_free(&p.said);
    r->scouted = p.run;
    r->n_scouted = p.n_runs;
    return s;
}

/* ---- their traces -------------------------------------------------------- */

sc_status cli_emulate_scouts_write(emulate_run *r)
{
    cli *c = r->c;
    sc_emu_options *e = SC_NEW(c->arena, sc_emu_options);
    const char *peers = sc_sprintf(c->arena, "scout:%s/scout", r->folder);
    if (!e || !peers) return sc_error_nomem(c->err);
    *e = *r->e;
    e->peers = r->n_scouted > 0 ? peers : "mirror";
    r->e = e;
    for (uint32_t i = 0; i < r->n_scouted; i++) {
        const char *path = sc_sprintf(c->arena, "%s/scout.%u", r->folder, i);
        if (!path) return sc_error_nomem(c->err);
        SC_TRY(sc_emu_log_save(&r->scouted[i], path, c->arena, c->err));
    }
    return r->n_scouted > 0 ? sc_emu_resolve(e, c->arena, &r->config, c->err)
                            : SC_OK;
}

const char *cli_emulate_scouts_text(const emulate_run *r)
{
    sc_text t;
    sc_text_init(&t);
    sc_text_add(&t, "emulated ranks");
    for (uint32_t i = 0; i < r->n_scouted; i++)
        sc_text_add(&t, "%s %u", i ? "," : "", r->scouted[i].rank);
    sc_text_add(&t,
                " arrive at the times of their scouts: the program ran as "
                "%s",
                r->together ? "all of them and the real ranks before, together"
                            : "each of them before, alone");
    if (r->n_scouted < r->config.world - r->config.n_real)
        sc_text_add(&t, "; all others compute for as long as the real ones");
    const char *out = t.failed ? NULL : sc_strdup(r->c->arena, t.buf);
    sc_text_free(&t);
    return out;
}

/* ---- receives from ranks that mirror ------------------------------------- */

const char *cli_emulate_mirrored(const emulate_run *r,
                                 const sc_report_real *real)
{
    for (uint32_t i = 0; i < r->n; i++) {
        const sc_emu_run *run = real[i].run;
        for (uint64_t k = 0; run && k < run->n_records; k++) {
            const sc_emu_record *o = &run->record[k];
            if (o->coll != SC_RECV || o->peer >= run->world ||
                sc_emu_is_real(&r->config, o->peer) ||
                sc_emu_sends(&r->config, o->peer, run->rank))
                continue;
            return sc_sprintf(r->c->arena,
                              "rank %u receives from emulated rank %u, which "
                              "sends when it is asked: give --peers scout, "
                              "traces, or more --ranks",
                              run->rank, o->peer);
        }
    }
    return NULL;
}

/* ---- real ranks that compute something else ------------------------------ */

#define OTHER_WORK 0.1 /* of the computation between two operations */
#define OPERATIONS 16u /* at least */

/* What a rank computed between two operations of the second half of its run, on
 * average. */
static double computed(const sc_emu_run *run)
{
    sc_time waited = 0, end = 0;
    uint64_t n = run->n_records, half = n / 2;
    for (uint64_t i = half; i < n; i++) {
        const sc_emu_record *o = &run->record[i];
        waited += o->waited;
        /* MAX: it was in flight when the program ended */
        if (o->resumed > end && o->resumed < SC_TIME_MAX) end = o->resumed;
    }
    return n < OPERATIONS ? (double)NAN
                          : (double)(end - run->record[half].post - waited) /
                                (double)(n - half);
}

const char *cli_emulate_other_work(const emulate_run *r,
                                   const sc_report_real *real)
{
    char is[32], was[32];
    for (uint32_t i = 0; r->together && i < r->n; i++)
        for (uint32_t k = 0; real[i].run && k < r->n_together; k++) {
            if (r->together[k].rank != real[i].run->rank) continue;
            double now = computed(real[i].run),
                   then = computed(&r->together[k]);
            if (!(fabs(now - then) > OTHER_WORK * then)) continue;
            sc_unit_print_short(now / 1e12, SC_U_TIME, is, sizeof is);
            sc_unit_print_short(then / 1e12, SC_U_TIME, was, sizeof was);
            return sc_sprintf(
                r->c->arena,
                "rank %u computed %s between operations, but %s "
                "when its scouts ran with it: its work depends on "
                "what other ranks send; make all ranks real "
                "(--ranks all)",
                real[i].run->rank, is, was);
        }
    return NULL;
}
