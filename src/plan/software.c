/* SPDX-License-Identifier: Apache-2.0 */
/* software.c - profiles of training programs (data/software/profiles.yml). */
#include "plan/internal.h"
#include "plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const split_names[] = {"balanced", "ceil", "cost", NULL};
static const char *const report_names[] = {"device", "allocator", "allocated",
                                           "first", NULL};

static const char *const stage_names[] = {"0", "1", "2", "3", NULL};

const char *const sc_capture_names[] = {"none", "layers", "step", NULL};
static const char *const scaling_names[] = {"delayed", "current", NULL};

/* "device", then sc_recipe_names. */
static const char *const recipe_names[] = {
    "device", "fp32", "tf32",  "fp16",      "bf16",    "fp8",
    "nvfp4",  "int8", "mxfp8", "fp8-block", "fp8-row", NULL};

const char *const sc_cp_comm_names[] = {"ring", "all-gather", "ulysses", NULL};

#define OFF(f) offsetof(sc_software, f)
#define BYTES(key, field, text)                                          \
    {                                                                    \
        .name = key, .type = SC_T_QUANTITY, .unit = SC_U_BYTES,          \
        .offset = OFF(field), .def = "0B", .max = 1e15, .meta = "BYTES", \
        .help = text                                                     \
    }
#define SECONDS(key, field, text)                                       \
    {                                                                   \
        .name = key, .type = SC_T_QUANTITY, .unit = SC_U_TIME,          \
        .offset = OFF(field), .def = "0s", .max = 1000, .meta = "TIME", \
        .help = text                                                    \
    }
#define FLAG(key, field, text)                                                \
    {                                                                         \
        .name = key, .type = SC_T_BOOL, .offset = OFF(field), .def = "false", \
        .help = text                                                          \
    }

/* A flag that an option of a job may replace. */
#define CHOICE(key, field, text)                                  \
    {                                                             \
        .name = key, .type = SC_T_TRISTATE, .offset = OFF(field), \
        .def = "false", .help = text                              \
    }

#define WORDS(key, field, text)                                                \
    {                                                                          \
        .name = key, .type = SC_T_LIST, .offset = OFF(field), .meta = "NAMES", \
        .help = text                                                           \
    }

const sc_key sc_software_keys[] = {
    {.name = "title",
     .type = SC_T_STRING,
     .offset = OFF(title),
     .meta = "TEXT",
     .help = "description of the profile"},
    {.name = "source",
     .type = SC_T_STRING,
     .offset = OFF(source),
     .meta = "TEXT",
     .help = "source of its values"},
    {.name = "date",
     .type = SC_T_STRING,
     .offset = OFF(date),
     .meta = "YYYY-MM",
     .help = "month of the release"},
    WORDS("measured_on", vendor, "vendors of the devices of measured rows"),
    WORDS("read_off", read_off,
          "keys whose numbers were read off measured rows"),
    WORDS("axes", axis, "parallel axes besides dp"),
    WORDS("schedules", schedule, "pipeline schedules"),
    WORDS("zero_stages", zero_stage, "ZeRO stages"),
    WORDS("recomputes", recompute, "what the backward pass can recompute"),
    WORDS("cp_kinds", cp_kind, "kinds of context parallelism"),
    FLAG("sp", sequence_parallel,
         "tensors that TP replicates are split by tokens"),
    {.name = "precision",
     .type = SC_T_ENUM,
     .offset = OFF(recipe),
     .def = "device",
     .names = recipe_names,
     .meta = "NAME",
     .help = "precision of matrix products"},
    {.name = "attention",
     .type = SC_T_ENUM,
     .offset = OFF(attention),
     .def = "cudnn",
     .names = sc_attention_names,
     .meta = "KERNEL",
     .help = "attention kernel"},
    FLAG("fused_softmax", fused_softmax, "fused scale-mask-softmax kernel"),
    CHOICE("low_attention", low_attention, "attention in FP8 beside products"),
    CHOICE("low_params", low_params,
           "weights are kept and gathered in low precision"),
    FLAG("pad_head_dim", pad_head_dim, "head dims 65..127 padded to 128"),
    CHOICE("grad_overlap", grad_overlap,
           "gradients are reduced during the backward pass"),
    FLAG("param_overlap", param_overlap,
         "weights are gathered during the forward pass"),
    FLAG("p2p_overlap", p2p_overlap,
         "stage transfers overlap computation in interleaved schedules"),
    FLAG("p2p_scatter", p2p_scatter, "stage transfers are split over TP ranks"),
    FLAG("step_ahead", step_ahead,
         "the host issues the next step without waiting for this one"),
    FLAG("early_stop", early_stop,
         "recomputation stops once all needed tensors exist"),
    {.name = "capture",
     .type = SC_T_ENUM,
     .offset = OFF(capture),
     .def = "none",
     .names = sc_capture_names,
     .meta = "WHAT",
     .help = "kernels are issued at once, as a CUDA graph"},
    FLAG("grouped_loop", grouped_loop, "products of experts run one by one"),
    CHOICE("fused_experts", fused_experts,
           "grouped products of experts include biases and activations"),
    CHOICE("fused_accumulate", fused_accumulate,
           "products of weight gradients accumulate into the gradient"),
    {.name = "fp8_scaling",
     .type = SC_T_ENUM,
     .offset = OFF(fp8_scaling),
     .def = "delayed",
     .names = scaling_names,
     .meta = "WHEN",
     .help = "which tensors' maxima set the scales"},
    {.name = "mxfp8",
     .type = SC_T_STRING,
     .offset = OFF(mxfp8),
     .meta = "NAME",
     .help = "profile that replaces this one for MXFP8 products"},
    {.name = "nvfp4",
     .type = SC_T_STRING,
     .offset = OFF(nvfp4),
     .meta = "NAME",
     .help = "profile that replaces this one for NVFP4 products"},
    {.name = "zero1",
     .type = SC_T_STRING,
     .offset = OFF(zero1),
     .meta = "NAME",
     .help = "profile that replaces this one with ZeRO-1"},
    FLAG("fused_cast", fused_cast, "a compiler fuses low-precision casts"),
    FLAG("low_gather", low_gather,
         "TP gathers operands that are cast to low precision before"),
    CHOICE("tp_overlap", tp_overlap, "TP exchanges overlap products"),
    FLAG("tp_async", tp_async,
         "backward TP exchanges run during the layer's other product"),
    {.name = "tp_pieces",
     .type = SC_T_INT,
     .offset = OFF(tp_pieces),
     .def = "0",
     .max = 64,
     .meta = "N",
     .help = "parts in which tp_overlap scatters a product; 0: one per rank"},
    CHOICE("ep_overlap", ep_overlap, "token dispatch overlaps computation"),
    {.name = "etp",
     .type = SC_T_INT,
     .offset = OFF(etp),
     .def = "0",
     .max = 1 << 20,
     .meta = "N",
     .help = "ranks of tp over which an expert is split; 0: all"},
    {.name = "filled",
     .type = SC_T_QUANTITY,
     .offset = OFF(filled),
     .def = "0",
     .max = 1,
     .meta = "SHARE",
     .help = "mean part of an encoder's samples that is not padding, if only "
             "this is computed; 0: all is"},
    {.name = "tuned_tokens",
     .type = SC_T_INT,
     .offset = OFF(tuned_tokens),
     .def = "0",
     .max = 1 << 30,
     .meta = "N",
     .help = "mean length of documents that are packed into samples for "
             "fine-tuning; 0: one document per sample"},
    FLAG("benchmark", benchmark, "made for one benchmark: never a default"),
    FLAG("unfitted", unfitted, "fits of steps do not use its measured steps"),
    FLAG("dedup_dispatch", dedup_dispatch,
         "a routed token is sent once per rank, not per expert"),
    {.name = "prefetch",
     .type = SC_T_INT,
     .offset = OFF(prefetch),
     .def = "0",
     .max = SC_PREFETCH_MAX,
     .meta = "N",
     .help = "layers whose weights are gathered ahead"},
    {.name = "cp_comm",
     .type = SC_T_ENUM,
     .offset = OFF(cp_comm),
     .def = "ring",
     .names = sc_cp_comm_names,
     .meta = "HOW",
     .help = "how attention gets all keys"},
    FLAG("fused", fused,
         "element-wise operators are fused into the kernels that make their "
         "inputs"),
    FLAG("single_pass", single_pass,
         "element-wise kernels move each operand only once"),
    FLAG("spatial", spatial,
         "can split positions of images over ranks of a node"),
    FLAG("low_activations", low_activations,
         "inputs of activations are kept in low precision"),
    FLAG("offload", offload, "can keep activations in host memory"),
    FLAG("long_rounds", long_rounds,
         "rounds of interleaved schedules may be longer than pp"),
    FLAG("stage_batches", stage_batches,
         "usually as many micro-batches as pipeline stages"),
    FLAG("root_group", root_group,
         "FSDP gathers embedding and head as one, for the whole step"),
    FLAG("stage_gather", stage_gather,
         "stages keep weights gathered and gradients unsharded for a step"),
    FLAG("zero2_weights", zero2_weights,
         "ZeRO-2 keeps weights sharded and gathers them for both passes"),
    FLAG("keep_gathered", keep_gathered,
         "inputs gathered over TP are kept gathered"),
    FLAG("batch_buffers", batch_buffers,
         "every micro-batch has its own stage buffers"),
    FLAG("two_gradients", two_gradients, "16-bit gradients besides fp32 sums"),
    {.name = "stage_split",
     .type = SC_T_ENUM,
     .offset = OFF(stage_split),
     .def = "balanced",
     .names = split_names,
     .meta = "RULE",
     .help = "layers that do not divide by stages"},
    BYTES(
        "bucket", bucket_bytes,
        "size of a gradient bucket; 0: a bucket per layer, or one at the end"),
    {.name = "bucket_params",
     .type = SC_T_INT,
     .offset = OFF(bucket_params),
     .def = "0",
     .max = 1000000000000,
     .meta = "N",
     .help = "parameters in a bucket: for up to 40 replicas, and for each "
             "further 40"},
    BYTES("weights", weight_bytes, "kept per parameter"),
    BYTES("gradients", grad_bytes, "kept per parameter"),
    BYTES("reduce", reduce_bytes, "per gradient element on the wire"),
    BYTES("optimizer", optim_bytes, "states and master weight per parameter"),
    BYTES("update", update_bytes, "moved per parameter by the optimizer"),
    BYTES("accumulate", accum_bytes, "moved per parameter to accumulate"),
    BYTES("loss", loss_bytes, "moved per logit, both passes"),
    {.name = "logits",
     .type = SC_T_QUANTITY,
     .unit = SC_U_BYTES,
     .offset = OFF(logit_bytes),
     .def = "8B",
     .min = 4,
     .max = 64,
     .meta = "BYTES",
     .help = "held per logit where the loss needs most"},
    BYTES("logits_split", split_logit_bytes,
          "the same where the vocabulary is split; 0: the same"),
    BYTES("logits_next", next_logit_bytes,
          "held in addition with several micro-batches"),
    {.name = "memory_report",
     .type = SC_T_ENUM,
     .offset = OFF(memory_report),
     .def = "device",
     .names = report_names,
     .meta = "WHOSE",
     .help = "memory figure that the program prints"},
    {.name = "zero3_rails",
     .type = SC_T_INT,
     .offset = OFF(zero3_rails),
     .def = "0",
     .max = 64,
     .meta = "N",
     .help = "NICs of a node that ZeRO-3 gathers use; 0: all"},
    BYTES("staging", flat_bytes, "buffers of flattened exchanges"),
    BYTES("bucket_copy", copy_bytes,
          "buckets of gradients beside their sums, per parameter, without "
          "ZeRO"),
    {.name = "exchanges_ahead",
     .type = SC_T_INT,
     .offset = OFF(exchanges_ahead),
     .def = "0",
     .max = 1000,
     .meta = "N",
     .help = "most buffers of TP exchanges that the host has issued ahead of "
             "the device"},
    {.name = "ahead_tp",
     .type = SC_T_INT,
     .offset = OFF(ahead_tp),
     .def = "0",
     .max = 1 << 20,
     .meta = "N",
     .help = "largest TP at which the first of several stages has such "
             "buffers"},
    {.name = "stage_reserve",
     .type = SC_T_QUANTITY,
     .offset = OFF(stage_reserve),
     .def = "0",
     .max = 1,
     .meta = "SHARE",
     .help = "activations of stages that are freed late, over all"},
    SECONDS("launch", launch_s,
            "host time of a launch; 0: fitted to the measured rows"),
    SECONDS("step_fixed", step_fixed_s,
            "per step: data, clipping, logging, launch; 0: fitted to the "
            "measured rows"),
    SECONDS(
        "weight_slice", weight_slice_s,
        "host time per weight and replica of the slices that ZeRO-1 gathers "
        "updated weights into"),
    SECONDS("stages_apart", stages_apart_s,
            "more host time of a TP exchange per member of its group, if "
            "stages are on different nodes"),
    SECONDS("transfer_wait", transfer_wait_s,
            "added to a transfer between stages on different nodes"),
    {.name = "transfer_wait_nodes",
     .type = SC_T_INT,
     .offset = OFF(transfer_wait_nodes),
     .def = "0",
     .max = 1 << 20,
     .meta = "N",
     .help = "nodes of a job from which on transfer_wait is added"},
    {.name = "transfer_wait_tp",
     .type = SC_T_INT,
     .offset = OFF(transfer_wait_tp),
     .def = "0",
     .max = 1 << 20,
     .meta = "N",
     .help = "members of a TP group from which on it is added in jobs of any "
             "size; 0: none"},
    {.name = "idle_stages",
     .type = SC_T_QUANTITY,
     .offset = OFF(idle_stages),
     .def = "1",
     .max = 1,
     .meta = "SHARE",
     .help = "runs with stages behind the loss that do not fail"},
    BYTES("memory_overhead", memory_overhead, "context, libraries per device"),
    {.name = "fragmentation",
     .type = SC_T_QUANTITY,
     .offset = OFF(fragmentation),
     .def = "0",
     .max = 1,
     .meta = "SHARE",
     .help = "allocator reserve over allocated"},
    {0},
};

const sc_program_options sc_program_options_none = {.prefetch = -1,
                                                    .cp_comm = -1,
                                                    .grad_overlap = -1,
                                                    .tp_overlap = -1,
                                                    .ep_overlap = -1,
                                                    .capture = -1,
                                                    .fused_accumulate = -1,
                                                    .fused_experts = -1,
                                                    .low_attention = -1,
                                                    .low_params = -1,
                                                    .etp = -1};

/* The row of the next option after `k`; NULL: none. */
static const sc_key *next_option(const sc_key *k)
{
    size_t first = OFF(program), end = first + sizeof(sc_program_options);
    for (k = k ? k + 1 : sc_software_keys; k->name; k++)
        if (k->offset >= first && k->offset < end) return k;
    return NULL;
}

static bool says(const sc_key *k, const sc_program_options *o)
{
    const void *field = (const char *)o + (k->offset - OFF(program));
    return k->type == SC_T_INT ? *(const int64_t *)field >= 0
                               : *(const int *)field >= 0;
}

bool sc_program_options_any(const sc_program_options *said)
{
    for (const sc_key *k = next_option(NULL); k; k = next_option(k))
        if (says(k, said)) return true;
    return false;
}

void sc_program_options_apply(const sc_program_options *said, sc_software *sw)
{
    sc_software wish = {.program = *said};
    for (const sc_key *k = next_option(NULL); k; k = next_option(k))
        if (says(k, said)) sc_schema_copy(k, &wish, sw);
}

/* Keys that are lists, with the name of each bit. */
static const struct {
    size_t words, bits;
    const char *const *names;
} lists[] = {{OFF(axis), OFF(axes), sc_axis_names},
             {OFF(schedule), OFF(schedules), sc_schedule_names},
             {OFF(zero_stage), OFF(zero_stages), stage_names},
             {OFF(recompute), OFF(recomputes), sc_recompute_names},
             {OFF(cp_kind), OFF(cp_kinds), sc_cp_comm_names}};

static const sc_key profile_keys[] = {
    {.name = "base", .type = SC_T_NODE, .help = ""},
    {0},
};

sc_status software_profiles(sc_arena *a, const sc_node **profiles, sc_err *err)
{
    const sc_embedded *e = sc_embedded_find("software/profiles.yml");
    sc_node *root = NULL;
    if (e) SC_TRY(sc_embedded_read(e, a, &root, err));
    const sc_node *map = root ? sc_node_get(root, "profiles") : NULL;
    if (!map)
        return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                        "no 'profiles' in software/profiles.yml");
    *profiles = map;
    return SC_OK;
}

static bool is_alias(const sc_node *profile, const char *name)
{
    const sc_node *list = sc_node_get(profile, "aliases");
    for (const sc_node *n = list ? list->child : NULL; n; n = n->next)
        if (strcmp(n->text, name) == 0) return true;
    return false;
}

static const sc_node *find(const sc_node *profiles, const char *name)
{
    for (const sc_node *n = profiles->child; n; n = n->next)
        if (strcmp(n->key, name) == 0 || is_alias(n, name)) return n;
    return NULL;
}

/* Reads the keys that the struct has; `base` and `aliases` only describe the
 * profile. */
static sc_status read_own(const sc_node *profile, sc_software *out,
                          sc_given *given, sc_arena *a, sc_err *err)
{
    sc_node own = *profile, *head = NULL, **tail = &head;
    own.n = 0;
    for (const sc_node *c = profile->child; c; c = c->next) {
        if (strcmp(c->key, profile_keys[0].name) == 0 ||
            strcmp(c->key, "aliases") == 0 || software_key_fitted(c))
            continue;
        sc_node *copy = SC_NEW(a, sc_node);
        if (!copy) return sc_error_nomem(err);
        *copy = *c;
        copy->next = NULL;
        *tail = copy;
        tail = &copy->next;
        own.n++;
    }
    own.child = head;
    return sc_schema_read(sc_software_keys, &own, out, given, a, err);
}

/* A list in a profile replaces the list of its base. */
static void forget_lists(const sc_node *profile, sc_software *s)
{
    for (const sc_key *k = sc_software_keys; k->name; k++)
        if (k->type == SC_T_LIST && sc_node_get(profile, k->name))
            *(const char ***)((char *)s + k->offset) = NULL;
}

/* Where the profile's list at this offset of the struct has the word. */
static sc_pos place_of(const sc_node *profile, size_t list, const char *word)
{
    const sc_key *k = sc_software_keys;
    while (k->name && k->offset != list) k++;
    const sc_node *n = k->name ? sc_node_get(profile, k->name) : NULL;
    for (const sc_node *c = n ? n->child : NULL; c; c = c->next)
        if (c->text && strcmp(c->text, word) == 0) return c->pos;
    return n ? n->pos : profile->pos;
}

static sc_status read_lists(const sc_node *profile, sc_software *s, sc_err *err)
{
    for (size_t i = 0; i < SC_COUNT(lists); i++) {
        const char **word = *(const char ***)((char *)s + lists[i].words);
        uint32_t *bits = (uint32_t *)(void *)((char *)s + lists[i].bits);
        for (*bits = 0; word && *word; word++) {
            uint32_t at = 0;
            while (lists[i].names[at] && strcmp(lists[i].names[at], *word) != 0)
                at++;
            if (!lists[i].names[at])
                return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_NAME,
                                place_of(profile, lists[i].words, *word), NULL,
                                "unknown word \"%.40s\"", *word);
            *bits |= 1u << at;
        }
    }
    return SC_OK;
}

/* Sets `out` to `under` with the keys of `profile`. */
static sc_status resolve_over(const sc_node *profile, const sc_software *under,
                              sc_software *out, sc_arena *a, sc_err *err)
{
    sc_software own = *under;
    sc_given given = {{0}};
    forget_lists(profile, &own);
    SC_TRY(read_own(profile, &own, &given, a, err));
    SC_TRY(read_lists(profile, &own, err));
    SC_TRY(software_check_read_off(profile, &own, err));
    SC_TRY(software_list_fitted(profile, &own, a, err));
    own.base = under->name ? under : NULL;
    own.name = profile->key;
    *out = own;
    return SC_OK;
}

static sc_status resolve(const sc_node *profiles, const sc_node *profile,
                         uint32_t depth, sc_software *out, sc_arena *a,
                         sc_err *err)
{
    const sc_node *base = sc_node_get(profile, "base");
    if (depth > 8)
        return sc_error(err, SC_EINPUT, SC_C_CYCLE, profile->pos, NULL,
                        "profile '%s' is based on itself", profile->key);
    sc_software *under = SC_NEW(a, sc_software);
    if (!under) return sc_error_nomem(err);
    if (base) {
        const sc_node *b =
            base->kind == SC_N_SCALAR ? find(profiles, base->text) : NULL;
        if (!b)
            return sc_error(err, SC_EINPUT, SC_C_REFERENCE, base->pos,
                            "`stepcast list software` shows all",
                            "there is no profile '%.60s'",
                            base->kind == SC_N_SCALAR ? base->text : "");
        SC_TRY(resolve(profiles, b, depth + 1, under, a, err));
    } else {
        SC_TRY(sc_schema_defaults(sc_software_keys, under, a, err));
    }
    return resolve_over(profile, under, out, a, err);
}

/* Bytes of a bucket.  Megatron-Core's DistributedDataParallel gives it in
 * parameters, max(40000000, 1000000 * dp_size); its FSDP has one per unit. */
double sc_software_bucket(const sc_software *sw, bool units, double replicas,
                          double each)
{
    if (sw->bucket_params <= 0 || sw->bucket_bytes <= 0 || units)
        return sw->bucket_bytes;
    return each * (double)sw->bucket_params * fmax(1, replicas / 40);
}

sc_status sc_software_list(sc_arena *a, const char ***names, uint32_t *n,
                           sc_err *err)
{
    const sc_node *profiles = NULL;
    SC_TRY(software_profiles(a, &profiles, err));
    const char **list = SC_NEW_N(a, const char *, profiles->n + 1);
    if (!list) return sc_error_nomem(err);
    uint32_t k = 0;
    for (const sc_node *p = profiles->child; p; p = p->next) list[k++] = p->key;
    *names = list;
    *n = k;
    return SC_OK;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n > m && strcmp(s + n - m, end) == 0;
}

/* Prefix of the aliases of default profiles. */
static const char unnamed[] = "default";

sc_status sc_software_read(const char *text, size_t len, const char *file,
                           sc_arena *a, const sc_software **out, sc_err *err)
{
    const sc_node *profiles = NULL;
    sc_node *root = NULL;
    SC_TRY(software_profiles(a, &profiles, err));
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, file, a, &root, err));
    if (root->kind != SC_N_MAP)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, root->pos,
                        "write keys of a profile, for example `base: NAME`",
                        "this is not a profile of a program");
    sc_software *s = SC_NEW(a, sc_software), *under = SC_NEW(a, sc_software);
    root->key = sc_strdup(a, file);
    if (!s || !under || !root->key) return sc_error_nomem(err);
    if (sc_node_get(root, "base")) {
        SC_TRY(resolve(profiles, root, 0, s, a, err));
    } else {
        SC_TRY(resolve(profiles, find(profiles, unnamed), 0, under, a, err));
        SC_TRY(resolve_over(root, under, s, a, err));
    }
    *out = s;
    return SC_OK;
}

static sc_status load_own(const char *file, sc_arena *a,
                          const sc_software **out, sc_err *err)
{
    char *text;
    size_t len;
    SC_TRY(sc_file_read(file, (size_t)1 << 20, a, &text, &len, err));
    return sc_software_read(text, len, file, a, out, err);
}

sc_status sc_software_find(const char *name, const char *date, sc_pos pos,
                           sc_arena *a, const sc_software **out, sc_err *err)
{
    const sc_node *profiles = NULL, *hit = NULL;
    SC_TRY(software_profiles(a, &profiles, err));
    if (!name || !name[0]) name = unnamed;
    if (ends_with(name, ".yml") || ends_with(name, ".yaml"))
        return load_own(name, a, out, err);
    bool open = strncmp(name, unnamed, strlen(unnamed)) == 0;
    if (date && date[0]) {
        char *dated = sc_sprintf(a, "%s@%.4s", name, date);
        if (!dated) return sc_error_nomem(err);
        hit = find(profiles, dated);
    }
    if (!hit) hit = find(profiles, name);
    if (!hit) {
        const char **names = NULL;
        uint32_t n = 0;
        SC_TRY(sc_software_list(a, &names, &n, err));
        const char *near = sc_nearest(name, names);
        char hint[160] = "`stepcast list software` shows all";
        if (near) snprintf(hint, sizeof hint, "did you mean \"%s\"?", near);
        return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_NAME, pos, hint,
                        "unknown software \"%.60s\"", name);
    }
    sc_software *s = SC_NEW(a, sc_software);
    if (!s) return sc_error_nomem(err);
    SC_TRY(resolve(profiles, hit, 0, s, a, err));
    s->open = open;
    *out = s;
    return SC_OK;
}
