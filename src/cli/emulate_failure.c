/* SPDX-License-Identifier: Apache-2.0 */
/* emulate_failure.c - describes why a run ended as it did. */
#include "cli/emulate.h"

#include <string.h>

/* Formats the end of a rank: "exit code 3", "SIGSEGV". */
static const char *end_of(cli *c, const sc_report_real *k)
{
    if (k->signal) return sc_sprintf(c->arena, "was ended by %s", k->signal);
    return sc_sprintf(c->arena, "ended with exit code %d", k->status);
}

/* The interposer's last message before it ended the process. */
static const char *said(const sc_report_real *k)
{
    static const char mark[] = "error: ";
    const sc_emu_run *run = k->run;
    for (uint32_t i = run ? run->n_texts : 0; i > 0; i--)
        if (strncmp(run->text[i - 1], mark, sizeof mark - 1) == 0)
            return run->text[i - 1] + sizeof mark - 1;
    return NULL;
}

/* Formats the operation in flight, "in all_reduce of 4MB over 8 ranks"; ""
 * if there is none. */
static const char *under_way(cli *c, const sc_report_real *k)
{
    const sc_emu_run *run = k->run;
    char size[32];
    for (uint64_t i = run ? run->n_records : 0; i > 0; i--) {
        const sc_emu_record *x = &run->record[i - 1];
        if (x->end != SC_TIME_MAX || x->flags & SC_EMU_CANCELED) continue;
        uint32_t n = x->group < run->n_groups ? run->group[x->group].n : 0;
        sc_unit_print_short((double)x->bytes, SC_U_BYTES, size, sizeof size);
        return sc_sprintf(c->arena, ", in %s of %s over %u ranks",
                          sc_coll_names[x->coll], size, n);
    }
    return "";
}

/* The program has started the ranks: its end, and what one of them said. */
static const char *of_program(const emulate_run *r, const sc_report_real *real)
{
    const char *end = end_of(r->c, real), *words = NULL;
    for (uint32_t i = 0; i < r->n && !words; i++) words = said(&real[i]);
    if (!end) return NULL;
    return sc_sprintf(r->c->arena, "%s %s%s%s", r->program.name, end,
                      words ? ": " : "", words ? words : "");
}

static const char *of_rank(cli *c, const sc_report_real *k)
{
    const char *end = end_of(c, k), *words = said(k);
    if (!end) return NULL;
    if (words)
        return sc_sprintf(c->arena, "rank %u %s: %s", k->rank, end, words);
    return sc_sprintf(c->arena, "rank %u %s%s", k->rank, end,
                      k->signal ? under_way(c, k) : "");
}

/* Describes the ranks that had not ended at the time limit. */
static const char *timeout(const emulate_run *r, const sc_report_real *real)
{
    cli *c = r->c;
    char limit[32];
    sc_unit_print_short(r->o->timeout, SC_U_TIME, limit, sizeof limit);
    for (uint32_t i = 0; i < r->n; i++) {
        if (!real[i].signal && real[i].status == 0) continue;
        return sc_sprintf(c->arena,
                          "--timeout: rank %u had not ended after %s%s",
                          real[i].rank, limit, under_way(c, &real[i]));
    }
    return sc_sprintf(c->arena, "--timeout: not ended after %s", limit);
}

const char *cli_emulate_failure(const emulate_run *r,
                                const sc_report_real *real)
{
    cli *c = r->c;
    switch (r->end) {
    case EMULATE_TIMEOUT: return timeout(r, real);
    case EMULATE_SIGNAL:
        return sc_sprintf(c->arena, "interrupted by %s",
                          cli_emulate_signal(c, r->signal));
    case EMULATE_RANK:
        return r->once ? of_program(r, real) : of_rank(c, &real[r->failed]);
    case EMULATE_ITSELF:
    case EMULATE_ENOUGH: break;
    }
    return NULL;
}
