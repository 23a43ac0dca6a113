/* SPDX-License-Identifier: Apache-2.0 */
/* finish.c - computes fields that follow from several values: dp and the
 * batch. */
#include "import/sink.h"
#include "plan/plan_strategy.h"

sc_status import_no_parallelism(import_sink *s, const char *program)
{
    static const char *const axis[] = {"tp", "pp", "cp"};
    for (size_t i = 0; i < SC_COUNT(axis); i++) {
        const char *text = sc_sprintf(s->a, "default of %s", program);
        if (!text) return sc_error_nomem(s->err);
        SC_TRY(import_put(s, axis[i], 1, NULL, text));
    }
    return SC_OK;
}

/* The product of tp, pp and cp, at most 2^31 - 1; 0: one of them is not known. */
static int64_t inner(const sc_job *j)
{
    double all = (double)j->tp * (double)j->pp * (double)j->cp;
    return all < 0x1p31 ? (int64_t)all : 0x7fffffff;
}

sc_status import_processes(import_sink *s)
{
    int64_t world = s->out->world, part = inner(s->job);
    if (import_has(s, "dp") || world <= 0 || part <= 0) return SC_OK;
    if (world % part == 0) {
        int64_t dp = world / part;
        const char *text = sc_sprintf(s->a, "%s: %lld processes / (tp pp cp)",
                                      s->out->starter, (long long)world);
        return text ? import_put(s, "dp", (double)dp, NULL, text)
                    : sc_error_nomem(s->err);
    }
    if (s->few) return SC_OK;
    s->few = true;
    return import_warn(s, sc_pos_none(),
                       "%lld processes are fewer than tp %lld x pp %lld x cp "
                       "%lld; dp follows from the cluster",
                       (long long)world, (long long)s->job->tp,
                       (long long)s->job->pp, (long long)s->job->cp);
}

/* If global batch, micro-batch and accumulation are all given, only one dp is
 * possible, and with it one number of processes. */
static sc_status from_batch(import_sink *s)
{
    sc_job *j = s->job;
    int64_t round = j->mbs * s->accumulation, part = inner(j);
    if (j->gbs == 0 || round == 0 || j->gbs % round != 0) return SC_OK;
    int64_t dp = j->gbs / round;
    if (!import_has(s, "dp"))
        SC_TRY(import_put(s, "dp", (double)dp, NULL,
                          "global batch / (micro-batch x accumulation)"));
    if (s->out->world == 0 && part > 0 && part < (1 << 20) && j->dp < (1 << 20))
        s->out->world = j->dp * part;
    return SC_OK;
}

static void check_batch(import_sink *s)
{
    const sc_job *j = s->job;
    const import_value *v = &s->accumulation_v;
    if (!v->given || !j->gbs || !j->mbs || !j->dp || !s->accumulation) return;
    if (j->dp < (1 << 24) && j->mbs < (1 << 20) &&
        j->gbs == j->mbs * s->accumulation * j->dp)
        return;
    import_error(s, SC_C_CONFLICT, v->at,
                 "global batch = micro-batch x accumulation x dp",
                 "global batch %lld is not micro-batch %lld x %s %lld x dp "
                 "%lld",
                 (long long)j->gbs, (long long)j->mbs, v->name,
                 (long long)s->accumulation, (long long)j->dp);
}

static sc_status batch(import_sink *s)
{
    sc_job *j = s->job;
    int64_t rank = s->rank_batch;
    if (rank == 0 && j->mbs < (1 << 24)) rank = j->mbs * s->accumulation;
    if (!import_has(s, "global-batch") && rank > 0) {
        if (j->dp == 0)
            return import_warn(s, sc_pos_none(),
                               "the number of processes is not known: give "
                               "--cluster or --global-batch");
        if (j->dp > (1LL << 40) / rank) return SC_OK;
        return import_put(s, "global-batch", (double)(rank * j->dp), NULL,
                          "samples of a rank x dp");
    }
    int64_t parts = s->accumulation * j->dp;
    if (import_has(s, "micro-batch") || parts <= 0 || j->gbs <= 0 ||
        j->gbs % parts != 0)
        return SC_OK;
    int64_t mbs = j->gbs / parts;
    return import_put(s, "micro-batch", (double)mbs, NULL,
                      "global batch / (accumulation x dp)");
}

sc_status import_weights_away(import_sink *s, int to, const import_value *v)
{
    s->away = *v;
    SC_TRY(import_put(s, "offload-weights", 1, v, NULL));
    if (to == SC_OFFLOAD_CPU) return SC_OK; /* the default */
    return import_put(s, "offload-to", to, v, NULL);
}

/* With ZeRO-3 each pass copies a rank's own part of the weights and gathers the
 * rest, as --offload-weights does.  Programs copy other data without it. */
static sc_status weights_away(import_sink *s)
{
    const import_value *v = &s->away;
    const sc_job *j = s->job;
    if (!v->given) return SC_OK;
    if (!import_has(s, "zero") && !j->fsdp)
        return import_put(s, "zero", 3, NULL, "weights outside of devices");
    if (!j->fsdp && j->zero != 3)
        import_error(s, SC_C_UNSUPPORTED, v->at,
                     "ZeRO-3, or FSDP with full or hybrid sharding",
                     "%s %.60s is read only with sharded weights, not with "
                     "ZeRO stage %lld",
                     v->name, v->text, (long long)j->zero);
    return SC_OK;
}

sc_status import_finish(import_sink *s)
{
    sc_job *j = s->job;
    SC_TRY(import_processes(s));
    SC_TRY(weights_away(s));
    SC_TRY(from_batch(s));
    SC_TRY(batch(s));
    check_batch(s);
    if (s->copies > 1 && j->dp > 0 && !import_has(s, "hsdp")) {
        int64_t shards = j->dp / s->copies;
        if (j->dp % s->copies == 0)
            return import_put(s, "hsdp", (double)shards, NULL,
                              "dp / replicas of the sharded model");
        import_error(s, SC_C_DIVIDE, sc_pos_file(s->file), NULL,
                     "%lld replicas do not divide dp %lld",
                     (long long)s->copies, (long long)j->dp);
    }
    return SC_OK;
}
