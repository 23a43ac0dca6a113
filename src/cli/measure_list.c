/* SPDX-License-Identifier: Apache-2.0 */
/* measure_list.c - `stepcast calibrate --measure-list PROGRAM.py TRACE...`. */
#include "cli/calibrate.h"
#include "cli/replay.h"
#include "cost/cost_alone.h"
#include "replay/replay_measure.h"

#define SHOWN 10

/* Each trace is a job of its own, with the execution traces behind it. */
static sc_status traces(cli *c, const sc_words *words, sc_text *notes,
                        const sc_replay_model **m, uint32_t *n,
                        const sc_device **device)
{
    const sc_replay_steps all = {0, UINT32_MAX};
    const char *why = NULL;
    *n = 0;
    for (uint32_t i = 0, files; i < words->n; i += files) {
        replay_set set;
        files = cli_replay_job(&words->w[i]);
        SC_TRY(cli_replay_load(c, NULL, &all, &words->w[i], files, notes, notes,
                               &set));
        m[(*n)++] = set.model;
        if (*device) continue;
        if (!set.m[0]->device)
            return sc_error(c->err, SC_EINPUT, SC_C_MISSING,
                            sc_pos_file(words->w[i]),
                            "a trace needs deviceProperties, a report "
                            "TARGET_INFO_GPU",
                            "the trace does not state its device");
        SC_TRY(sc_device_nearest(set.m[0]->device, c->arena, device, &why,
                                 c->err));
        if (why) sc_text_add(notes, "%s\n", why);
    }
    return SC_OK;
}

static double ms(sc_time t)
{
    return sc_time_to_s(t) * 1e3;
}

static void summary(const sc_replay_operators *o, const sc_device *d,
                    const char *program, sc_text *out)
{
    uint32_t n = 0, shown = 0;
    sc_time open = o->shapeless, all = o->shapeless;
    for (uint32_t i = 0; i < o->n; i++) {
        all += o->of[i].total;
        if (!o->of[i].why) continue;
        n++;
        open += o->of[i].total;
    }
    sc_text_add(out,
                "%u of %u operators have kernels that no model covers on %s: "
                "%.3g of %.3g ms\n",
                n, o->n, d->name, ms(open - o->shapeless), ms(all));
    for (uint32_t i = 0; i < o->n && shown < SHOWN; i++) {
        const sc_replay_operator *x = &o->of[i];
        if (!x->why) continue;
        sc_text_add(out, "  %8.3g ms  %-40.40s %s\n", ms(x->total), x->name,
                    x->why);
        shown++;
    }
    if (o->n_shapeless)
        sc_text_add(out,
                    "%u kernels of %.3g ms have no shapes (record with "
                    "record_shapes=True): they can't be measured\n",
                    o->n_shapeless, ms(o->shapeless));
    sc_text_add(out, "python3 %s > kernels.csv measures them\n", program);
}

static sc_status write(cli *c, const char *program,
                       const sc_replay_operators *o, const sc_device *d)
{
    sc_text script, text;
    sc_text_init(&script);
    sc_replay_measure_script(o, &script);
    sc_status s = script.failed
                      ? sc_error_nomem(c->err)
                      : sc_file_write(program, script.buf, script.len, c->err);
    sc_text_free(&script);
    SC_TRY(s);
    cli_text_init(c, false, &text);
    summary(o, d, program, &text);
    s = cli_emit_text(c, &text);
    sc_text_free(&text);
    return s;
}

sc_status cli_measure_list(cli *c, const char *program, const sc_words *words)
{
    sc_replay_operators o;
    const sc_device *d = NULL;
    sc_text notes;
    sc_cost cost;
    uint32_t n;
    if (words->n == 0)
        return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(),
                        "stepcast calibrate --measure-list measure.py "
                        "trace.json",
                        "no trace is given");
    const sc_replay_model **m =
        SC_NEW_N(c->arena, const sc_replay_model *, words->n);
    if (!m) return sc_error_nomem(c->err);
    SC_TRY(sc_cost_builtin(c->arena, &cost, c->err));
    SC_TRY(sc_cost_alone(c->arena, &cost, c->err));
    sc_text_init(&notes);
    sc_status s = traces(c, words, &notes, m, &n, &d);
    if (s == SC_OK && notes.len) cli_note(c, "%s", notes.buf);
    sc_text_free(&notes);
    SC_TRY(s);
    SC_TRY(sc_replay_operators_of(m, n, &cost, d, c->arena, &o, c->err));
    return write(c, program, &o, d);
}
