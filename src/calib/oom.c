/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oom.c - reads the configurations of Hugging Face's Ultra-Scale Playbook that
 * ran out of memory, as rows of a table of runs.
 *
 * The table has only what differs between them. The rest is that of the sweep
 * (huggingface/nanotron, scripts/scaling_benchmarks.py): Llama models named by
 * billions of parameters, sequences of 4096 tokens, a vocabulary of 131072,
 * nodes of eight H100.
 */
#include "calib/runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Columns that a table of runs has too. */
static const calib_column needed[] = {C_MODEL, C_NODES, C_MBS,
                                      C_DP,    C_PP,    C_TP};

static int column(const sc_csv *t, calib_column c)
{
    return sc_csv_col(t, calib_column_name(c));
}

bool calib_oom_table(const sc_csv *t)
{
    for (size_t i = 0; i < SC_COUNT(needed); i++)
        if (column(t, needed[i]) < 0) return false;
    return sc_csv_col(t, "ga") >= 0 && sc_csv_col(t, "zero") >= 0 &&
           column(t, C_LAYERS) < 0 && column(t, C_CLASS) < 0;
}

/* The models of the sweep: parameters in billions, and sizes. */
static const struct size {
    double billions;
    const char *params, *layers, *hidden, *heads, *ffn;
} sizes[] = {{1.34, "1.34", "16", "2048", "32", "8192"},
             {3.57, "3.57", "28", "3072", "32", "8192"},
             {8.86, "8.86", "32", "4096", "32", "14336"},
             {80, "80", "80", "8192", "64", "28672"}};

static const struct size *find_size(const char *model)
{
    double billions = strtod(model, NULL);
    for (size_t i = 0; i < SC_COUNT(sizes); i++)
        if (fabs(billions / sizes[i].billions - 1) < 0.03) return &sizes[i];
    return NULL;
}

/* A product of two cells and a factor as text; "" if a cell is no whole
 * number. */
static const char *product(const char *x, const char *y, double by, sc_arena *a)
{
    const char *const cell[] = {x, y};
    double v = by;
    for (size_t i = 0; i < SC_COUNT(cell); i++) {
        char *end;
        double n = strtod(cell[i], &end);
        if (end == cell[i] || *end || !(n >= 1 && n <= 1e9) || n != floor(n))
            return "";
        v *= n;
    }
    return v <= 1e9 ? sc_sprintf(a, "%.0f", v) : "";
}

/* Cells that all rows of the sweep share. */
static void set_sweep(const char *text[CALIB_N_COLUMNS])
{
    text[C_FAMILY] = "nanotron-ultrascale";
    text[C_CLASS] = "dense-mha-swiglu";
    text[C_VOCAB] = "131072";
    text[C_SEQ] = "4096";
    text[C_GPU] = "H100-SXM-80GB";
    text[C_PER_NODE] = "8";
    text[C_INTRA] = "450";
    text[C_INTER] = "50";
    text[C_SOFTWARE] = "nanotron";
    text[C_DATE] = "2025-02";
    text[C_PRECISION] = "BF16";
    text[C_VPP] = text[C_CP] = "1";
    text[C_RECOMPUTE] = "none";
    text[C_QUALITY] = "B";
    text[C_OUTCOME] = "oom";
}

sc_status calib_oom_cells(const sc_csv *t, uint32_t row, sc_arena *a,
                          const char *text[CALIB_N_COLUMNS], sc_err *err)
{
    for (int c = 0; c < (int)CALIB_N_COLUMNS; c++) text[c] = "";
    set_sweep(text);
    for (size_t i = 0; i < SC_COUNT(needed); i++)
        text[needed[i]] = sc_csv_get(t, row, column(t, needed[i]));
    const char *ga = sc_csv_get(t, row, sc_csv_col(t, "ga"));
    const char *zero = sc_csv_get(t, row, sc_csv_col(t, "zero"));
    const struct size *s = find_size(text[C_MODEL]);
    if (s) {
        text[C_PARAMS] = s->params;
        text[C_LAYERS] = s->layers;
        text[C_HIDDEN] = s->hidden;
        text[C_HEADS] = text[C_KV_HEADS] = s->heads;
        text[C_FFN] = s->ffn;
    }
    text[C_ID] = sc_sprintf(a, "oom_%04u", row + 1);
    text[C_MODEL] = sc_sprintf(a, "Llama-%.20sB", text[C_MODEL]);
    text[C_SP] = strcmp(text[C_TP], "1") == 0 ? "no" : "yes";
    text[C_SHARD] = strcmp(zero, "0") == 0 ? "DDP" : "ZeRO-1";
    text[C_GPUS] = product(text[C_NODES], "1", 8, a);
    const char *samples = product(text[C_MBS], text[C_DP], 1, a);
    if (!text[C_ID] || !text[C_MODEL] || !text[C_GPUS] || !samples)
        return sc_error_nomem(err);
    text[C_GBS] = product(samples, ga, 1, a);
    return text[C_GBS] ? SC_OK : sc_error_nomem(err);
}
