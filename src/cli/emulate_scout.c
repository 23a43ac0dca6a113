/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulate_scout.c - `--peers scout`: traces of emulated ranks, made just before
 * the run.
 *
 * A scout is a run of the program as another rank, alone with emulated ranks
 * that mirror it. What it computes and calls is that rank's, and its waits do
 * not become part of a trace. It is ended when its log has enough steps.
 */
#include "cli/emulate.h"
#include "trace/trace.h"

#include <math.h>
#include <string.h>
#include <sys/wait.h>

#define SCOUTS  16u /* ranks that get a trace, if the user names none */
#define FEWEST  3u  /* repetitions; the first one is left out */
#define ENDINGS 8u  /* operations after the last one */
/* A scout is ended after so many repetitions, which can be micro-batches of a
 * first step; after fewer, if some time has passed or the user gave the length
 * of a step; and after so many seconds in any case. */
#define MANY    65u
#define ENOUGH  5u
#define SOME_S  20.0
#define LIMIT_S 60.0
#define LOOK_S  0.1 /* between looks at the log */
#define SLOWER  10  /* the same, in times that a look takes */

/* ---- repetitions --------------------------------------------------------- */

/* Repetitions of a sequence near the end of a run. */
typedef struct repetitions {
    uint64_t from, each, n; /* records */
    bool tags;              /* tags repeat, too */
} repetitions;

static void spell(const sc_emu_run *run, bool tags, bool bytes,
                  uint64_t *letter)
{
    for (uint64_t i = 0; i < run->n_records; i++) {
        const sc_emu_record *o = &run->record[run->n_records - 1 - i];
        const uint64_t parts[] = {o->coll,
                                  o->group,
                                  bytes ? o->bytes : 0,
                                  tags ? (uint32_t)o->tag : 0,
                                  o->peer,
                                  o->flags & SC_EMU_ASYNC};
        letter[i] = sc_hash(parts, sizeof parts, 0);
    }
}

/* The longest end of a run, given backwards, that repeats with a period of at
 * least `least` operations. `z` has room for `n`. */
static void longest(const uint64_t *letter, uint64_t n, uint64_t least,
                    bool tags, uint64_t *z, repetitions *best)
{
    uint64_t l = 0, r = 0, most = best->each * best->n;
    for (uint64_t p = 1; p < n; p++) { /* z[p]: common prefix with letter + p */
        uint64_t k = p < r ? (z[p - l] < r - p ? z[p - l] : r - p) : 0;
        while (p + k < n && letter[k] == letter[p + k]) k++;
        z[p] = k;
        if (p + k > r) {
            l = p;
            r = p + k;
        }
        if (p < least || (p + k) / p < FEWEST || p + k <= most) continue;
        most = p + k;
        *best = (repetitions){n - most, p, most / p, tags};
    }
}

static bool complete(const sc_emu_record *o, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (o[i].end == SC_TIME_MAX) return false;
    return true;
}

/* Counted from where the sequence begins to repeat. sc_emu_steps() counts back
 * from its end, which for a scout is wherever it was ended: traces of ranks
 * that begin at different places of a step would wait for each other. The last
 * operations of a run may not be part of it. */
static repetitions repeated(const emulate_run *s, const sc_emu_run *run)
{
    sc_arena *a = s->c->arena;
    repetitions best = {0};
    uint64_t n = run->n_records;
    uint64_t *letter = SC_NEW_N(a, uint64_t, n), *z = SC_NEW_N(a, uint64_t, n);
    if (!letter || !z) return best;
    for (int exact = 2; exact >= 0 && 2 * best.each * best.n < n; exact--) {
        spell(run, exact > 1, exact > 0, letter);
        for (uint64_t k = 0; k <= ENDINGS && k < n; k++)
            longest(letter + k, n - k, s->config.step_collectives, exact > 1, z,
                    &best);
    }
    const sc_emu_record *o = run->record + best.from;
    while (best.n > 0 && !complete(o + (best.n - 1) * best.each, best.each))
        best.n--;
    return best;
}

/* Whether each partner had the messages of `times` repetitions before `at`. */
static bool is_whole(const sc_emu_record *o, uint64_t at, const repetitions *x,
                     uint64_t times, uint64_t *more, uint64_t n)
{
    memset(more, 0, n * sizeof *more);
    for (uint64_t i = 0; i < at; i++)
        if (sc_coll_is_message(o[i].coll))
            more[2 * o[i].peer + (o[i].coll == SC_SEND)]++;
    for (uint64_t i = x->from; i < x->from + x->each; i++)
        if (sc_coll_is_message(o[i].coll))
            more[2 * o[i].peer + (o[i].coll == SC_SEND)] -= times;
    for (uint64_t k = 0; k < n; k++)
        if (more[k] != 0) return false;
    return true;
}

/* Where the trace begins: behind the first repetition and behind whole steps,
 * or partners would get messages of another step. A first step that differs
 * lets the sequence repeat from the middle of a step on. */
static uint64_t begins(const emulate_run *s, const sc_emu_run *run,
                       const repetitions *x)
{
    const sc_emu_record *o = run->record;
    uint64_t first = x->from + x->each, n = 2 * (uint64_t)run->world,
             before = 0, each = 0;
    uint64_t *more = SC_NEW_N(s->c->arena, uint64_t, n);
    for (uint64_t i = 0; i < first; i++) {
        before += sc_coll_is_message(o[i].coll);
        each += i >= x->from && sc_coll_is_message(o[i].coll);
    }
    for (uint64_t at = first; more && each && x->n > 2 && at < first + x->each;
         at++) {
        if (before % each == 0 && is_whole(o, at, x, before / each, more, n))
            return at;
        before += sc_coll_is_message(o[at].coll);
    }
    return first;
}

static sc_time ended(const sc_emu_record *o, uint64_t n)
{
    sc_time t = 0;
    for (uint64_t i = 0; i < n; i++)
        if (o[i].end > t) t = o[i].end;
    return t;
}

/* Whole repetitions from record `at` on, from time 0 on. */
static void cut(sc_emu_run *run, const repetitions *x, uint64_t at)
{
    sc_emu_record *o = &run->record[at];
    sc_time base = ended(o - x->each, x->each);
    run->record = o;
    run->n_records = (x->from + x->n * x->each - at) / x->each * x->each;
    run->totals.now = ended(o, run->n_records) - base;
    for (uint64_t i = 0; i < run->n_records; i++) {
        if (!x->tags) o[i].tag = SC_EMU_ANY_TAG;
        o[i].post -= base;
        o[i].begin -= base;
        o[i].end -= base;
        if (o[i].resumed != 0) /* 0: not waited for */
            o[i].resumed = o[i].resumed > base ? o[i].resumed - base : 1;
    }
}

/* ---- one scout ----------------------------------------------------------- */

static bool enough(emulate_run *s)
{
    const sc_emu_run *run = NULL;
    if (cli_emulate_log(s, s->rank[0].rank, &run) != SC_OK) {
        sc_err_init(s->c->err); /* the log has just been begun */
        return false;
    }
    if (!run || run->n_records == 0) return false;
    if (isnan(s->scout.began)) s->scout.began = cli_now_s();
    double lasted = cli_now_s() - s->scout.began;
    bool soon = lasted >= SOME_S || s->config.step_collectives > 0;
    return lasted >= LIMIT_S || repeated(s, run).n >= (soon ? ENOUGH : MANY);
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

/* The program as `rank` alone, which the launcher's files describe. */
static sc_status options(const emulate_run *r, uint32_t rank, sc_emu_options *e,
                         sc_opt_set *set)
{
    sc_arena *a = r->c->arena;
    *e = *r->e;
    *set = (sc_opt_set){sc_emu_keys, e, r->set->given};
    e->peers = "mirror";
    e->what_if = NULL; /* they act on traces, too */
    e->ranks = SC_NEW_N(a, const char *, 2);
    if (!e->ranks || !(e->ranks[0] = sc_sprintf(a, "%u", rank)))
        return sc_error_nomem(r->c->err);
    sc_given_set(&set->given, sc_emu_keys, "ranks");
    return SC_OK;
}

static bool is_real(const emulate_run *r, uint32_t rank)
{
    return sc_find_rising(r->config.real, r->config.n_real, rank) <
           r->config.n_real;
}

/* Why a rank has no trace. */
static void mirrors(emulate_run *r, uint32_t rank, const char *why)
{
    sc_text_add(&r->warnings,
                "the scout of rank %u %s; emulated ranks without a trace "
                "mirror\n",
                rank, why ? why : "failed");
}

/* Those of the first scout that has any: others mostly have the same. */
static void pass_on_warnings(emulate_run *r, const sc_emu_run *run)
{
    static const char mark[] = "warning: ";
    if (r->scout.warned) return;
    for (uint32_t i = 0; i < run->n_texts; i++) {
        if (strncmp(run->text[i], mark, sizeof mark - 1) != 0) continue;
        r->scout.warned = true;
        sc_text_add(&r->warnings, "scout of rank %u: %s\n", run->rank,
                    run->text[i] + sizeof mark - 1);
    }
}

static sc_status read_scout(emulate_run *r, emulate_run *s, sc_emu_run *run)
{
    sc_report_real k = {.rank = s->rank[0].rank};
    int status = s->rank[0].status;
    sc_status st = cli_emulate_log(s, k.rank, &k.run);
    bool found = k.run && k.run->n_records > 0;
    if (k.run) pass_on_warnings(r, k.run);
    if (st != SC_OK) {
        mirrors(r, k.rank, r->c->err->n ? r->c->err->d[0].msg : NULL);
        sc_err_init(r->c->err);
    } else if (s->end == EMULATE_RANK) {
        k.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        if (k.status < 0) k.signal = cli_emulate_signal(r->c, WTERMSIG(status));
        mirrors(
            r, k.rank,
            sc_sprintf(r->c->arena, "failed: %s", cli_emulate_failure(s, &k)));
    } else if (!found) {
        mirrors(r, k.rank, "called no collective and sent no message");
    } else if (s->end != EMULATE_SIGNAL) {
        repetitions x = repeated(s, k.run);
        *run = *k.run;
        if (x.n > 1)
            cut(run, &x, begins(s, run, &x));
        else if (!is_real(r, k.rank))
            sc_text_add(&r->warnings,
                        "the scout of rank %u repeated no sequence of "
                        "operations: its trace is all that it did\n",
                        k.rank);
    }
    return SC_OK;
}

/* run->n_records 0: there is no trace, which a warning explains. */
static sc_status scout(emulate_run *r, uint32_t rank, sc_emu_run *run)
{
    sc_emu_options e;
    sc_opt_set set;
    emulate_rank one = {.rank = rank};
    emulate_opts o = *r->o;
    emulate_run s = *r;
    SC_TRY(options(r, rank, &e, &set));
    o.keep = false;
    s.o = &o;
    s.e = &e;
    s.set = &set;
    s.config.n_real = s.n = s.n_processes = 1;
    s.config.real = &one.rank;
    s.config.n_whatif = 0;
    s.rank = &one;
    s.scout = (emulate_scout){.active = true, .began = (double)NAN};
    sc_text_init(&s.warnings);
    cli_note(r->c, "scout: rank %u runs alone\n", rank);
    *run = (sc_emu_run){.rank = rank};
    sc_status st = cli_emulate_live(&s);
    cli_emulate_store_stop(&s);
    cli_emulate_world_stop(&s);
    if (st == SC_OK) st = read_scout(r, &s, run);
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

typedef struct party {
    emulate_run *r;
    uint8_t *known; /* [world] real, or in the queue */
    uint32_t
        *queue; /* [world] partners, in the order in which they are found */
    uint32_t n, n_runs;
    sc_emu_run *run; /* [n_runs] with traces */
} party;

static void enqueue(party *p, uint32_t rank)
{
    if (rank >= p->r->config.world || p->known[rank]) return;
    p->known[rank] = 1;
    p->queue[p->n++] = rank;
}

static void partners(party *p, const sc_emu_run *run)
{
    for (uint64_t i = 0; i < run->n_records; i++)
        if (sc_coll_is_message(run->record[i].coll))
            enqueue(p, run->record[i].peer);
}

/* Real ranks are scouted for their partners only. */
static sc_status find_partners(party *p)
{
    emulate_run *r = p->r;
    sc_emu_run run;
    for (uint32_t i = 0; i < r->n && r->end == EMULATE_ITSELF; i++) {
        SC_TRY(scout(r, r->rank[i].rank, &run));
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
        SC_TRY(scout(r, p->queue[i], run));
        if (run->n_records == 0) continue;
        p->n_runs++;
        if (r->config.n_scouts == 0) partners(p, run);
    }
    if (i < p->n && r->end == EMULATE_ITSELF)
        sc_text_add(&r->warnings,
                    "messages reach more than %u emulated ranks; those behind "
                    "rank %u mirror, unless --peers scout:LIST names them\n",
                    most, p->queue[i - 1]);
    return SC_OK;
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
    for (uint32_t i = 0; i < r->n; i++) p.known[e->real[i]] = 1;
    for (uint32_t i = 0; i < e->n_scouts; i++) enqueue(&p, e->scout[i]);
    if (e->n_scouts == 0) SC_TRY(find_partners(&p));
    SC_TRY(scout_all(&p, most));
    r->scouted = p.run;
    r->n_scouted = p.n_runs;
    return SC_OK;
}

/* ---- their traces -------------------------------------------------------- */

sc_status cli_emulate_scouts_write(emulate_run *r)
{
    cli *c = r->c;
    sc_workload w;
    sc_emu_trace_opts o = {0};
    sc_emu_options *e = SC_NEW(c->arena, sc_emu_options);
    const char *peers = sc_sprintf(c->arena, "scout:%s/scout", r->folder);
    if (!e || !peers) return sc_error_nomem(c->err);
    *e = *r->e;
    e->peers = r->n_scouted > 0 ? peers : "mirror";
    r->e = e;
    if (r->n_scouted == 0) return SC_OK;
    SC_TRY(sc_emu_workload(r->scouted, r->n_scouted, &o, c->arena, &w, c->err));
    SC_TRY(sc_trace_write_sparse(&w, strchr(peers, '/'), c->err));
    return sc_emu_resolve(e, c->arena, &r->config, c->err);
}

const char *cli_emulate_scouts_text(const emulate_run *r)
{
    sc_text t;
    sc_text_init(&t);
    sc_text_add(&t, "emulated ranks");
    for (uint32_t i = 0; i < r->n_scouted; i++)
        sc_text_add(&t, "%s %u", i ? "," : "", r->scouted[i].rank);
    sc_text_add(&t, " arrive at the times of their scouts: the program ran as "
                    "each of them before, alone");
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
                is_real(r, o->peer) ||
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
