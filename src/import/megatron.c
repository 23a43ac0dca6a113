/* SPDX-License-Identifier: Apache-2.0 */
/* megatron.c - reads launch scripts and argument lists of Megatron-LM as
 * jobs. */
#include "import/megatron.h"

#include "base/utf8.h"
#include "import/megatron_shell.h"
#include "import/readers.h"
#include "import/trainer.h"

#include <stdio.h>
#include <string.h>

enum { MAX_BYTES = 4 << 20 };

/* ---- what was launched ---------------------------------------------------------- */

/* Options of launchers that determine the number of processes. */
typedef enum launch_part { NODES, PER_NODE, WORLD, OTHER_FILE } launch_part;

static const struct {
    const char *launcher, *option; /* launcher NULL: any */
    launch_part part;
} launch_options[] = {
    {NULL, "--nnodes", NODES},
    {NULL, "--nodes", NODES},
    {NULL, "--num_nodes", NODES},
    {NULL, "--num-nodes", NODES},
    {"srun", "-N", NODES},
    {"accelerate", "--config_file", OTHER_FILE},
    {"accelerate", "--config-file", OTHER_FILE},
    {"accelerate", "--num_machines", NODES},
    {"accelerate", "--num-machines", NODES},
    {"accelerate", "--num_processes", WORLD},
    {"accelerate", "--num-processes", WORLD},
    {NULL, "--nproc_per_node", PER_NODE},
    {NULL, "--nproc-per-node", PER_NODE},
    {NULL, "--num_gpus", PER_NODE},
    {NULL, "--num-gpus", PER_NODE},
    {NULL, "--gpus-per-node", PER_NODE},
    {NULL, "--ntasks-per-node", PER_NODE},
    {NULL, "--ntasks", WORLD},
    {"srun", "-n", WORLD},
    {"mpirun", "-np", WORLD},
    {"mpirun", "-n", WORLD},
    {"mpiexec", "-n", WORLD},
};

static int64_t count(const char *s)
{
    int64_t n = 0;
    if (!*s) return 0;
    for (; *s >= '0' && *s <= '9' && n < (1 << 28); s++)
        n = 10 * n + (*s - '0');
    return *s ? 0 : n;
}

static bool has_word(const char *const *w, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        const char *slash = strrchr(w[i], '/');
        if (strcmp(slash ? slash + 1 : w[i], name) == 0) return true;
    }
    return false;
}

static const char *launch_value(const char *const *w, uint32_t n, uint32_t i,
                                const char *option)
{
    size_t len = strlen(option);
    if (strncmp(w[i], option, len) != 0) return NULL;
    if (w[i][len] == '=') return w[i] + len + 1;
    return w[i][len] == '\0' && i + 1 < n ? w[i + 1] : NULL;
}

/* Records a number of processes that only a run determines. */
static void undetermined(megatron *m, const sh *s, uint32_t i,
                         const char *option, const char *text)
{
    const sh_text *t = &s->launcher.t[i];
    if (m->to->out->unset.text) return;
    if (!sh_has_hole(t) && i + 1 < s->launcher.n) t++;
    if (!sh_has_hole(t)) return;
    m->to->out->unset = (sc_origin){.key = option, .text = text};
    m->to->out->unset.pos = sh_pos(s, t->g[0].at);
}

static sc_status launcher(megatron *m, const sh *s)
{
    uint32_t n = s->launcher.n;
    const char **w = SC_NEW_N(m->to->a, const char *, n);
    int64_t v[3] = {0, 0, 0};
    if (!w) return sc_error_nomem(m->to->err);
    for (uint32_t i = 0; i < n; i++) {
        w[i] = sh_string(s, &s->launcher.t[i]);
        if (!w[i]) return sc_error_nomem(m->to->err);
    }
    bool starts_all = has_word(w, n, "torchrun") ||
                      has_word(w, n, "deepspeed") ||
                      has_word(w, n, "torch.distributed.run") ||
                      has_word(w, n, "torch.distributed.launch");
    for (uint32_t i = 0; i < n; i++)
        for (size_t k = 0; k < SC_COUNT(launch_options); k++) {
            const char *by = launch_options[k].launcher;
            const char *opt = launch_options[k].option;
            if (by && !has_word(w, n, by)) continue;
            /* if each task of srun starts torchrun, tasks are nodes */
            if (starts_all && strstr(opt, "ntasks")) continue;
            const char *text = launch_value(w, n, i, opt);
            if (!text) continue;
            if (launch_options[k].part == OTHER_FILE) {
                if (!m->to->accelerated)
                    SC_TRY(import_warn(
                        m->to,
                        s->launcher.t[i].n ? sh_pos(s, s->launcher.t[i].g[0].at)
                                           : sc_pos_none(),
                        "%.100s is another file: give it with --from as well",
                        text));
            } else if (count(text) > 0)
                v[launch_options[k].part] = count(text);
            else
                undetermined(m, s, i, opt, text);
        }
    if (starts_all) v[WORLD] = 0;
    if (v[WORLD] == 0) v[WORLD] = v[NODES] * v[PER_NODE];
    if (v[NODES] == 0 && v[PER_NODE] > 0) v[NODES] = v[WORLD] / v[PER_NODE];
    if (v[PER_NODE] == 0 && v[NODES] > 0) v[PER_NODE] = v[WORLD] / v[NODES];
    if (v[WORLD] > 0) m->to->out->world = v[WORLD];
    if (v[NODES] > 0) m->to->out->nodes = v[NODES];
    if (v[WORLD] > 0 || (v[NODES] > 0 && m->to->out->world == 0))
        m->to->out->starter = m->to->file;
    if (v[PER_NODE] > 0) m->to->out->per_node = v[PER_NODE];
    return SC_OK;
}

static sc_status environment(megatron *m, const sh *s)
{
    uint32_t n = 0;
    for (const sh_var *v = s->vars; v; v = v->next)
        n += strncmp(v->name, "NCCL_", 5) == 0;
    m->to->out->env = SC_NEW_N(m->to->a, const char *, n);
    if (!m->to->out->env) return sc_error_nomem(m->to->err);
    for (const sh_var *v = s->vars; v; v = v->next) {
        if (v->array || v->v.n != 1) continue;
        const char *text = sh_string(s, &v->v.t[0]);
        if (!text) return sc_error_nomem(m->to->err);
        if (strcmp(v->name, "CUDA_LAUNCH_BLOCKING") == 0 &&
            strcmp(text, "1") == 0) {
            import_value at = {.given = true, .name = v->name, .text = text};
            at.pos = at.at = sh_pos(s, v->v.t[0].g[0].at);
            SC_TRY(import_put(m->to, "launch-blocking", 1, &at, NULL));
        }
        if (strncmp(v->name, "NCCL_", 5) != 0 || sh_has_hole(&v->v.t[0]))
            continue;
        const char *pair = sc_sprintf(m->to->a, "%s=%s", v->name, text);
        if (!pair) return sc_error_nomem(m->to->err);
        m->to->out->env[m->to->out->n_env++] = pair;
    }
    return SC_OK;
}

/* Programs of Megatron-LM that train models other than GPT. */
static void check_program(megatron *m, const sh *s)
{
    static const char *const others[] = {"bert", "_t5", "mamba", "vit",
                                         "_ict", "vlm", "retro", "vision"};
    const char *slash = s->script ? strrchr(s->script, '/') : NULL;
    const char *name = slash ? slash + 1 : s->script;
    for (size_t i = 0; name && i < SC_COUNT(others); i++)
        if (strstr(name, others[i]))
            import_error(m->to, SC_C_UNSUPPORTED, sc_pos_file(m->to->file),
                         "give the model with --model, and --tp, --pp ...",
                         "%.80s does not train a GPT", name);
}

static sc_status words(megatron *m, const sh *s)
{
    megatron_word *w = SC_NEW_N(m->to->a, megatron_word, s->args.n);
    if (!w) return sc_error_nomem(m->to->err);
    for (uint32_t i = 0; i < s->args.n; i++) {
        const sh_text *t = &s->args.t[i];
        w[i] = (megatron_word){sh_string(s, t), t->n ? t->g[0].at : 0,
                               sh_has_hole(t)};
        if (!w[i].text) return sc_error_nomem(m->to->err);
    }
    trainer_word *t = SC_NEW_N(m->to->a, trainer_word, s->args.n);
    if (!t) return sc_error_nomem(m->to->err);
    for (uint32_t i = 0; i < s->args.n; i++)
        t[i] = (trainer_word){w[i].text, sh_pos(s, w[i].at)};
    m->of_trainer = trainer_is(t, s->args.n);
    if (m->of_trainer) return trainer_words(m->to, t, s->args.n);
    check_program(m, s);
    return megatron_options(m, w, s->args.n);
}

/* ---- files -------------------------------------------------------------------------- */

/* Whether the first word that is not in a comment is an option. */
static bool is_list(const char *text)
{
    const char *s = text;
    for (;;) {
        while (*s == ' ' || *s == '\t' || *s == '\r' || *s == '\n' ||
               *s == '\\')
            s++;
        if (*s != '#') break;
        s += strcspn(s, "\n");
    }
    return s[0] == '-' && s[1] == '-';
}

static sc_status define_all(sh *s, const char *const *define)
{
    for (; define && *define; define++) {
        const char *eq = strchr(*define, '=');
        sh_list value = {0};
        sh_text t = {0};
        if (!eq || eq == *define)
            return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX,
                            sc_pos_file(*define), "write NAME=value",
                            "this is not a variable");
        for (const char *c = eq + 1; *c; c++)
            SC_TRY(sh_push(s, &t, (sh_glyph){0, *c, false}));
        SC_TRY(sh_append(s, &value, t));
        const char *name = sc_strndup(s->a, *define, (size_t)(eq - *define));
        if (!name) return sc_error_nomem(s->err);
        SC_TRY(sh_set(s, name, false, false, value));
    }
    return SC_OK;
}

static sc_status script(megatron *m, const char *const *define)
{
    sh s = {.a = m->to->a,
            .err = m->to->err,
            .file = m->to->file,
            .text = m->text,
            .len = m->len,
            .warning = m->to->out->warnings,
            .n_warnings = m->to->out->n_warnings,
            .cap_warnings = m->to->cap_warnings};
    uint32_t before = s.n_warnings;
    SC_TRY(define_all(&s, define));
    bool list = is_list(m->text);
    SC_TRY(sh_read(&s, list));
    m->to->out->warnings = s.warning;
    m->to->out->n_warnings = s.n_warnings;
    m->to->cap_warnings = s.cap_warnings;
    if (!s.found || s.args.n == 0)
        return sc_error(
            m->to->err, SC_EINPUT, SC_C_MISSING, sc_pos_file(m->to->file),
            s.n_warnings > before ? s.warning[before]
                                  : "a command such as torchrun ... "
                                    "pretrain_gpt.py --num-layers 32 ...",
            "this file does not launch Megatron-LM");
    SC_TRY(launcher(m, &s));
    SC_TRY(words(m, &s));
    return environment(m, &s);
}

static sc_status read_all(megatron *m, const char *const *define)
{
    if (m->len > MAX_BYTES)
        return sc_error(m->to->err, SC_EINPUT, SC_C_TOO_BIG,
                        sc_pos_file(m->to->file),
                        "give the script, not its output",
                        "the script is larger than %d MiB", MAX_BYTES >> 20);
    SC_TRY(utf8_check(m->text, m->len, m->to->file, m->to->err));
    if (megatron_is_table(m->text))
        SC_TRY(megatron_table(m));
    else
        SC_TRY(script(m, define));
    if (m->to->out->world == 0 && m->v[M_WORLD].given && !m->v[M_WORLD].bad) {
        m->to->out->world = (int64_t)m->v[M_WORLD].number;
        m->to->out->starter = m->to->file;
    }
    if (m->of_trainer) return SC_OK;
    SC_TRY(megatron_job(m));
    SC_TRY(megatron_model(m));
    if (import_has(m->to, "software")) return SC_OK;
    return import_put_text(m->to, "software", "default", NULL,
                           "Megatron-LM's own script");
}

sc_status megatron_read(import_sink *to, const char *text, size_t len,
                        const char *const *define)
{
    megatron *m = SC_NEW(to->a, megatron);
    if (!m) return sc_error_nomem(to->err);
    *m = (megatron){.to = to, .text = text, .len = len};
    return read_all(m, define);
}
