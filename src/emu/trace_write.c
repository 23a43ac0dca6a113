/* SPDX-License-Identifier: Apache-2.0 */
/* trace_write.c - writes a recorded workload with the files that run it. */
#include "emu/emu_log.h"
#include "trace/trace.h"
#include "trace/trace_machine.h"

#include <string.h>

#define SLOTS_MAX 1024u

/* The most operations in flight at once: from a node to the first that waits
 * for it. */
static uint32_t at_once(const sc_task_list *l, int32_t *change)
{
    int64_t now = 0, most = 1;
    memset(change, 0, ((size_t)l->n_tasks + 1) * sizeof *change);
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        if (l->kind[i] == SC_TASK_COMP) continue;
        bool waited = l->succ_head[i] < l->succ_head[i + 1];
        change[i]++;
        change[waited ? l->succ[l->succ_head[i]] : l->n_tasks]--;
    }
    for (uint32_t i = 0; i < l->n_tasks; i++)
        if ((now += change[i]) > most) most = now;
    return most < SLOTS_MAX ? (uint32_t)most : SLOTS_MAX;
}

static sc_status slots_of(const sc_workload *w, sc_arena *a, uint32_t *out,
                          sc_err *err)
{
    *out = 1;
    for (uint32_t c = 0; c < w->n_classes; c++) {
        const sc_task_list *l = &w->classes[c];
        sc_arena_mark mark = sc_arena_save(a);
        int32_t *change = SC_NEW_N(a, int32_t, (size_t)l->n_tasks + 1);
        if (!change) return sc_error_nomem(err);
        uint32_t n = at_once(l, change);
        if (n > *out) *out = n;
        sc_arena_restore(a, mark);
    }
    return SC_OK;
}

/* Prefixes the system file with what a recording needs. */
static sc_status with_keys(const char *text, size_t len, bool replay,
                           uint32_t slots, const char *path, sc_err *err)
{
    sc_text t;
    sc_text_init(&t);
    sc_text_add(&t, "{\n");
    if (replay) sc_text_add(&t, "  \"replay-only\": 1,\n");
    sc_text_add(&t, "  \"communication-slots\": %u,", slots);
    sc_text_add(&t, "%.*s", (int)len - 1, text + 1);
    sc_status s = path && !t.failed ? sc_file_write(path, t.buf, t.len, err)
                                    : sc_error_nomem(err);
    sc_text_free(&t);
    return s;
}

sc_status sc_emu_trace_write(const sc_workload *w, const sc_hw *hw,
                             sc_precision precision, const char *dir,
                             const char *name, sc_arena *a, sc_text *notes,
                             sc_err *err)
{
    const char *prefix = sc_sprintf(a, "%s/%s", dir, name);
    const char *replay = sc_sprintf(a, "%s/system.json", dir);
    const char *simulate = sc_sprintf(a, "%s/system-simulate.json", dir);
    char *text;
    size_t len;
    uint32_t slots;
    if (!prefix || !replay || !simulate) return sc_error_nomem(err);
    SC_TRY(slots_of(w, a, &slots, err));
    sc_trace_machine m = {.hw = hw, .precision = precision, .at_once = slots};
    SC_TRY(sc_trace_machine_write(&m, dir, a, notes, err));
    SC_TRY(sc_file_read(replay, (size_t)1 << 20, a, &text, &len, err));
    SC_TRY(with_keys(text, len, false, slots, simulate, err));
    SC_TRY(with_keys(text, len, true, slots, replay, err));
    return sc_trace_write(w, prefix, err);
}
