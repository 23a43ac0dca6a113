/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_params.c - parameter counts of the catalogue and of HuggingFace
 * files equal the published ones. */
#include "base/name.h"
#include "fixture.h"
#include "kinds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct published {
    const char *name;
    double params;
    double rounding; /* 0: exact; else the last digit's unit */
} published;

/* Exact: elements of the released checkpoints.  Rounded: as the papers print
 * them (see `source` of each catalogue file). */
static const published counts[] = {
    /* torchvision's, and for 91 classes its RetinaNet's 34014999; DLRM: 516M in
     * Proteus' table 3; the others by their references' layers */
    {"alexnet", 61100840, 0},
    {"dlrm", 516e6, 1e6},
    {"dlrm-dcnv2", 26151671809, 0},
    {"inception-v3", 27161264, 0},
    {"inception-v3-224", 23834568, 0},
    {"resnet50", 25557032, 0},
    {"retinanet", 37060652, 0},
    {"sd-unet", 865910724, 0},
    {"sd-v2", 865910724 + 340387840, 0},
    {"unet3d", 31190243, 0},
    {"vgg19", 143667240, 0},
    {"gpt2", 124439808, 0},
    {"gpt2-medium", 354823168, 0},
    {"gpt2-large", 774030080, 0},
    {"gpt2-xl", 1557611200, 0},
    {"bloom-560m", 559214592, 0},
    {"bloom-1b1", 1065314304, 0},
    {"bloom-1b7", 1722408960, 0},
    {"bloom-3b", 3002557440, 0},
    {"bloom-7b1", 7069016064, 0},
    {"bloom-176b", 176247271424, 0},
    {"opt-125m", 125239296, 0},
    {"opt-1.3b", 1315758080, 0},
    {"opt-2.7b", 2651596800, 0},
    {"opt-6.7b", 6658473984, 0},
    {"opt-13b", 12853473280, 0},
    {"opt-30b", 29974540288, 0},
    {"opt-66b", 66e9, 1e9},
    {"opt-175b", 175e9, 1e9},
    {"llama-7b", 6738415616, 0},
    {"llama-13b", 13015864320, 0},
    {"llama-33b", 32528943616, 0},
    {"llama-65b", 65285660672, 0},
    {"llama2-7b", 6738415616, 0},
    {"llama2-13b", 13015864320, 0},
    {"llama2-70b", 68976648192, 0},
    {"llama3-8b", 8030261248, 0},
    {"llama3-70b", 70553706496, 0},
    {"llama3.1-8b", 8030261248, 0},
    {"llama3.1-70b", 70553706496, 0},
    {"llama3.1-405b", 405853388800, 0},
    {"mistral-7b", 7241732096, 0},
    {"qwen2.5-7b", 7615616512, 0},
    {"qwen2.5-72b", 72706203648, 0},
    {"gpt-neox-20b", 20554567680, 0},
    /* table D.1, which has a digit more than table 2.1 */
    {"gpt3-small", 125e6, 1e6},
    {"gpt3-medium", 356e6, 1e6},
    {"gpt3-large", 760e6, 1e6},
    {"gpt3-xl", 1320e6, 1e7},
    {"gpt3-2.7b", 2650e6, 1e7},
    {"gpt3-6.7b", 6660e6, 1e7},
    {"gpt3-13b", 12850e6, 1e7},
    {"gpt3-175b", 174.6e9, 1e8},
    {"megatron-1.7b", 1.7e9, 1e8},
    {"megatron-3.6b", 3.6e9, 1e8},
    {"megatron-7.5b", 7.5e9, 1e8},
    {"megatron-18.4b", 18.4e9, 1e8},
    {"megatron-39.1b", 39.1e9, 1e8},
    {"megatron-76.1b", 76.1e9, 1e8},
    {"megatron-145.6b", 145.6e9, 1e8},
    {"megatron-310.1b", 310.1e9, 1e8},
    {"megatron-529.6b", 529.6e9, 1e8},
    {"megatron-1008b", 1008.0e9, 1e8},
    {"megatron-22b", 22e9, 1e9},
    {"megatron-175b", 175e9, 1e9},
    {"megatron-530b", 530e9, 1e9},
    {"megatron-1t", 1.0e12, 1e11},
    {"mpt-125m", 0.125e9, 1e6},
    {"mpt-350m", 0.356e9, 1e6},
    {"mpt-760m", 0.760e9, 1e6},
    {"mpt-1b", 1.316e9, 1e6},
    {"mpt-3b", 2.652e9, 1e6},
    {"mpt-7b", 6.659e9, 1e6},
    {"mpt-13b", 12.854e9, 1e6},
    {"mpt-30b", 29.975e9, 1e6},
    {"mpt-70b", 64.862e9, 1e6},
    {"llama3.2-1b", 1235814400, 0},
    {"llama3.2-3b", 3212749824, 0},
    {"llama3.3-70b", 70553706496, 0},
    /* 80 (16 (8192 + 10240) + 16 (8192 + 8192)) more, and so on */
    {"llama2-70b-lora", 68976648192 + 44564480, 0},
    {"llama2-13b-lora", 13015864320 + 19660800, 0},
    {"llama3-70b-lora", 70553706496 + 44564480, 0},
    {"mixtral-8x7b", 46702792704, 0},
    {"mixtral-8x22b", 140620634112, 0},
    {"qwen3-8b", 8190735360, 0},
    {"qwen3-14b", 14768307200, 0},
    {"qwen3-32b", 32762123264, 0},
    {"qwen3-30b-a3b", 30532122624, 0},
    {"qwen3-235b-a22b", 235093634560, 0},
    {"gpt-oss-20b", 20914757184, 0},
    {"gpt-oss-120b", 116829156672, 0},
    {"deepseek-v2-lite", 15706484224, 0},
    {"deepseek-v2", 235741434880, 0},
    {"deepseek-v3", 671026419200, 0},
    /* the checkpoint, less its copies of embedding and head and less the
     * scales of its FP8 blocks */
    /* and 684489845504 of the checkpoint with copies of table and head */
    {"deepseek-v3-mtp", 671026419200, 0},
    {"kimi-k2", 1026408232448, 0},
    /* named, not counted, by their authors; their FLOP are checked */
    {"nemotron3-8b", 8e9, 2e9},
    {"nemotron3-22b", 22e9, 2e9},
    {"nemotron-4-15b", 12.5e9 + 3.1e9, 1e8},
    {"nemotron-4-340b", 331.6e9 + 9.4e9, 1e8},
    {"nemotron-h-8b", 8.1e9, 1e8},
    {"nemotron-h-47b", 46.8e9, 1e8},
    {"nemotron-h-56b", 56.3e9, 1e8},
    {"nemotron-nano-9b-v2", 8.89e9, 1e7},
    {"nemotron-nano-12b-v2", 12.31e9, 1e7},
    {"nemotron-3-nano", 31577937344, 0},
    /* counted without routers, which have 40 x 512 x 4096 */
    {"nemotron-3-super", 120.6e9 + 83886080, 1e8},
    {"nemotron-3-ultra", 550e9, 2e9},
    {"bert-base", 109514298, 0},
    {"bert-large", 335174458, 0},
    {"t5-small", 60506624, 0},
    {"t5-base", 222903552, 0},
    {"t5-large", 737668096, 0},
    {"t5-3b", 2851598336, 0},
    {"t5-11b", 11307321344, 0},
    {"vit-b-16", 86567656, 0},
    {"vit-l-16", 304326632, 0},
    {"vit-h-14", 632045800, 0},
    {"gpt3-20b", 20e9, 1e9},
    {"gemma-2b", 2506172416, 0},
    {"gemma-7b", 8537680896, 0},
    {"gemma2-2b", 2614341888, 0},
    {"gemma2-9b", 9241705984, 0},
    {"gemma2-27b", 27227128320, 0},
    {"gemma3-1b", 999885952, 0},
    {"gemma3-4b", 3209e6 + 675e6, 1e7},
    {"gemma3-12b", 10759e6 + 1012e6, 2e7},
    {"gemma3-27b", 25600e6 + 1416e6, 2e7},
    {"phi3-mini", 3821079552, 0},
    {"phi3-medium", 13960238080, 0},
    {"phi3.5-moe", 41.9e9, 1e8},
    {"phi4", 14659507200, 0},
    {"phi4-mini", 3836021760, 0},
    {"falcon-7b", 6921720704, 0}, /* its matrices by hand */
    {"falcon-40b", 41303293952, 0},
    {"falcon-180b", 179.5e9, 1e8},
    {"glm4-9b", 9399951360, 0},
    {"glm4.5", 353e9, 1e9}, /* the report's table 1 */
    {"glm4.5-air", 106e9, 2e9},
    {"llama4-scout", 108641793536 - 871932416, 0}, /* less the image's tower */
    {"llama4-maverick", 401583781376 - 871932416, 0},
    {"qwen3-next-80b-a3b", 80e9, 1e9},
    {"mistral-small-24b", 23572403200, 0},
};

/* Parameters that a token uses.  Some papers leave out the embedding's table,
 * of which it reads one row, and routers. */
enum { TABLE = 1, ROUTERS = 2 };

static const struct {
    const char *name;
    double active, rounding;
    unsigned without;
} actives[] = {
    {"mixtral-8x7b", 12.9e9, 1e8, 0},
    {"mixtral-8x22b", 39e9, 1e9, 0},
    {"qwen3-30b-a3b", 3.35e9, 1e8, 0}, /* prints 3.3: cut, not rounded */
    {"qwen3-235b-a22b", 22e9, 1e9, 0},
    {"gpt-oss-20b", 3.61e9, 1e7, TABLE},
    {"gpt-oss-120b", 5.13e9, 1e7, TABLE},
    {"deepseek-v2-lite", 2.4e9, 1e8, TABLE | ROUTERS},
    {"deepseek-v2", 21e9, 1e9, 0},
    {"deepseek-v3", 37e9, 1e9, TABLE},
    {"deepseek-v3-mtp", 37e9, 1e9, TABLE}, /* "37B activated", same report */
    {"kimi-k2", 32e9, 1e9, TABLE},
    {"nemotron-3-nano", 3.2e9, 1e8, TABLE},
    {"nemotron-3-nano", 3.6e9, 1e8, 0},
    {"nemotron-3-super", 12.7e9, 1e8, ROUTERS},
    {"nemotron-3-super", 12.1e9, 1e8, TABLE | ROUTERS},
    {"nemotron-3-ultra", 55e9, 1e9, TABLE},
    {"phi3.5-moe", 6.6e9, 1e8, 0},
    {"glm4.5", 32e9, 2e9, TABLE},
    {"glm4.5-air", 12e9, 2e9, TABLE},
    {"llama4-scout", 17e9, 1e9, 0},
    {"llama4-maverick", 17e9, 1e9, 0},
    {"qwen3-next-80b-a3b", 3.5e9, 1e9, TABLE}, /* named A3B */
};

static void check_count(const published *p, uint64_t params)
{
    double off = (double)params - p->params;
    if (off < 0) off = -off;
    if (off > p->rounding / 2) {
        fail_msg("%s has %llu parameters, published are %.0f", p->name,
                 (unsigned long long)params, p->params);
    }
}

static void test_catalogue(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(counts); i++) {
        const sc_model *m;
        assert_int_equal(
            sc_model_load(counts[i].name, sc_pos_none(), &arena, &m, &err),
            SC_OK);
        assert_string_equal(m->name, counts[i].name);
        assert_non_null(m->source.text);
        assert_non_null(m->source.date);
        check_count(&counts[i], m->params);
    }
}

/* No entry without a published count above, and none twice. */
static void test_all_are_checked(void **state)
{
    (void)state;
    const char **names;
    uint32_t n;
    assert_int_equal(sc_model_list(&arena, &names, &n, &err), SC_OK);
    assert_int_equal(n, SC_COUNT(counts));
    for (uint32_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < SC_COUNT(counts) && strcmp(counts[k].name, names[i])) k++;
        if (k == SC_COUNT(counts)) fail_msg("%s is not checked", names[i]);
        if (i > 0) assert_true(strcmp(names[i - 1], names[i]) < 0);
    }
}

static double routers(const sc_model *m)
{
    double n = 0;
    for (uint32_t i = 0; i < m->n_layers; i++) {
        const sc_net_op *op = kind_op_in(m, i, "router");
        if (op) n += (double)(m->layer[i].repeat * kind_op_params(m, op));
    }
    return n;
}

static void test_active(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(actives); i++) {
        const sc_model *m = model(actives[i].name);
        double n = (double)m->active_params;
        if (actives[i].without & TABLE) n -= (double)(m->t.vocab * m->t.hidden);
        if (actives[i].without & ROUTERS) n -= routers(m);
        if (fabs(n - actives[i].active) > actives[i].rounding / 2) {
            fail_msg("%s uses %.0f parameters, published are %.0f",
                     actives[i].name, n, actives[i].active);
        }
    }
}

/* Every model with experts has a row above; the others use all they have. */
static void test_all_actives(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(counts); i++) {
        const sc_model *m = model(counts[i].name);
        size_t k = 0;
        while (k < SC_COUNT(actives) && strcmp(actives[k].name, m->name)) k++;
        bool listed = k < SC_COUNT(actives);
        if (listed != (m->t.experts > 0))
            fail_msg("%s: active parameters are not checked", m->name);
        assert_true(listed ? m->active_params < m->params
                           : m->active_params == m->params);
    }
}

/* Adapters learn, nothing else does. */
static void test_trained(void **state)
{
    (void)state;
    const sc_model *m = model("llama2-70b-lora");
    assert_int_equal(m->trained_params, 44564480);
    m = model("mixtral-8x7b");
    assert_int_equal(m->trained_params, m->params);
}

static void test_aliases(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"llama3-405b", "llama3.1-405b"},
        {"llama-30b", "llama-33b"},
        {"gpt3", "gpt3-175b"},
        {"gpt3-1.3b", "gpt3-xl"},
        {"bloom", "bloom-176b"},
        {"gpt2-1.5b", "gpt2-xl"},
        {"gpt3-125m", "gpt3-small"},
        {"mt-nlg-530b", "megatron-530b"},
        /* as releases and tables spell them */
        {"GPT OSS 120B", "gpt-oss-120b"},
        {"openai/gpt-oss-20b", "gpt-oss-20b"},
        {"Qwen3_30B_a3B", "qwen3-30b-a3b"},
        {"Qwen/Qwen3-235B-A22B", "qwen3-235b-a22b"},
        {"DeepSeekV3", "deepseek-v3"},
        {"deepseek-ai/DeepSeek-V3-Base", "deepseek-v3"},
        {"Kimi_K2", "kimi-k2"},
        {"LLAMA3.1_405B", "llama3.1-405b"},
        {"meta-llama/Llama-3.1-8B", "llama3.1-8b"},
        {"Meta-Llama-3-70B", "llama3-70b"},
        {"Llama-2-70b-hf", "llama2-70b"},
        {"LLAMA2-70B LoRA", "llama2-70b-lora"},
        {"mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"},
        {"bert-large-uncased", "bert-large"},
        {"Nemotron_3_Nano", "nemotron-3-nano"},
        {"GPT3-175B", "gpt3-175b"},
    };
    for (size_t i = 0; i < SC_COUNT(pairs); i++) {
        const sc_model *x = model(pairs[i][0]), *y = model(pairs[i][1]);
        assert_string_equal(x->name, pairs[i][1]);
        assert_int_equal(x->hash, y->hash);
    }
}

/* No two names differ by case and punctuation alone. */
static void test_names_are_distinct(void **state)
{
    (void)state;
    const char **names;
    uint32_t n;
    assert_int_equal(sc_model_list(&arena, &names, &n, &err), SC_OK);
    for (uint32_t i = 0; i < n; i++) {
        char folded[NAME_FOLDED + 1];
        name_fold(names[i], folded);
        for (uint32_t k = 0; k < i; k++)
            if (name_is(folded, names[k]))
                fail_msg("%s is %s", names[i], names[k]);
    }
}

static void test_unknown_names(void **state)
{
    (void)state;

    static const struct {
        const char *name, *text;
    } cases[] = {
        {"llama3-71b", "--model llama3-71b: error: no model is called "
                       "`llama3-71b`; `stepcast list models` shows all; a "
                       "file ends in .json, .yml or .yaml"},
        {"lama3-70b", "--model lama3-70b: error: no model is called "
                      "`lama3-70b`; did you mean llama3-70b?"},
        /* keys and sections of the catalogue's files are no names */
        {"models", NULL},
        {"common", NULL},
        {"vocab", NULL},
        {"", NULL},
        {"*", NULL},
    };

    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        char option[64], text[700];
        const sc_model *m = NULL;
        sc_err_init(&err);
        snprintf(option, sizeof option, "--model %s", cases[i].name);
        sc_status s =
            sc_model_load(cases[i].name, sc_pos_file(option), &arena, &m, &err);
        assert_int_equal(s, SC_EINPUT);
        assert_null(m);
        assert_int_equal(err.n, 1);
        assert_int_equal(err.d[0].code, SC_C_UNKNOWN_NAME);
        sc_diag_format(&err.d[0], text, sizeof text);
        if (cases[i].text) assert_string_equal(text, cases[i].text);
    }
}

static void test_huggingface(void **state)
{
    (void)state;
    static const published files[] = {
        {"gpt2", 124439808, 0},
        {"gpt2-xl", 1557611200, 0},
        {"llama2-7b", 6738415616, 0},
        {"llama3-70b", 70553706496, 0},
        {"llama3.2-1b", 1235814400, 0},
        {"opt-1.3b", 1315758080, 0},
        {"bloom-560m", 559214592, 0},
        {"mpt-7b", 6649286656, 0},
        {"mpt-1b-learned", 1.316e9, 1e6},
        {"mistral-7b", 7241732096, 0},
        {"qwen2.5-7b", 7615616512, 0},
        {"gpt-neox-20b", 20554567680, 0},
        {"mixtral-8x7b", 46702792704, 0},
        {"qwen3-8b", 8190735360, 0},
        {"qwen3-30b-a3b", 30532122624, 0},
        {"gpt-oss-20b", 20914757184, 0},
        {"deepseek-v2-lite", 15706484224, 0},
        {"deepseek-v2", 235741434880, 0},
        {"deepseek-v3", 671026419200, 0},
        {"kimi-k2", 1030000000000.0, 1e10},
        {"nemotron-h-8b", 8100000000.0, 1e8},
        {"nemotron-3-nano", 31577937344, 0},
        {"bert-base", 109514298, 0},
        {"t5-small", 60506624, 0},
        {"vit-b-16", 86567656, 0},
    };
    const char *root = getenv("STEPCAST_SOURCE");
    for (size_t i = 0; i < SC_COUNT(files); i++) {
        char path[512];
        const sc_model *m;
        snprintf(path, sizeof path, "%s/tests/fuzz/corpus/hfconfig/%s.json",
                 root ? root : ".", files[i].name);
        m = model(path);
        check_count(&files[i], m->params);
        assert_null(m->source.text);
    }
}

/* A released file and the catalogue describe the same layers. */
static void test_file_equals_catalogue(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt2",
                                        "llama2-7b",
                                        "llama3-70b",
                                        "opt-1.3b",
                                        "bloom-560m",
                                        "mistral-7b",
                                        "qwen2.5-7b",
                                        "gpt-neox-20b",
                                        "mixtral-8x7b",
                                        "qwen3-8b",
                                        "qwen3-30b-a3b",
                                        "gpt-oss-20b",
                                        "deepseek-v2-lite",
                                        "deepseek-v2",
                                        "kimi-k2",
                                        "nemotron-h-8b",
                                        "nemotron-3-nano",
                                        "bert-base",
                                        "t5-small",
                                        "vit-b-16"};
    const char *root = getenv("STEPCAST_SOURCE");
    for (size_t i = 0; i < SC_COUNT(names); i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/tests/fuzz/corpus/hfconfig/%s.json",
                 root ? root : ".", names[i]);
        if (model(path)->hash != model(names[i])->hash) {
            fail_msg("%s differs from %s", path, names[i]);
        }
    }
}

/* The promise is 0.3 ms; the best of many look-ups is free of noise, CPU time of
 * what others do.  Wide enough for sanitizers. */
static void test_lookup_is_fast(void **state)
{
    (void)state;
    double best = 1e9;
    for (int i = 0; i < 50; i++) {
        struct timespec from, to;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
        (void)model("megatron-145.6b");
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
        double s = (double)(to.tv_sec - from.tv_sec) +
                   1e-9 * (double)(to.tv_nsec - from.tv_nsec);
        if (s < best) best = s;
        sc_arena_reset(&arena);
    }
    if (best > 1e-3) fail_msg("a look-up takes %g s", best);
}

/* A vocabulary that ranks do not divide is padded to a multiple of 128 rows for
 * each of them: of GPT-2's 50257 rows 197 x 256, 99 x 512, 50 x 1024. */
static void test_padded_vocabulary(void **state)
{
    (void)state;

    static const struct {
        uint64_t parts;
        int64_t rows;
    } want[] = {{0, 50257}, {1, 50257}, {2, 50432},
                {4, 50688}, {8, 51200}, {29, 50257} /* 29 x 1733 */};

    const sc_model *m = model("gpt2"), *padded = NULL;
    for (size_t i = 0; i < SC_COUNT(want); i++)
        assert_int_equal(sc_model_padded(m, want[i].parts), want[i].rows);
    assert_int_equal(sc_model_pad(m, 8, &arena, &padded, &err), SC_OK);
    assert_int_equal(padded->t.vocab, 51200);
    assert_int_equal(m->t.vocab, 50257);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_catalogue, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_are_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_active, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_actives, setup, teardown),
        cmocka_unit_test_setup_teardown(test_trained, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aliases, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names_are_distinct, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_unknown_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_huggingface, setup, teardown),
        cmocka_unit_test_setup_teardown(test_file_equals_catalogue, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_lookup_is_fast, setup, teardown),
        cmocka_unit_test_setup_teardown(test_padded_vocabulary, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
