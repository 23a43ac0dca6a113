/* SPDX-License-Identifier: Apache-2.0 */
/* emulate_record.c - `--record DIR`: writes the run as Chakra traces. */
#include "cli/emulate.h"
#include "cli/predict.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static cli_traces traces(const emulate_run *r)
{
    const sc_device *d = r->config.hw->device;
    bool bf16 = !d || d->peak[SC_BF16] > 0;
    return (cli_traces){.flag = "--record",
                        .dir = r->o->record,
                        .live = true,
                        .name = r->program.name,
                        .hint =
                            "record fewer steps, or fewer ranks and enlarge "
                            "the traces with `stepcast simulate --scale-to`",
                        .hw = sc_emu_network(&r->config, r->c->arena),
                        .precision = bf16 ? SC_BF16 : SC_FP16};
}

/* Checks that the folder (or file) can be written or created. */
static sc_status writable(cli *c, const char *flag, const char *path, bool dir)
{
    struct stat st;
    bool there = stat(path, &st) == 0;
    if (there && S_ISDIR(st.st_mode) == dir && access(path, W_OK) == 0)
        return SC_OK;
    char *parent = sc_strdup(c->arena, path);
    if (!parent) return sc_error_nomem(c->err);
    size_t n = strlen(parent);
    while (n > 1 && parent[n - 1] == '/') parent[--n] = '\0';
    char *slash = strrchr(parent, '/');
    if (slash) slash[slash == parent] = '\0';
    const char *in = slash ? parent : ".";
    if (there && S_ISDIR(st.st_mode) != dir) errno = dir ? ENOTDIR : EISDIR;
    if (!there && access(in, W_OK) == 0) return SC_OK;
    return sc_error(c->err, SC_EIO, SC_C_IO,
                    sc_pos_option(c->arena, flag, path), NULL,
                    "can't write there: %s", sc_errno_text(errno));
}

/* Checks early, so that a long run does not end without a written result. */
sc_status cli_emulate_outputs_check(emulate_run *r)
{
    cli *c = r->c;
    cli_traces t = traces(r);
    if (c->output) SC_TRY(writable(c, "--output", c->output, false));
    if (!r->o->record) return SC_OK;
    SC_TRY(cli_chakra_check(c, &t, r->config.world));
    return writable(c, t.flag, t.dir, true);
}

/* Every rank repeats the nearest real rank before it (a pipeline's stages
 * are consecutive ranks); ranks before the first real one repeat that one. */
static uint32_t *followers(const emulate_run *r)
{
    uint32_t *like = SC_NEW_N(r->c->arena, uint32_t, r->config.world);
    for (uint32_t i = 0, k = 0; like && i < r->config.world; i++) {
        while (k + 1 < r->n && r->rank[k + 1].rank <= i) k++;
        like[i] = k;
    }
    return like;
}

sc_status cli_emulate_record(emulate_run *r, const sc_report_real *real,
                             struct cli_emitted *out)
{
    cli *c = r->c;
    sc_workload w;
    cli_traces t = traces(r);
    sc_emu_trace_opts o = {.steps = true, .period = r->config.step_collectives};
    sc_emu_run *runs = SC_NEW_N(c->arena, sc_emu_run, r->n);
    o.like = followers(r);
    if (!runs || !o.like) return sc_error_nomem(c->err);
    for (uint32_t i = 0; i < r->n; i++) {
        if (!real[i].run || real[i].run->n_records == 0)
            return sc_error(
                c->err, SC_EINPUT, SC_C_MISSING,
                sc_pos_option(c->arena, t.flag, t.dir), NULL,
                "rank %u called no collective, so there is nothing to record",
                real[i].rank);
        runs[i] = *real[i].run;
        o.steps = o.steps && real[i].n_steps > 0;
    }
    SC_TRY(sc_emu_workload(runs, r->n, &o, c->arena, &w, c->err));
    t.workload = &w;
    if (!t.hw) return sc_error_nomem(c->err);
    SC_TRY(cli_chakra_write(c, &t, out));
    if (!o.steps)
        sc_text_add(
            &r->warnings,
            "the traces hold the whole run: no repeated step was found\n");
    return SC_OK;
}
