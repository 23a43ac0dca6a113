/* SPDX-License-Identifier: Apache-2.0 */
/* emulate_result.c - reads the logs of a run and prints the result. */
#include "cli/emulate.h"
#include "cli/predict.h"
#include "cli/simulate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_INPUTS 4
#define MAX_LINES  64

/* The output, and the file that holds it until it is complete. */
typedef struct result {
    emulate_run *r;
    sc_report_real *real; /* [r->n] */
    const char *warning[MAX_LINES], *assumption[MAX_LINES];
    sc_report_input input[MAX_INPUTS];
    sc_report_emu_sum sum;
    cli_emitted recorded; /* dir NULL: nothing was recorded */
    sc_report_emulation s;
} result;

/* The library behind each emulate_lib but the clock. */
static const sc_emu_api preloaded[] = {[EMULATE_NCCL] = SC_EMU_API_NCCL,
                                       [EMULATE_TORCH] = SC_EMU_API_GLOO,
                                       [EMULATE_MPI] = SC_EMU_API_MPI};

static const struct {
    int number;
    const char *name;
} signals[] = {{SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"},
               {SIGILL, "SIGILL"},   {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"},
               {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGKILL, "SIGKILL"},
               {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
               {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"},
               {SIGXCPU, "SIGXCPU"}, {SIGSYS, "SIGSYS"}};

const char *cli_emulate_signal(cli *c, int number)
{
    for (size_t i = 0; i < SC_COUNT(signals); i++)
        if (signals[i].number == number) return signals[i].name;
    return sc_sprintf(c->arena, "signal %d", number);
}

/* ---- reading ------------------------------------------------------------- */

sc_status cli_emulate_log(const emulate_run *r, uint32_t rank,
                          const sc_emu_run **out)
{
    cli *c = r->c;
    const char *path = sc_sprintf(c->arena, "%s/log.%u", r->folder, rank);
    sc_emu_run *run = SC_NEW(c->arena, sc_emu_run);
    if (!path || !run) return sc_error_nomem(c->err);
    if (access(path, R_OK) != 0) return SC_OK;
    SC_TRY(sc_emu_log_load(path, c->arena, run, c->err));
    *out = run;
    return SC_OK;
}

static sc_status read_log(const emulate_run *r, sc_report_real *k)
{
    const sc_emu_run *run = NULL;
    sc_emu_step *step = NULL;
    SC_TRY(cli_emulate_log(r, k->rank, &run));
    if (!run) return SC_OK;
    SC_TRY(sc_emu_steps(run, r->config.step_collectives, r->c->arena, &step,
                        &k->n_steps, &k->sure, r->c->err));
    k->run = run;
    k->step = step;
    return SC_OK;
}

/* A broken log becomes a warning, so that the other logs are still used. */
static sc_status keep_going(emulate_run *r, sc_status s)
{
    char line[800];
    for (uint32_t i = 0; i < r->c->err->n; i++) {
        sc_diag_format(&r->c->err->d[i], line, sizeof line);
        fprintf(stderr, "%s\n", line);
        sc_text_add(&r->warnings, "%s\n", line);
    }
    sc_err_init(r->c->err);
    return s;
}

/* The processes of the ranks were started by another. */
static void use_totals(sc_report_real *k)
{
    const sc_emu_totals *t = k->run ? &k->run->totals : NULL;
    bool known = t && t->peak_rss > 0;
    k->cpu_s = known ? sc_time_to_s(t->cpu) : (double)NAN;
    k->peak_rss_bytes = known ? t->peak_rss : 0;
    k->preemptions = known ? t->preemptions : 0;
}

static sc_status read_ranks(result *x)
{
    emulate_run *r = x->r;
    sc_status first = SC_OK;
    x->real = SC_NEW_N(r->c->arena, sc_report_real, r->n);
    if (!x->real) return sc_error_nomem(r->c->err);
    for (uint32_t i = 0; i < r->n; i++) {
        const emulate_rank *k = &r->rank[i];
        bool exited = WIFEXITED(k->status);
        x->real[i] = (sc_report_real){
            .rank = k->rank,
            .cpu_s = k->cpu_s,
            .peak_rss_bytes = k->peak_rss,
            .preemptions = k->preemptions,
            .status = exited ? WEXITSTATUS(k->status) : -1,
            .signal =
                exited ? NULL : cli_emulate_signal(r->c, WTERMSIG(k->status))};
        sc_status s = keep_going(r, read_log(r, &x->real[i]));
        if (first == SC_OK) first = s;
        if (r->once) use_totals(&x->real[i]);
    }
    return first;
}

/* ---- warnings ------------------------------------------------------------ */

static void warn(result *x, const char *text)
{
    sc_report_emulation *s = &x->s;
    if (!text) return;
    for (uint32_t i = 0; i < s->n_warnings; i++)
        if (strcmp(x->warning[i], text) == 0) return;
    if (s->n_warnings < MAX_LINES) x->warning[s->n_warnings++] = text;
}

/* The ranks' own messages are on stderr already. */
static void log_warnings(result *x)
{
    static const char mark[] = "warning: ";
    for (uint32_t i = 0; i < x->r->n; i++) {
        const sc_emu_run *run = x->real[i].run;
        for (uint32_t k = 0; run && k < run->n_texts; k++)
            if (strncmp(run->text[k], mark, sizeof mark - 1) == 0)
                warn(x, run->text[k] + sizeof mark - 1);
    }
}

/* Adds a warning, and prints it to stderr unless the page there contains it. */
static void own_warning(result *x, const char *text)
{
    const cli *c = x->r->c;
    if (!text) return;
    warn(x, text);
    if (c->json || c->output) cli_note(c, "warning: %s\n", text);
}

/* Warns if steps were not found or are uncertain. */
static void step_warnings(result *x)
{
    const emulate_run *r = x->r;
    sc_arena *a = r->c->arena;
    const sc_report_emu_sum *m = &x->sum;
    unsigned long long asked = r->config.step_collectives;
    if (m->n_ops == 0 && !x->s.failure)
        own_warning(x, sc_sprintf(a, "%s called no collective of %s",
                                  r->program.name, x->s.library));
    else if (m->n_ops > 0 && m->n_steps == 0 && asked)
        own_warning(x, sc_sprintf(a,
                                  "--step-collectives %llu: the run has fewer "
                                  "operations than one step",
                                  asked));
    else if (m->n_ops > 0 && m->n_steps == 0)
        own_warning(x, "no sequence of operations repeats; give the number of "
                       "operations of a step with --step-collectives");
    for (uint32_t i = 0; i < r->n; i++)
        if (x->real[i].n_steps > 0 && !x->real[i].sure)
            own_warning(
                x,
                sc_sprintf(
                    a,
                    "rank %u: a step seems to have %llu operations, but this "
                    "is not certain; give the number with --step-collectives",
                    x->real[i].rank, (unsigned long long)x->real[i].step->n));
}

#define SPREAD   0.1 /* between quartiles, of the median */
#define ENOUGH   4   /* steps needed for quartiles */
#define PREEMPTS 100 /* per second of CPU time: under 50 on a quiet machine */

/* Whether other programs on this machine affected the numbers. */
static void machine_warnings(result *x)
{
    const emulate_run *r = x->r;
    sc_arena *a = r->c->arena;
    const sc_report_emu_sum *m = &x->sum;
    double cpu_s = 0, preempted = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const sc_report_real *k = &x->real[i];
        cpu_s += isnan(k->cpu_s) ? 0 : k->cpu_s;
        preempted += (double)k->preemptions;
    }
    if (r->config.clock == SC_EMU_REAL && m->n_steps > 0 &&
        preempted > PREEMPTS * cpu_s && preempted > PREEMPTS)
        own_warning(
            x, sc_sprintf(a,
                          "the machine was busy: the program lost the "
                          "processor to others %.0f times per second of CPU "
                          "time, so the measured steps are too long; use "
                          "--clock virtual, or a processor for each thread",
                          preempted / cpu_s));
    double spread = m->step_q3_s - m->step_q1_s;
    if (m->n_steps >= ENOUGH && spread > SPREAD * m->step_s)
        own_warning(x, sc_sprintf(a,
                                  "steps vary: the distance between their "
                                  "quartiles is %.0f %% of the median",
                                  100 * spread / m->step_s));
}

static void warnings(result *x)
{
    const emulate_run *r = x->r;
    sc_arena *a = r->c->arena;
    const sc_report_emu_sum *m = &x->sum;
    log_warnings(x);
    step_warnings(x);
    machine_warnings(x);
    own_warning(x, cli_emulate_mirrored(r, x->real));
    own_warning(x, cli_emulate_other_work(r, x->real));
    if (m->passed > 0)
        own_warning(
            x,
            sc_sprintf(
                a,
                "%llu calls went to the real library and add no modelled time",
                (unsigned long long)m->passed));
    if (r->n_left > 0)
        own_warning(x, sc_sprintf(a,
                                  "%u process%s that the program had left "
                                  "behind %s ended",
                                  r->n_left, r->n_left == 1 ? "" : "es",
                                  r->n_left == 1 ? "was" : "were"));
    for (const char *at = r->warnings.buf; *at;) {
        size_t n = strcspn(at, "\n");
        own_warning(x, sc_strndup(a, at, n));
        at += n + (at[n] == '\n');
    }
}

/* Bit per sc_emu_api: the libraries that the ranks called. */
static uint32_t called(const result *x)
{
    uint32_t apis = 0;
    for (uint32_t i = 0; i < x->r->n; i++)
        apis |= x->real[i].run ? x->real[i].run->totals.apis : 0;
    return apis;
}

static void assume(result *x, const char *text)
{
    if (text && x->s.n_assumptions < MAX_LINES)
        x->assumption[x->s.n_assumptions++] = text;
}

static void assumptions(result *x)
{
    const emulate_run *r = x->r;
    const sc_emu_options *e = r->e;
    sc_arena *a = r->c->arena;
    assume(x, sc_hw_assumed(r->config.hw, a));
    assume(x,
           sc_sprintf(a, "interposed %s: %s", x->s.library,
                      called(x) ? r->program.why : "the program called none"));
    assume(x,
           r->config.clock == SC_EMU_VIRTUAL
               ? "virtual clock: CPU time of the program plus modelled waits"
               : "real clock: operations take their modelled time on this "
                 "machine's clock, and the program computes at its own speed");
    assume(x, sc_sprintf(a, "delay model: %s", e->delay_model));
    if (r->config.delay == SC_EMU_DELAY_ANALYTIC &&
        called(x) & ~(1u << SC_EMU_API_NCCL))
        assume(x, "prices are those of NCCL between devices; --delay-model "
                  "host prices MPI between hosts, table:FILE reads measured "
                  "times");
    assume(x, r->n_scouted > 0 ? cli_emulate_scouts_text(r)
              : r->config.peers
                  ? sc_sprintf(a,
                               "emulated ranks arrive at operations at the "
                               "times of the traces %s",
                               e->peers)
                  : "emulated ranks compute for as long as the real ones");
    if (x->sum.device)
        assume(
            x,
            "streams of the device wait for operations, and what it computes "
            "meanwhile is unknown: waited_s is unknown and at most "
            "in_flight_s, which is used as the waiting time of emulated ranks");
    if (r->config.compute_factor)
        assume(x, "emulated ranks on a device of another kind than the first "
                  "real rank's compute in the ratio of the predicted times");
    assume(x, r->config.siblings
                  ? "groups of the same shape that have no real rank "
                    "communicate at the same time as the real ranks' group"
                  : "groups that have no real rank send no messages");
    assume(x, sc_sprintf(a, "data of emulated ranks: %s", e->peer_data));
    if (x->recorded.dir && r->config.delay != SC_EMU_DELAY_CHUNK &&
        r->config.delay != SC_EMU_DELAY_FLOW)
        assume(x, sc_sprintf(a,
                             "system-simulate.json simulates the links of the "
                             "machine; its times of operations are not those "
                             "of the delay model %s",
                             e->delay_model));
    for (uint32_t i = 0; e->what_if && e->what_if[i]; i++)
        assume(x, sc_sprintf(a, "what if: %s", e->what_if[i]));
}

/* The libraries that the ranks called, or else those that were waiting for
 * calls. */
static const char *library(const result *x)
{
    static const char *const names[] = {[SC_EMU_API_NCCL] = "NCCL",
                                        [SC_EMU_API_GLOO] = "Gloo",
                                        [SC_EMU_API_MPI] = "MPI",
                                        [SC_EMU_API_OPENMPI] = "MPI (Open MPI)",
                                        [SC_EMU_API_MPICH] = "MPI (MPICH)"};
    const emulate_run *r = x->r;
    const char *out = "";
    uint32_t apis = called(x);
    bool none = !apis;
    for (uint32_t i = 0; none && i < SC_COUNT(preloaded); i++)
        if (r->program.libs & 1u << i) apis |= 1u << preloaded[i];
    for (size_t i = 0; out && i < SC_COUNT(names); i++)
        if (names[i] && apis & 1u << i)
            out = sc_sprintf(r->c->arena, "%s%s%s", out, *out ? ", " : "",
                             names[i]);
    return out;
}

/* Why the run is no emulation: no rank has called an interposed library, so
 * each was a world of its own. NULL: one has, or the program failed. */
static const char *nothing(const result *x)
{
    const emulate_run *r = x->r;
    for (uint32_t i = 0; i < r->n; i++)
        if (x->real[i].run || x->real[i].status != 0) return NULL;
    if (r->config.world == 1 || r->end != EMULATE_ITSELF) return NULL;
    return sc_sprintf(r->c->arena,
                      "%s called no function of the interposed libraries (%s), "
                      "so nothing of the %u ranks was emulated; the program "
                      "has to load one of them dynamically",
                      r->program.name, x->s.library, r->config.world);
}

/* The rank whose end is that of the run: the first one that failed by
 * itself. */
static uint32_t command(const result *x)
{
    const emulate_run *r = x->r;
    if (r->end == EMULATE_RANK) return r->failed;
    for (uint32_t i = 0; i < r->n; i++)
        if (x->real[i].status != 0) return i;
    return 0;
}

static sc_status fill(result *x)
{
    emulate_run *r = x->r;
    cli *c = r->c;
    sc_report_emulation *s = &x->s;
    *s = (sc_report_emulation){.config = &r->config,
                               .machine = r->e->cluster,
                               .library = library(x),
                               .n = r->n,
                               .rank = x->real,
                               .command = command(x),
                               .failure = cli_emulate_failure(r, x->real),
                               .wall_s = r->wall_s,
                               .sum = &x->sum,
                               .seed = (uint64_t)c->seed,
                               .assumptions = x->assumption,
                               .warnings = x->warning,
                               .input = x->input};
    if (!s->library) return sc_error_nomem(c->err);
    if (!s->failure) s->failure = nothing(x);
    SC_TRY(sc_report_emulation_sum(s, c->arena, &x->sum, c->err));
    warnings(x);
    assumptions(x);
    SC_TRY(
        cli_add_input(c, "--cluster", r->e->cluster, x->input, &s->n_inputs));
    SC_TRY(cli_add_input(c, "--delay-model", r->config.delay_file, x->input,
                         &s->n_inputs));
    return cli_add_input(c, "--config", c->config, x->input, &s->n_inputs);
}

/* ---- printing ------------------------------------------------------------ */

static void config_json(const emulate_run *r, sc_json *j)
{
    static const char *const but[] = {"plan", "record", "keep", NULL};
    sc_text unused;
    sc_text_init(&unused);
    sc_json_key(j, "config");
    sc_json_begin(j, '{');
    cli_config_json(&r->set[0], NULL, j);
    cli_config_json(&r->set[1], but, j);
    cli_dump_common(r->c, &unused, j);
    sc_json_end(j, '}');
    sc_text_free(&unused);
}

static sc_status print_json(const result *x)
{
    sc_json j;
    sc_json_init(&j, true);
    sc_json_begin(&j, '{');
    sc_json_put_string(&j, "schema", "stepcast.emulate/1");
    config_json(x->r, &j);
    sc_report_emulation_json(&x->s, &j);
    if (x->recorded.dir) cli_chakra_json(&x->recorded, x->r->c->arena, &j);
    sc_json_end(&j, '}');
    sc_status s = cli_emit_json(x->r->c, &j);
    sc_json_free(&j);
    return s;
}

static void simulate_text(const cli_emitted *e, const char *system,
                          sc_text *out)
{
    sc_text_add(out,
                "stepcast simulate --workload %s/%s --system %s/%s "
                "--network %s/network.yml",
                e->dir, e->name, e->dir, system, e->dir);
    if (e->groups)
        sc_text_add(out, " --comm-groups %s/%s.json", e->dir, e->name);
}

/* The recorded times of a real straggler are long already. */
static void recorded_text(const result *x, sc_text *out)
{
    const cli_emitted *e = &x->recorded;
    const sc_emu_config *c = &x->r->config;
    if (!e->dir) return;
    cli_chakra_text(e, out);
    sc_text_add(out, "  replay         ");
    simulate_text(e, "system.json", out);
    sc_text_add(out, "\n  simulate       ");
    simulate_text(e, "system-simulate.json", out);
    sc_text_add(out, " %s", cli_simulate_shared_links);
    for (uint32_t i = 0; i < c->n_whatif; i++)
        if (c->whatif[i].what == SC_EMU_STRAGGLER &&
            !sc_emu_is_real(c, c->whatif[i].rank))
            sc_text_add(out, " --straggler %u:%g", c->whatif[i].rank,
                        c->whatif[i].value);
    sc_text_add(out, "\n");
}

/* CMD uses stdout, so the page goes to stderr or to the file of -o. */
static sc_status print_text(const result *x)
{
    cli *c = x->r->c;
    sc_text t;
    cli_text_init(c, true, &t);
    sc_report_emulation_text(&x->s, &t);
    recorded_text(x, &t);
    sc_status s = t.failed ? sc_error_nomem(c->err) : SC_OK;
    if (s == SC_OK && c->output)
        s = cli_emit_text(c, &t);
    else if (s == SC_OK)
        cli_note(c, "\n%s", t.buf);
    sc_text_free(&t);
    return s;
}

static void say_error(const char *text)
{
    fprintf(stderr, "stepcast emulate: error: %s\n", text);
}

sc_status cli_emulate_result(emulate_run *r)
{
    result x = {.r = r};
    sc_status s = read_ranks(&x);
    if (!x.real) return sc_error_nomem(r->c->err);
    if (s == SC_OK && r->o->record)
        s = keep_going(r, cli_emulate_record(r, x.real, &x.recorded));
    SC_TRY(fill(&x));
    if (x.s.failure) say_error(x.s.failure);
    sc_status printed = r->c->json ? print_json(&x) : print_text(&x);
    if (printed != SC_OK && r->c->output)
        keep_going(r, printed); /* on stderr: stdout is the program's */
    SC_TRY(printed);
    if (r->end == EMULATE_SIGNAL) return SC_EINTR;
    return x.s.failure ? SC_NO : s;
}
