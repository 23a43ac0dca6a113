/* SPDX-License-Identifier: Apache-2.0 */
/* emulate.c - `stepcast emulate`: runs a live program as a few ranks of a
 * world. */
#include "cli/emulate.h"

#include "cli/predict.h"

#include <string.h>
#include <sys/wait.h>

static const char *const start_names[] = {"auto", "once", "per-rank", NULL};

#define OFF(f) offsetof(emulate_opts, f)
const sc_key cli_emulate_keys[] = {
    {.name = "plan",
     .group = "the answer",
     .type = SC_T_BOOL,
     .offset = OFF(plan),
     .def = "false",
     .flag = "--plan",
     .help = "print the smallest set of ranks that has every role of a model "
             "(options of predict) or of the traces of --peers"},
    {.name = "record",
     .group = "the answer",
     .type = SC_T_STRING,
     .offset = OFF(record),
     .flag = "--record",
     .meta = "DIR",
     .help = "write the run as Chakra traces, with the system and network "
             "files for `stepcast simulate`"},
    {.name = "timeout",
     .group = "the processes",
     .type = SC_T_QUANTITY,
     .unit = SC_U_TIME,
     .offset = OFF(timeout),
     .min = 1e-3,
     .max = 31536000,
     .flag = "--timeout",
     .meta = "TIME",
     .help = "end a program that takes longer"},
    {.name = "grace",
     .group = "the processes",
     .type = SC_T_QUANTITY,
     .unit = SC_U_TIME,
     .offset = OFF(grace),
     .def = "5s",
     .max = 31536000,
     .flag = "--grace",
     .meta = "TIME",
     .help =
         "time between asking a program to end and killing it, and between the "
         "failure of one rank and the end of the others"},
    {.name = "store-port",
     .group = "the processes",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     .offset = OFF(store_port),
     .min = 1,
     .max = 65535,
     .flag = "--store-port",
     .meta = "PORT",
     .help =
         "port of the rendezvous, if the program sets it itself [a free port]"},
    {.name = "start",
     .group = "the processes",
     .type = SC_T_ENUM,
     .offset = OFF(start),
     .def = "auto",
     .names = start_names,
     .flag = "--start",
     .help = "per-rank: start CMD for every real rank; once: CMD starts all "
             "real ranks by itself; auto: once for mpirun, mpiexec, torchrun "
             "and srun"},
    {.name = "local-rank",
     .group = "the world",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     .offset = OFF(local_rank),
     .max = 65535,
     .flag = "--local-rank",
     .meta = "N",
     .help =
         "LOCAL_RANK of the first real rank, which chooses its device on this "
         "machine; the other real ranks follow [its place on its node]"},
    {.name = "keep",
     .group = "the answer",
     .type = SC_T_BOOL,
     .offset = OFF(keep),
     .def = "false",
     .flag = "--keep",
     .help = "keep the run's folder with the logs"},
    {0},
};

/* ---- command line -------------------------------------------------------- */

static int find_dashes(int argc, char *const *argv)
{
    int i = 0;
    while (i < argc && strcmp(argv[i], "--") != 0) i++;
    return i;
}

static bool typed(const char *word, int argc, char *const *argv)
{
    for (int i = 0; i < argc; i++)
        if (argv[i] == word) return true;
    return false;
}

/* CMD follows --, or is in --config's file. */
static sc_status command_words(cli *c, int argc, char *const *argv,
                               sc_words *words)
{
    int dashes = find_dashes(argc, argv);
    if (words->n && typed(words->w[0], dashes, argv))
        return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_none(),
                        "write the program and its arguments after --",
                        "unexpected word \"%.60s\"", words->w[0]);
    if (dashes == argc) return SC_OK;
    words->n = (uint32_t)(argc - dashes - 1);
    words->w = SC_NEW_N(c->arena, const char *, (size_t)words->n + 1);
    if (!words->w) return sc_error_nomem(c->err);
    for (uint32_t i = 0; i < words->n; i++)
        words->w[i] = argv[dashes + 1 + (int)i];
    return SC_OK;
}

/* Strings that exec() takes, as main() has them. */
static char **vector(cli *c, const sc_words *words)
{
    char **v = SC_NEW_N(c->arena, char *, (size_t)words->n + 1);
    for (uint32_t i = 0; v && i < words->n; i++) {
        v[i] = sc_strdup(c->arena, words->w[i]);
        if (!v[i]) return NULL;
    }
    return v;
}

/* ---- a run --------------------------------------------------------------- */

/* What can't be where the program starts its ranks by itself. */
static sc_status check_once(const emulate_run *r)
{
    cli *c = r->c;
    if (r->o->local_given)
        return sc_error(c->err, SC_EINPUT, SC_C_CONFLICT,
                        sc_pos_file("--local-rank"),
                        "leave the option out, or add --start per-rank",
                        "the program starts its ranks by itself, and gives "
                        "them their devices");
    if (r->config.scouts && r->config.n_real < r->config.world)
        return sc_error(c->err, SC_EINPUT, SC_C_CONFLICT,
                        sc_pos_option(c->arena, "--peers", r->e->peers),
                        "write the program that it starts, or record traces "
                        "with --ranks all --record",
                        "%s starts its ranks by itself, and a scout is alone",
                        r->program.name);
    return SC_OK;
}

static sc_status ranks(emulate_run *r)
{
    r->n = r->config.n_real;
    r->rank = SC_NEW_N(r->c->arena, emulate_rank, r->n);
    if (!r->rank) return sc_error_nomem(r->c->err);
    for (uint32_t i = 0; i < r->n; i++) r->rank[i].rank = r->config.real[i];
    r->once = r->o->start == EMULATE_START_ONCE ||
              (r->o->start == EMULATE_START_AUTO && r->program.launcher);
    r->n_processes = r->once ? 1 : r->n;
    return r->once ? check_once(r) : SC_OK;
}

sc_status cli_emulate_live(emulate_run *r)
{
    SC_TRY(cli_emulate_folder(r));
    SC_TRY(cli_emulate_guard(r));
    SC_TRY(cli_emulate_world(r));
    SC_TRY(cli_emulate_store(r));
    return cli_emulate_watch(r);
}

static sc_status go(emulate_run *r, char *const *argv)
{
    SC_TRY(sc_emu_resolve(r->e, r->c->arena, &r->config, r->c->err));
    SC_TRY(cli_emulate_program(r->c, &r->config, argv, &r->program));
    SC_TRY(ranks(r));
    SC_TRY(cli_emulate_lib_dir(r->c, &r->program));
    SC_TRY(cli_emulate_outputs_check(r));
    sc_status s = cli_emulate_signals(r);
    if (s == SC_OK) s = cli_emulate_scouts(r);
    if (s == SC_OK && r->end == EMULATE_ITSELF) s = cli_emulate_live(r);
    cli_emulate_store_stop(r);
    cli_emulate_world_stop(r);
    if (s == SC_OK) s = cli_emulate_result(r);
    if (r->o->keep && r->folder)
        cli_note(r->c, "note: the run's folder is %s\n", r->folder);
    else
        cli_emulate_folder_remove(r);
    cli_emulate_guard_stop(r);
    cli_emulate_signals_back(r);
    return s;
}

static sc_status emulate(cli *c, emulate_run *r, const sc_words *words)
{
    if (words->n == 0)
        return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(),
                        "for example stepcast emulate --cluster dgx-h100:2 "
                        "--world-size 16 -- python3 train.py",
                        "emulate needs a program after --");
    char **argv = vector(c, words);
    if (!argv) return sc_error_nomem(c->err);
    sc_text_init(&r->warnings);
    sc_status s = go(r, argv);
    sc_text_free(&r->warnings);
    return s;
}

/* ---- allowed options ----------------------------------------------------- */

enum { EMU, OWN, JOB, PREDICT, N_SETS };

/* --plan accepts the model's options, and only those of the world that it
 * needs. */
static sc_status check_plan(cli *c, const sc_opt_set sets[N_SETS],
                            const sc_words *words)
{
    static const char *const emu[] = {"cluster", "world-size", "peers",
                                      "profile", NULL};
    static const char *const own[] = {"plan", NULL};
    static const char *const job[] = {"from", "megatron", NULL};
    static const char hint[] = "--plan starts no program";
    sc_status s[] = {cli_check_used(c, &sets[EMU], emu, hint),
                     cli_check_used(c, &sets[OWN], own, hint),
                     cli_check_used(c, &sets[PREDICT], job,
                                    "it belongs to `stepcast predict`")};
    for (size_t i = 0; i < SC_COUNT(s); i++) SC_TRY(s[i]);
    if (words->n == 0) return SC_OK;
    return sc_error(c->err, SC_EUSAGE, SC_C_CONFLICT, sc_pos_file("--plan"),
                    "leave out the words after --", "%s", hint);
}

static sc_status check_run(cli *c, const sc_opt_set sets[N_SETS])
{
    static const char *const none[] = {NULL};
    static const char hint[] =
        "it describes a model, and only --plan reads one";
    sc_status s[] = {cli_check_used(c, &sets[JOB], none, hint),
                     cli_check_used(c, &sets[PREDICT], none, hint)};
    for (size_t i = 0; i < SC_COUNT(s); i++) SC_TRY(s[i]);
    return SC_OK;
}

/* --cluster applies to both the world and the model. */
static void share_cluster(const sc_emu_options *e, sc_job *job,
                          sc_opt_set sets[N_SETS])
{
    job->cluster = e->cluster;
    if (e->cluster) sc_given_set(&sets[JOB].given, sc_job_keys, "cluster");
}

static sc_status plan(cli *c, emulate_plan *x, sc_opt_set sets[N_SETS],
                      const sc_words *words)
{
    SC_TRY(check_plan(c, sets, words));
    share_cluster(x->emu, x->job, sets);
    x->predict->profile = x->emu->profile;
    return cli_emulate_plan(c, x);
}

sc_status cli_emulate(cli *c, int argc, char *const *argv)
{
    sc_emu_options e = {0};
    emulate_opts o = {0};
    predict_opts po = {0};
    sc_job job;
    sc_words words = {0};
    sc_job_init(&job);
    sc_opt_set sets[N_SETS] = {[EMU] = {sc_emu_keys, &e, {{0}}},
                               [OWN] = {cli_emulate_keys, &o, {{0}}},
                               [JOB] = {sc_job_keys, &job, {{0}}},
                               [PREDICT] = {cli_predict_keys, &po, {{0}}}};
    emulate_run r = {.c = c, .o = &o, .e = &e, .set = sets, .guard = -1};
    emulate_plan x = {&e, &job, &sets[JOB], &po};
    SC_TRY(sc_schema_defaults(sc_emu_keys, &e, c->arena, c->err));
    SC_TRY(sc_schema_defaults(cli_emulate_keys, &o, c->arena, c->err));
    SC_TRY(cli_parse(c, find_dashes(argc, argv), argv, sets, N_SETS, &words));
    SC_TRY(command_words(c, argc, argv, &words));
    o.local_given =
        sc_given_has(&sets[OWN].given, cli_emulate_keys, "local-rank");
    c->words = words;
    e.seed = c->seed;
    if (c->dump_config) return cli_dump(c, sets, N_SETS);
    if (o.plan) return plan(c, &x, sets, &words);
    SC_TRY(check_run(c, sets));
    return emulate(c, &r, &words);
}
