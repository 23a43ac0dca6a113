/* SPDX-License-Identifier: Apache-2.0 */
/* megatron_batch.c - reads a launch script's requests to SLURM, lines "#SBATCH
 * ...". */
#include "import/megatron_shell.h"

#include <stdio.h>
#include <string.h>

enum { MAX_COUNT = 1 << 28 };

typedef enum ask_id { NODES, TASKS, PER_NODE, GPUS, GRES, TOTAL } ask_id;

/* Options of sbatch, and the variables in which the job finds their values. */
static const struct {
    const char *option, *brief; /* brief NULL: there is no short form */
    const char *variable[2];
} asks[] = {
    [NODES] = {"--nodes", "-N", {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}},
    [TASKS] = {"--ntasks", "-n", {"SLURM_NTASKS", "SLURM_NPROCS"}},
    [PER_NODE] = {"--ntasks-per-node", NULL, {"SLURM_NTASKS_PER_NODE", NULL}},
    [GPUS] = {"--gpus-per-node",
              NULL,
              {"SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"}},
    [GRES] = {"--gres", NULL, {"SLURM_GPUS_ON_NODE", NULL}},
    [TOTAL] = {"--gpus", "-G", {"SLURM_GPUS", NULL}},
};

/* Reads the words up to the end of the line as options of the launcher. */
static sc_status directive(sh *s, sh_src *c)
{
    for (;;) {
        sh_text word = {0};
        sh_skip_blanks(c);
        while (sh_at(c, 0) && sh_at(c, 0) != '\n' && !sh_blank(sh_at(c, 0)))
            SC_TRY(sh_push(s, &word, c->g[c->i++]));
        if (word.n == 0) return SC_OK;
        SC_TRY(sh_append(s, &s->launcher, word));
    }
}

/* The number in "4", "gpu:8" or "gpu:h100:8"; 0: another form, such as a
 * range. */
static int64_t number(const char *text, bool typed)
{
    const char *colon = strrchr(text, ':');
    int64_t n = 0;
    if (colon && !typed) return 0;
    const char *p = colon ? colon + 1 : text;
    for (; sh_digit(*p) && n < MAX_COUNT; p++) n = 10 * n + (*p - '0');
    return *p ? 0 : n;
}

/* The value that word `i` gives an option, possibly in the next word. */
static const char *value(char *const *w, uint32_t n, uint32_t i, ask_id ask)
{
    const char *option = asks[ask].option, *brief = asks[ask].brief;
    const char *next = i + 1 < n ? w[i + 1] : NULL;
    size_t len = strlen(option);
    if (strncmp(w[i], option, len) == 0) {
        if (w[i][len] == '=') return w[i] + len + 1;
        return w[i][len] == '\0' ? next : NULL;
    }
    if (!brief || strncmp(w[i], brief, 2) != 0) return NULL;
    return w[i][2] ? w[i] + 2 : next;
}

static sc_status text_of(sh *s, const char *chars, uint32_t at, sh_text *out)
{
    for (; *chars; chars++)
        SC_TRY(sh_push(s, out, (sh_glyph){at, *chars, false}));
    return SC_OK;
}

static sc_status set(sh *s, const char *name, int64_t n, uint32_t at)
{
    char buf[24];
    sh_list v = {0};
    sh_text t = {0};
    snprintf(buf, sizeof buf, "%lld", (long long)n);
    SC_TRY(text_of(s, buf, at, &t));
    SC_TRY(sh_append(s, &v, t));
    return sh_set(s, name, false, false, v);
}

/* Adds "--gres=gpu:8" as "--gpus-per-node=8" before the launcher's own options,
 * which are read later and replace it. */
static sc_status option(sh *s, sh_list *front, ask_id ask, int64_t n,
                        uint32_t at)
{
    static const ask_id of[] = {
        [NODES] = NODES, [TASKS] = TASKS, [PER_NODE] = PER_NODE,
        [GPUS] = GPUS,   [GRES] = GPUS,   [TOTAL] = TOTAL};
    char buf[48];
    sh_text t = {0};
    snprintf(buf, sizeof buf, "%s=%lld", asks[of[ask]].option, (long long)n);
    SC_TRY(text_of(s, buf, at, &t));
    return sh_append(s, front, t);
}

static sc_status variables(sh *s, sh_list *front)
{
    uint32_t n = s->launcher.n;
    int64_t v[SC_COUNT(asks)] = {0};
    char **w = SC_NEW_N(s->a, char *, n + 1);
    if (!w) return sc_error_nomem(s->err);
    for (uint32_t i = 0; i < n; i++)
        if (!(w[i] = sh_string(s, &s->launcher.t[i])))
            return sc_error_nomem(s->err);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < SC_COUNT(asks); k++) {
            const char *text = value(w, n, i, (ask_id)k);
            uint32_t at = s->launcher.t[i].g[0].at;
            if (!text || (k == GRES && strncmp(text, "gpu", 3) != 0)) continue;
            if ((v[k] = number(text, k >= GPUS)) == 0) continue;
            SC_TRY(option(s, front, (ask_id)k, v[k], at));
            for (uint32_t j = 0; j < 2 && asks[k].variable[j]; j++)
                SC_TRY(set(s, asks[k].variable[j], v[k], at));
        }
    if (v[TASKS] > 0 || v[NODES] == 0 || v[PER_NODE] == 0) return SC_OK;
    for (uint32_t j = 0; j < 2; j++)
        SC_TRY(set(s, asks[TASKS].variable[j], v[NODES] * v[PER_NODE], 0));
    return SC_OK;
}

sc_status sh_batch(sh *s, const sh_src *all)
{
    static const char mark[] = "#SBATCH";
    sh_src c = *all;
    sh_list front = {0};
    while (c.i < c.n) {
        uint32_t k = 0;
        while (k < sizeof mark - 1 && sh_at(&c, k) == mark[k]) k++;
        if (k == sizeof mark - 1) {
            c.i += k;
            SC_TRY(directive(s, &c));
        }
        sh_skip_line(&c);
        if (c.i < c.n) c.i++;
    }
    if (s->launcher.n == 0) return SC_OK;
    SC_TRY(variables(s, &front));
    for (uint32_t i = 0; i < s->launcher.n; i++)
        SC_TRY(sh_append(s, &front, s->launcher.t[i]));
    s->launcher = front;
    return SC_OK;
}
