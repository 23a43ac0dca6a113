/* SPDX-License-Identifier: Apache-2.0 */
/* test_import_script.c - launch scripts that take arguments and compute. */
#include "megatron_case.h"

/* A script reads its arguments, as if launched with none or with those that
 * `set --` gives; a text that is read again keeps what no run has determined. */
static void test_arguments(void **state)
{
    (void)state;
    static const char text[] =
        "LAYERS=$2\nNODES=${10}\nif [ \"$LAYERS\" == \"\" ]; then "
        "LAYERS=12\nfi\n"
        "OVERLAP=$(( ($NODES > 1 && 3 >= 2) ? ${NODES} * 2 : 0 ))\n"
        "NAME=run-$(date \"+%Y (%m)\")-$((${UNSET} / 2))\n"
        "run=\"torchrun --nnodes $NODES --nproc_per_node 4 pretrain_gpt.py "
        "--tensorboard-dir ${NAME}/x --num-layers $LAYERS --hidden-size 64 "
        "--num-attention-heads 4 --global-batch-size $((64 + OVERLAP)) " RUN
        "--max-position-embeddings 2048 --patch-tokenizer-type LLama3Tokenizer "
        "--extra-vocab-size 256 --split 1\"\neval ${run}\n";
    char with[1200];
    reading r;
    snprintf(with, sizeof with, "set -- a 6 c d e f g h i 2\n%s", text);
    good(&r, with);
    assert_int_equal(r.m.model.layers, 6);
    assert_int_equal(r.m.world, 8);
    assert_int_equal(r.job.gbs, 68);
    assert_int_equal(r.m.model.vocab, 128512); /* 128256 + 256 = 1004 x 128 */
    sc_arena_free(&r.a);
    snprintf(with, sizeof with, "set -- a '' c d e f g h i 1\n%s", text);
    good(&r, with);
    assert_int_equal(r.m.model.layers, 12);
    assert_int_equal(r.job.gbs, 64);
    sc_arena_free(&r.a);
    static const char none[] = "MBS=$3\ntorchrun pretrain_gpt.py " SIZES
                               "--seq-length 8 --micro-batch-size $MBS " REST;
    read_defined(&r, none, NULL);
    assert_int_equal(r.status, SC_EINPUT);
    assert_non_null(strstr(r.err.d[0].hint, "set -- ARGUMENTS"));
    sc_arena_free(&r.a);
}

/* Precedence of C: 1 + 2 < 4 == 1, || below &&, ?: from the right. */
static void test_comparisons(void **state)
{
    (void)state;

    static const struct {
        const char *sum;
        int64_t layers;
    } cases[] = {
        {"1 + 2 < 4 == 1 ? 5 : 6", 5},
        {"4 <= 3 ? 5 : 0 || 1 && 0 ? 7 : 8", 8},
        {"1 || 0 && 0", 1},
        {"(2 != 2) + (3 >= 3) + (2 > 1) * 4", 5},
        {"2 == 2 == 2 ? 3 : 9", 9},
    };

    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        char text[400];
        reading r;
        snprintf(text, sizeof text,
                 "torchrun pretrain_gpt.py --num-layers $((%s)) --hidden-size "
                 "64 --num-attention-heads 4 " RUN REST,
                 cases[i].sum);
        good(&r, text);
        assert_int_equal(r.m.model.layers, cases[i].layers);
        sc_arena_free(&r.a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_arguments),
                                       cmocka_unit_test(test_comparisons)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
