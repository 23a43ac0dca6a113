/* SPDX-License-Identifier: Apache-2.0 */
/* Random jobs as files of training programs: what is written, read by the
 * command that the writer names, is the same step to the last bit. */
#include "import/import.h"
#include "import/import_emit.h"
#include "property.h"
#include "world.h"

#include <string.h>

#define PICK(p, list) ((list)[prop_below((p), SC_COUNT(list))])

static const char *const programs[] = {"megatron-core", "torchtitan-2025",
                                       "nemo-2024", "default", NULL};

/* What was written at least once, by format. */
typedef struct seen {
    uint32_t all, models, cp, ep, virtual_stages, hsdp, kept, capacity, moved;
    uint32_t weights, drives;
    uint32_t zero[4], recompute[4], schedule[SC_N_SCHEDULES];
    uint32_t precision[SC_N_RECIPES], method[2];
} seen;

typedef struct emit_world {
    world w;
    sc_arena a; /* of one job */
    seen seen[SC_N_EMITS];
} emit_world;

static void draw_away(prop *p, sc_job *j)
{
    static const double parts[] = {0, 0.5, 1, 1};
    static const int to[] = {SC_INFER, SC_OFFLOAD_CPU, SC_OFFLOAD_NVME};
    j->offload_weights = PICK(p, parts);
    j->offload = prop_below(p, 2) ? PICK(p, parts) : SC_INFER;
    j->offload_to = PICK(p, to);
}

static void draw_more(prop *p, sc_job *j)
{
    static const double factors[] = {0, 0, 1, 1.25};
    static const int tiers[] = {SC_INFER, SC_INFER, SC_TIER_CPU, SC_TIER_NVME};
    static const char *const kept[] = {NULL, NULL, "layers.0-1,layers.30-31",
                                       "layers.0"};
    static const double bytes[] = {0, 0, 2, 4};
    j->capacity = PICK(p, factors);
    j->optimizer_tier = PICK(p, tiers);
    j->keep_bf16 = PICK(p, kept);
    j->grad_bytes = PICK(p, bytes);
    j->prefetch = prop_below(p, 4) ? SC_INFER : (int64_t)prop_below(p, 3);
    j->tp_overlap = (int)prop_below(p, 3) - 1;
    j->grad_overlap = (int)prop_below(p, 3) - 1;
    j->cp_comm = prop_below(p, 2) ? SC_INFER : (int)prop_below(p, 3);
    if (prop_below(p, 3) == 0) draw_away(p, j);
    j->etp = prop_below(p, 2) ? SC_INFER : (int64_t)prop_below(p, 2);
}

/* What few of such jobs have by chance: all that DeepSpeed, or torchtitan,
 * requires. */
static void of_deepspeed(prop *p, sc_job *j)
{
    static const int recipes[] = {SC_RECIPE_BF16, SC_RECIPE_FP16,
                                  SC_RECIPE_FP32};
    j->schedule = SC_SCH_1F1B;
    j->vpp = 1;
    j->sp = 0;
    j->ep = j->ep ? 1 : 0;
    j->recompute = prop_below(p, 2) ? SC_RC_FULL : SC_RC_NONE;
    if (j->rc_method == SC_RCM_BLOCK || j->pp == 1 || !j->recompute) {
        j->rc_method = SC_INFER;
        j->rc_blocks = 0;
    }
    j->precision = PICK(p, recipes);
    j->keep_bf16 = NULL;
    j->capacity = 0;
    if (j->offload_weights > 0) {
        j->offload_weights = 1;
        j->offload = j->offload_to == SC_OFFLOAD_NVME ? 0 : SC_INFER;
        j->zero = 3;
    }
    j->hsdp = j->zero == 3 ? j->hsdp : 0;
    j->cp_comm = SC_CP_ULYSSES;
    j->tp_overlap = SC_INFER;
    j->etp = SC_INFER;
}

static void of_torchtitan(prop *p, sc_job *j)
{
    static const int recipes[] = {SC_RECIPE_BF16, SC_RECIPE_FP8,
                                  SC_RECIPE_FP8_ROW, SC_RECIPE_MXFP8};
    static const int schedules[] = {SC_SCH_1F1B, SC_SCH_GPIPE,
                                    SC_SCH_INTERLEAVED, SC_SCH_ZB_V};
    static const int repeated[] = {SC_RC_NONE, SC_RC_FULL, SC_RC_OPS};
    j->schedule = j->pp > 1 ? PICK(p, schedules) : SC_SCH_1F1B;
    j->vpp = j->schedule >= SC_SCH_INTERLEAVED ? 2 : 1;
    j->sp = j->tp > 1;
    j->zero = prop_below(p, 4) ? 3 : 0;
    j->hsdp = j->zero ? j->hsdp : 0;
    j->recompute = PICK(p, repeated);
    j->rc_method = SC_INFER;
    j->rc_blocks = 0;
    j->precision = PICK(p, recipes);
    j->keep_bf16 = NULL;
    j->capacity = 0;
    if (j->offload_weights < 1 || j->pp > 1) {
        j->optimizer_tier = SC_INFER;
        j->offload_weights = 0;
    } else {
        j->optimizer_tier = SC_TIER_CPU;
        j->offload_to = SC_INFER;
    }
    j->cp_comm = (int)prop_below(p, 2);
    j->tp_overlap = j->grad_overlap = SC_INFER;
    j->etp = SC_INFER;
    j->prefetch = SC_INFER;
}

static void draw(prop *p, const sc_hw *hw, const sc_model *m, sc_job *j)
{
    static const int64_t few[] = {1, 1, 2, 4};
    static const int64_t groups[] = {0, 0, 2, 4};
    static const int recipes[] = {SC_RECIPE_BF16,      SC_RECIPE_BF16,
                                  SC_RECIPE_FP16,      SC_RECIPE_FP32,
                                  SC_RECIPE_FP8,       SC_RECIPE_MXFP8,
                                  SC_RECIPE_FP8_BLOCK, SC_RECIPE_FP8_ROW,
                                  SC_RECIPE_NVFP4,     SC_RECIPE_TF32};
    sc_job_init(j);
    j->tp = PICK(p, few);
    j->pp = PICK(p, few);
    j->cp = PICK(p, few);
    int64_t rest = hw->n_devices / (j->tp * j->pp * j->cp);
    j->dp = rest ? rest : 1;
    if (m->t.experts > 0) j->ep = PICK(p, few);
    j->gbs = 64;
    j->mbs = 1 + (int64_t)prop_below(p, 2);
    j->zero = (int64_t)prop_below(p, 4);
    j->hsdp = j->zero ? PICK(p, groups) : 0;
    j->recompute = (int)prop_below(p, 4);
    if (j->recompute == SC_RC_FULL && prop_below(p, 2)) {
        j->rc_method = (int)prop_below(p, 2);
        j->rc_blocks = 1 + (int64_t)prop_below(p, 2);
    }
    j->schedule = prop_below(p, 2) ? (int)prop_below(p, SC_SCH_FILE) : 0;
    j->vpp = j->schedule == SC_SCH_INTERLEAVED ? 2 + (int64_t)prop_below(p, 2)
             : j->schedule == SC_SCH_ZB_V      ? 2
                                               : 1;
    j->precision = PICK(p, recipes);
    j->sp = (int)prop_below(p, 3) - 1;
    if (prop_below(p, 2)) draw_more(p, j);
    uint64_t style = prop_below(p, 4);
    if (style == 1) of_deepspeed(p, j);
    if (style == 2) of_torchtitan(p, j);
}

static void count(seen *s, const sc_run *r, const sc_job *j, bool model)
{
    s->all++;
    s->models += model;
    s->cp += r->size[SC_AX_CP] > 1;
    s->ep += sc_run_ep(r) > 1;
    s->virtual_stages += r->vpp > 1;
    s->hsdp += r->size[SC_AX_REP] > 1;
    s->kept += j->keep_bf16 != NULL;
    s->capacity += r->capacity > 0;
    s->moved += r->optim_tier > 0;
    s->weights += r->offload_weights > 0;
    s->drives += r->offload_weights > 0 && r->offload_to == SC_OFFLOAD_NVME;
    s->zero[r->zero]++;
    s->recompute[r->recompute]++;
    if (r->size[SC_AX_PP] > 1) s->schedule[r->schedule]++;
    s->precision[r->recipe]++;
    s->method[0] += r->rc_group > 1;
    s->method[1] += r->rc_first > 0;
}

/* The options of a command after the files that it names. */
static bool options_of(const char *command, sc_job *job, sc_arena *a)
{
    char *words[200], *text = sc_strdup(a, command), *end = NULL;
    int n = 0;
    sc_opt_set set = {sc_job_keys, job, {{0}}};
    sc_words rest;
    for (char *w = strtok_r(text, " ", &end); w && n < 199;
         w = strtok_r(NULL, " ", &end)) {
        bool file = strcmp(w, "--from") == 0 || strcmp(w, "--strategy") == 0 ||
                    strcmp(w, "--config") == 0;
        if (file)
            (void)strtok_r(NULL, " ", &end);
        else if (strcmp(w, "stepcast") != 0 && strcmp(w, "predict") != 0)
            words[n++] = w;
    }
    return sc_opt_parse(n, words, &set, 1, &rest, a, NULL) == SC_OK &&
           rest.n == 0;
}

static sc_status read_files(sc_emit_format f, const sc_emitted *e, sc_job *job,
                            const sc_model **model, sc_arena *a, sc_err *err)
{
    sc_import_file files[2];
    sc_import m = {0};
    size_t len = strlen(e->file[0].text);
    if (f == SC_EMIT_JOB) {
        sc_node *root;
        SC_TRY(sc_doc_parse(e->file[0].text, len, SC_FMT_YAML, "j", a, &root,
                            err));
        return sc_schema_read(sc_job_keys, root, job, NULL, a, err);
    }
    if (f == SC_EMIT_STRATEGY) {
        sc_strategy *s = SC_NEW(a, sc_strategy);
        SC_TRY(sc_strategy_read(e->file[0].text, len, "s", a, s, err));
        SC_TRY(sc_strategy_to_job(s, NULL, job, a, err));
        job->tree = s;
        return SC_OK;
    }
    for (uint32_t i = 0; i < e->n_files; i++) {
        const char *text = e->file[i].text;
        files[i] = (sc_import_file){e->file[i].name, text, strlen(text),
                                    sc_import_recognise(text, strlen(text))};
    }
    SC_TRY(sc_import_read(files, e->n_files, NULL, a, job, &m, err));
    if (job->model || !m.has_model) return SC_OK;
    return sc_model_from_transformer(&m.model, sc_pos_none(), a, model, err);
}

static bool same_step(const sc_prediction *x, const sc_prediction *y)
{
    bool ok = x->step_time_s == y->step_time_s && x->n_stages == y->n_stages &&
              x->run.gbs == y->run.gbs && x->run.zero == y->run.zero;
    for (uint32_t i = 0; ok && i < x->n_stages; i++)
        ok = x->memory[i].peak == y->memory[i].peak &&
             x->memory[i].weights == y->memory[i].weights;
    return ok;
}

static void explain(const sc_emitted *e, const sc_err *err,
                    const sc_prediction *x, const sc_prediction *y)
{
    for (uint32_t i = 0; i < e->n_files; i++)
        print_message("%s", e->file[i].text);
    print_message("%s\n%s\n%.17g s instead of %.17g s\n", e->command,
                  err->n ? err->d[0].msg : "", y->step_time_s, x->step_time_s);
}

static bool round_trip(prop *p, sc_emit_format f, const sc_job *job,
                       const sc_prediction *one, emit_world *x,
                       const sc_model *model, sc_arena *a)
{
    sc_emitted e;
    sc_err err;
    sc_job again;
    sc_prediction two = {0};
    const sc_software *sw;
    sc_err_init(&err);
    sc_status s = sc_emit(f, "d", job, one, a, &e, &err);
    if (s != SC_OK) { /* refused, by the name of an option */
        bool named = s == SC_EINPUT && err.n > 0;
        for (uint32_t i = 0; i < err.n; i++)
            named = named && err.d[i].code == SC_C_UNSUPPORTED;
        if (!named && prop_reporting(p))
            print_message("%s: %d %s: %s\n", sc_emit_names[f], (int)s,
                          err.d[0].file, err.d[0].msg);
        return named;
    }
    sc_job_init(&again);
    bool ok = options_of(e.command, &again, a);
    s = read_files(f, &e, &again, &model, a, &err);
    again.brief = true;
    again.engine = SC_ENGINE_FAST;
    if (s == SC_OK) s = sc_job_software(&again, one->run.hw, a, &sw, &err);
    if (s == SC_OK)
        s = sc_predict(&again, one->run.hw, model, sw, &x->w.cost, a, &two,
                       &err);
    ok = ok && s == SC_OK && same_step(one, &two);
    if (!ok && prop_reporting(p)) explain(&e, &err, one, &two);
    count(&x->seen[f], &one->run, job, strstr(e.command, "--model") == NULL);
    return ok;
}

static bool random_job(prop *p, void *ctx)
{
    emit_world *x = ctx;
    sc_arena *a = &x->a;
    sc_job job;
    sc_prediction one;
    bool ok = true;
    const sc_model *model = x->w.model[prop_below(p, x->w.n_models)];
    const sc_hw *hw = x->w.hw[prop_below(p, x->w.n_hw)];
    uint64_t program = prop_below(p, x->w.n_sw);
    sc_err err;
    sc_err_init(&err);
    sc_arena_reset(a);
    draw(p, hw, model, &job);
    bool usual = job.schedule == SC_SCH_1F1B ||
                 job.schedule == SC_SCH_INTERLEAVED ||
                 strstr(programs[program], "torchtitan");
    if (!usual) program = x->w.n_sw - 1; /* most programs lack them */
    const sc_software *sw = x->w.sw[program];
    job.model = model->name;
    job.cluster = hw->name;
    job.software = programs[program];
    job.brief = true;
    job.engine = SC_ENGINE_FAST;
    sc_status s = sc_predict(&job, hw, model, sw, &x->w.cost, a, &one, &err);
    /* those behind are of the machine alone */
    for (int f = 0; f < (int)SC_EMIT_CLUSTER && ok && s == SC_OK; f++)
        ok = round_trip(p, (sc_emit_format)f, &job, &one, x, model, a);
    return ok;
}

/* The test is worth something only if much was written. */
static void check_seen(const emit_world *x)
{
    const seen *m = &x->seen[SC_EMIT_MEGATRON], *n = &x->seen[SC_EMIT_NEMO];
    const seen *t = &x->seen[SC_EMIT_TORCHTITAN];
    const seen *d = &x->seen[SC_EMIT_DEEPSPEED];
    const seen *s = &x->seen[SC_EMIT_STRATEGY], *j = &x->seen[SC_EMIT_JOB];
    for (int f = 0; f < (int)SC_N_EMITS; f++)
        print_message("%s: %u files, %u with models, cp %u ep %u vp %u hsdp "
                      "%u kept %u capacity %u moved %u weights %u drives %u\n",
                      sc_emit_names[f], x->seen[f].all, x->seen[f].models,
                      x->seen[f].cp, x->seen[f].ep, x->seen[f].virtual_stages,
                      x->seen[f].hsdp, x->seen[f].kept, x->seen[f].capacity,
                      x->seen[f].moved, x->seen[f].weights, x->seen[f].drives);
    assert_true(m->cp && m->ep && m->virtual_stages && m->hsdp && m->kept &&
                m->capacity && m->moved && m->models);
    assert_true(n->cp && n->ep && n->virtual_stages && n->kept && n->models);
    assert_true(t->cp && t->hsdp && t->models);
    assert_true(d->hsdp && d->moved && d->cp && d->weights && d->drives);
    assert_true(t->weights && s->weights && s->drives);
    assert_true(m->zero[0] && m->zero[1] && m->zero[2] && m->zero[3]);
    assert_true(d->zero[0] && d->zero[1] && d->zero[2] && d->zero[3]);
    assert_true(m->recompute[0] && m->recompute[1] && m->recompute[2]);
    assert_true(m->method[0] && m->method[1]);
    assert_true(t->recompute[SC_RC_OPS] && t->recompute[SC_RC_FULL]);
    assert_true(t->schedule[SC_SCH_GPIPE] && t->schedule[SC_SCH_ZB_V] &&
                t->schedule[SC_SCH_INTERLEAVED]);
    assert_true(m->precision[SC_RECIPE_FP8] && m->precision[SC_RECIPE_MXFP8] &&
                m->precision[SC_RECIPE_FP16] && m->precision[SC_RECIPE_FP32]);
    for (int i = 0; i < (int)SC_SCH_FILE; i++)
        assert_true(s->schedule[i] && j->schedule[i]);
    assert_true(j->all >= s->all && s->all >= m->all);
}

static void test_random(void **state)
{
    static const char *const model[] = {"llama3-8b",    "gpt3-6.7b",
                                        "mixtral-8x7b", "deepseek-v2-lite",
                                        "gpt-oss-20b",  NULL};
    static const char *const hw[] = {"dgx-h100:4", "dgx-b200:2", NULL};
    emit_world x = {0};
    (void)state;
    sc_arena_init(&x.a, 0);
    assert_true(world_load(&x.w, model, hw, programs));
    bool ok = prop_check("emitted jobs", 1500, random_job, &x);
    sc_arena_free(&x.a);
    sc_arena_free(&x.w.load);
    assert_true(ok);
    check_seen(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
