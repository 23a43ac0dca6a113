/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runcolumns.c - the columns of tables of training runs, as their authors call
 * them, and the words and numbers of their cells.
 */
#include "base/name.h"
#include "base/number.h"
#include "calib/runs.h"

#include <math.h>
#include <string.h>
#include <strings.h>

typedef struct column {
    const char *name;
    double lo, hi;
    calib_role role;
} column;

#define COLUMN(id, name, role, lo, hi) {name, lo, hi, role},
static const column columns[CALIB_N_COLUMNS] = {CALIB_COLUMNS(COLUMN)};

/* Other headers of a column, between blanks; `scale` leads to its unit. */
static const struct {
    calib_column column;
    double scale;
    const char *names;
} others[] = {
    {C_ID, 1, " run_id row_id "},
    {C_MODEL, 1, " model_name "},
    {C_CLASS, 1, " architecture model_type "},
    {C_LAYERS, 1, " num_layers n_layers n_layer num_hidden_layers "},
    {C_HIDDEN, 1, " hidden_size d_model n_embd hidden_dim model_dim "},
    {C_HEADS, 1,
     " num_heads n_heads n_head num_attention_heads attention_heads "},
    {C_KV_HEADS, 1,
     " num_kv_heads n_kv_heads num_key_value_heads num_query_groups "
     "query_groups "},
    {C_FFN, 1,
     " ffn_hidden_size ffn_hidden ffn_size intermediate_size d_ff mlp_dim "},
    {C_VOCAB, 1, " vocab_size vocabulary vocabulary_size padded_vocab_size "},
    {C_SEQ, 1,
     " seqlen seq_length sequence_length sequence max_seq_len "
     "max_seq_length context_length "},
    {C_PARAMS, 1, " params parameters params_billion parameters_b size_b "},
    {C_EXPERTS, 1, " num_experts n_experts num_moe_experts "},
    {C_TOPK, 1,
     " top_k moe_router_topk router_topk experts_per_token "
     "num_experts_per_tok "},
    {C_MOE_FFN, 1, " moe_ffn_hidden_size moe_intermediate_size expert_ffn "},
    {C_GPU, 1,
     " device device_name gpu_type gpu_name gpu_model accelerator "
     "accelerator_name hardware chip chip_type "},
    {C_GPUS, 1,
     " num_gpus n_gpus ngpus gpu_count world_size devices num_devices "
     "n_devices device_count chips num_chips n_chips accelerators "},
    {C_PER_NODE, 1, " devices_per_node num_gpus_per_node chips_per_node "},
    {C_NODES, 1, " num_nodes n_nodes nnodes node_count hosts "},
    {C_INTRA, 1, " intra_gbps intra_gbps_per_gpu "},
    {C_INTER, 1, " inter_gbps inter_gbps_per_gpu "},
    {C_SOFTWARE, 1, " framework program software_stack library "},
    {C_DATE, 1, " date "},
    {C_PRECISION, 1, " dtype data_type compute_dtype prec "},
    {C_GBS, 1,
     " global_batch_size global_bs global_batch_samples train_batch_size "
     "total_batch_size globalbatchsize "},
    {C_MBS, 1,
     " micro_batch_size micro_bs microbatch microbatch_size local_batch_size "
     "local_batch per_device_batch_size per_gpu_batch_size microbatchsize "},
    {C_TP, 1,
     " tensor_parallel tensor_parallel_size tensor_model_parallel_size "
     "tp_size tp_degree "},
    {C_PP, 1,
     " pipeline_parallel pipeline_parallel_size "
     "pipeline_model_parallel_size pp_size pp_degree "},
    {C_VPP, 1,
     " virtual_pipeline virtual_stages virtual_pp vpp_size "
     "virtual_pipeline_size "},
    {C_CP, 1, " context_parallel context_parallel_size cp_size cp_degree "},
    {C_EP, 1,
     " expert_parallel expert_parallel_size expert_model_parallel_size "
     "ep_size ep_degree "},
    {C_DP, 1, " data_parallel data_parallel_size dp_size dp_degree "},
    {C_SP, 1, " sequence_parallel sequence_parallelism "},
    {C_SHARD, 1, " sharding sharding_strategy "},
    {C_RECOMPUTE, 1,
     " recomputation activation_checkpointing activation_recompute remat "
     "gradient_checkpointing "},
    {C_GA, 1,
     " grad_accum gradient_accumulation gradient_accumulation_steps "
     "accumulation_steps num_microbatches n_microbatches micro_batches "},
    {C_ITER, 1,
     " step_time_s step_s step_time iteration_time iteration_time_s "
     "iter_time_s iter_time time_per_step_s seconds_per_step sec_per_step "
     "sec_per_iter elapsed_time_per_iteration_s measured_s "},
    {C_ITER, 1e-3,
     " iter_ms step_ms step_time_ms iter_time_ms iteration_time_ms "
     "elapsed_time_per_iteration_ms time_per_step_ms measured_ms "},
    {C_TOKENS, 1,
     " tokens_per_s_per_gpu tokens_per_sec_per_gpu tokens_gpu_s "
     "tokens_per_second_per_gpu tokens_per_gpu_per_s tokens_sec_gpu "
     "tokens_per_second_per_device tokens_per_sec_per_device tokens_s_device "
     "tokens_s_chip tok_s_gpu tps_per_gpu tgs "},
    {C_SAMPLES, 1,
     " samples_per_s samples_per_sec samples_per_second samples_sec "},
    {C_MEM, 1,
     " memory_gib peak_memory_gib peak_mem_gib max_memory_gib "
     "max_mem_gib "},
    {C_NOTES, 1, " comment comments remarks "},
};

const char *calib_column_name(calib_column c)
{
    return columns[c].name;
}

calib_role calib_column_role(calib_column c)
{
    return columns[c].role;
}

bool calib_column_text(calib_column c)
{
    return columns[c].hi == 0;
}

/* ---- headers --------------------------------------------------------------- */

/* "Tokens/s/GPU" as columns are called: "tokens_s_gpu". */
static void fold(const char *header, char *out, size_t size)
{
    size_t n = 0;
    for (; *header && n + 1 < size; header++) {
        char c = name_lower(*header);
        bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (word)
            out[n++] = c;
        else if (n > 0 && out[n - 1] != '_')
            out[n++] = '_';
    }
    while (n > 0 && out[n - 1] == '_') n--;
    out[n] = '\0';
}

static bool listed(const char *names, const char *folded)
{
    size_t n = strlen(folded);
    for (const char *s = names; n > 0 && (s = strstr(s, folded)); s++)
        if (s > names && s[-1] == ' ' && s[n] == ' ') return true;
    return false;
}

int calib_find_column(const sc_csv *t, calib_column c, double *scale)
{
    char folded[64];
    *scale = 1;
    int exact = sc_csv_col(t, columns[c].name);
    if (exact >= 0) return exact;
    for (uint32_t i = 0; i < t->n_cols; i++) {
        fold(t->header[i], folded, sizeof folded);
        if (strcmp(folded, columns[c].name) == 0) return (int)i;
    }
    for (size_t k = 0; k < SC_COUNT(others); k++) {
        if (others[k].column != c) continue;
        for (uint32_t i = 0; i < t->n_cols; i++) {
            fold(t->header[i], folded, sizeof folded);
            *scale = others[k].scale;
            if (listed(others[k].names, folded)) return (int)i;
        }
    }
    *scale = 1;
    return -1;
}

static bool has(const sc_csv *t, calib_column c)
{
    double scale;
    return calib_find_column(t, c, &scale) >= 0;
}

const char *calib_missing_column(const sc_csv *t)
{
    static const calib_column measured[] = {C_ITER, C_TOKENS, C_SAMPLES, C_MEM,
                                            C_OUTCOME};
    bool any = false;
    if (calib_oom_table(t)) return NULL;
    for (size_t i = 0; i < SC_COUNT(measured); i++)
        any = any || has(t, measured[i]);
    if (!any) return calib_column_name(C_ITER);
    if (!has(t, C_GPU)) return calib_column_name(C_GPU);
    if (!has(t, C_GPUS) && !has(t, C_NODES)) return calib_column_name(C_GPUS);
    bool sizes = has(t, C_LAYERS) && has(t, C_HIDDEN);
    return has(t, C_MODEL) || sizes ? NULL : calib_column_name(C_MODEL);
}

bool calib_runs_table(const sc_csv *t)
{
    return calib_missing_column(t) == NULL;
}

/* ---- cells ------------------------------------------------------------------ */

bool calib_cell_empty(calib_column c, const char *text)
{
    static const char *const open[] = {"",        "see recipe", "-",   "--",
                                       "?",       "n/a",        "tbd", "null",
                                       "unknown", "not stated"};
    if (c == C_ID || c == C_MODEL || c == C_NOTES) return text[0] == '\0';
    for (size_t i = 0; i < SC_COUNT(open); i++)
        if (strcasecmp(text, open[i]) == 0) return true;
    return !calib_column_text(c) && strcasecmp(text, "none") == 0;
}

/* The number without the commas between thousands: "1,024". */
static void join_thousands(const char *text, char *out, size_t size)
{
    size_t n = 0;
    for (const char *s = text; *s && n + 1 < size; s++) {
        bool comma = *s == ',' && s > text && strspn(s + 1, "0123456789") == 3;
        if (comma && (s[4] == '\0' || s[4] == ',' || s[4] == '.')) continue;
        out[n++] = *s;
    }
    out[n] = '\0';
}

/* What a suffix multiplies by; 0: it is none of this column. */
static double suffix(calib_column c, const char *end)
{
    bool one = end[0] != '\0' && end[1] == '\0';
    if (end[0] == '\0') return 1;
    if (one && c == C_SEQ && name_lower(*end) == 'k') return 1024;
    if (one && c == C_PARAMS && name_lower(*end) == 'b') return 1;
    if (one && c == C_PARAMS && name_lower(*end) == 'm') return 1e-3;
    if (one && c == C_PARAMS && name_lower(*end) == 't') return 1e3;
    return 0;
}

sc_status calib_read_number(calib_column c, const char *text, sc_pos pos,
                            double *out, sc_err *err)
{
    const column *col = &columns[c];
    char joined[64];
    join_thousands(text[0] == '~' ? text + 1 : text, joined, sizeof joined);
    size_t len = number_span(joined);
    double times = len > 0 ? suffix(c, joined + len) : 0;
    if (times <= 0)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, pos,
                        "leave a cell empty where the value is not known",
                        "column %s: \"%.40s\" is not a number", col->name,
                        text);
    double v = times * number_scaled(joined, len, 0);
    double lo = col->lo < 0 ? 0 : col->lo;
    bool whole = col->lo >= 0;
    if (!(v >= lo && v <= col->hi))
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                        "column %s: %.40s is outside %g to %g", col->name, text,
                        lo, col->hi);
    if (whole && v != floor(v))
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                        "column %s: %.40s is not a whole number", col->name,
                        text);
    *out = v;
    return SC_OK;
}
