/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of kernels: what a row becomes, and what its price includes. */
#include "calib/calib.h"
#include "calib/kernel_table.h"
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOE                                                           \
    "device,software,kernel,dtype,tokens,hidden,inter,gated,experts," \
    "topk,ep,tp,distribution,seconds\n"
#define DEEPEP                                                        \
    "device,nodes,gpus,library,version,operation,tokens,hidden,topk," \
    "experts,sms,seconds,notify_seconds\n"
#define ATTENTION                                                     \
    "device,software,kernel,dtype,batch,heads,kv_heads,head_dim,seq," \
    "causal,window,seconds\n"

static uint32_t read_rows(const char *file, const char *text,
                          calib_kernel_row **rows)
{
    sc_csv *t = SC_NEW(&arena, sc_csv);
    uint32_t n = 0;
    assert_int_equal(sc_csv_parse(text, strlen(text), file, &arena, t, &err),
                     SC_OK);
    assert_true(calib_kernel_is_table(t));
    assert_int_equal(calib_kernel_rows_read(t, &arena, rows, &n, &err), SC_OK);
    return n;
}

static double flops(const calib_kernel_row *r)
{
    double sum = 0;
    for (uint32_t i = 0; i < r->n_parts; i++)
        sum += sc_kernel_amount(&r->part[i]).flops;
    return sum;
}

static void reads_products(void **state)
{
    (void)state;
    calib_kernel_row *r;
    uint32_t n = read_rows("gemm.csv",
                           "device,software,dtype,m,n,k,seconds\n"
                           "a100,x,bf16,16,32,64,1e-5\n"
                           "h100,x,fp8,16,32,64,1e-5\n"
                           "b200,x,nvfp4,16,32,64,1e-5\n"
                           "a100,x,int8,16,32,64,1e-5\n",
                           &r);
    assert_int_equal(n, 4);
    assert_int_equal(r[0].n_parts, 1);
    assert_int_equal(r[0].part[0].m, 16);
    assert_int_equal(r[0].part[0].n, 32);
    assert_int_equal(r[0].part[0].k, 64);
    assert_string_equal(r[0].device->name, "a100-sxm-80g");
    assert_string_equal(r[0].id, "gemm.csv:2");
    /* the cast reads 2 bytes and writes 1, and the scale is found before */
    assert_int_equal(r[1].n_parts, 3);
    assert_int_equal(r[1].part[1].kind, SC_K_QUANTIZE);
    assert_int_equal(r[1].part[2].kind, SC_K_AMAX);
    assert_true(sc_kernel_amount(&r[1].part[1]).bytes == 16 * 64 * (2 + 1));
    assert_true(sc_kernel_amount(&r[1].part[2]).bytes == 16 * 64 * 2);
    assert_true(sc_kernel_amount(&r[2].part[1]).bytes == 16 * 64 * 2.5);
    assert_int_equal(r[2].part[0].precision, SC_FP4);
    assert_int_equal(r[3].n_parts, 1);
    assert_int_equal(r[3].part[0].precision, SC_INT8);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(r[i].n_warnings, 0);
        assert_true(flops(&r[i]) == 2.0 * 16 * 32 * 64);
    }
}

static void reads_attention(void **state)
{
    (void)state;
    calib_kernel_row *r;
    read_rows("a.csv",
              ATTENTION "h100,vllm-0.19.0,k,bf16,2,32,8,128,512,1,0,1e-4\n"
                        "h100,vllm-0.24.0,k,bf16,2,32,8,128,512,1,256,1e-4\n"
                        "h100,vllm-0.24.0,k,bf16,2,32,32,128,512,0,0,1e-4\n",
              &r);
    assert_int_equal(r[0].part[0].batch, 64);
    assert_int_equal(r[0].part[0].kv_group, 4);
    assert_int_equal(r[0].part[0].v_dim, 128);
    assert_true(r[0].part[0].causal);
    assert_int_equal(r[0].n_parts, 1);
    assert_int_equal(r[1].part[0].band, 256);
    /* keys and values of 8 heads are read and written */
    assert_int_equal(r[1].n_parts, 2);
    assert_true(r[1].part[1].bytes == 2.0 * 2 * 512 * 8 * 128 * 4);
    assert_int_equal(r[2].n_parts, 1);
    assert_string_equal(r[2].operation, "attention bidirectional");
}

/* FLOP as the table's README counts them, times the share of the most loaded
 * rank. */
static void reads_experts(void **state)
{
    (void)state;
    calib_kernel_row *r;
    read_rows("moe.csv",
              MOE "h100,x,k,bf16,8192,4096,1536,1,128,8,8,1,balanced,1e-3\n"
                  "h100,x,k,bf16,8192,4096,1536,0,128,8,1,2,uniform,1e-3\n"
                  "h100,x,k,bf16,8192,4096,1536,1,128,8,8,1,power_law_1.2,"
                  "1e-3\n"
                  "h100,x,k,bf16,2,4096,1536,1,128,8,1,1,balanced,1e-3\n"
                  "h100,x,triton,bf16,512,4096,1536,1,128,8,4,1,balanced,1e-3\n"
                  "h100,x,triton,bf16,512,4096,1536,1,128,8,16,1,balanced,"
                  "1e-3\n",
              &r);
    double even = 2.0 * 8192 * 8 / 8 * 4096 * 1536 * 3;
    assert_true(fabs(flops(&r[0]) / even - 1) < 1e-9);
    assert_true(r[0].part[0].grouped && r[0].part[1].grouped);
    assert_int_equal(r[0].part[0].batch, 16);
    double plain = 2.0 * 8192 * 8 * 4096 * (1536 / 2.0) * 2;
    assert_true(fabs(flops(&r[1]) / plain - 1) < 1e-3);
    double skew = calib_kernel_skew(1.2, 0.8 * 8192, 128, 8);
    assert_true(skew > 1.3 && skew < 2.5);
    assert_true(fabs(flops(&r[2]) / (even * skew) - 1) < 1e-3);
    /* 16 pairs reach 16 of 128 experts */
    assert_int_equal(r[3].part[0].batch, 16);
    assert_int_equal(r[3].part[0].m, 1);
    /* this kernel is timed with all experts of a token on the rank */
    double token = 2.0 * 8 * 4096 * 1536 * 3;
    assert_true(fabs(flops(&r[4]) / (512 * token) - 1) < 1e-9);
    assert_true(fabs(flops(&r[5]) / (256 * token) - 1) < 1e-9);
}

static void skew_is_bounded(void **state)
{
    (void)state;
    assert_true(calib_kernel_skew(1.2, 1000, 64, 1) == 1);
    for (double ep = 2; ep <= 64; ep *= 2) {
        double low = calib_kernel_skew(0.6, 1000, 128, ep);
        double high = calib_kernel_skew(1.2, 1000, 128, ep);
        assert_true(low > 1 && high > low && high <= ep);
        assert_true(calib_kernel_skew(1, 1000, 128, ep) > low);
    }
}

static void reads_collectives(void **state)
{
    (void)state;
    calib_kernel_row *r;
    sc_cost c;
    sc_cost_centres(&c);
    read_rows("comm.csv",
              "device,gpus,operation,dtype,bytes,library,version,seconds\n"
              "h100,8,all_reduce,fp16,8388608,nccl,2.29,6e-5\n"
              "h100,4,all_reduce,bf16,8192,vllm-custom,0.19,6e-6\n",
              &r);
    assert_int_equal(r[0].coll->at.n, 8);
    assert_int_equal(r[0].n_warnings, 0);
    assert_int_equal(r[1].n_warnings, 1);
    assert_int_equal(r[1].coll->at.n, 4);
    assert_true(calib_kernel_predict(&r[1], &c) > 0);
    read_rows("deepep.csv",
              DEEPEP
              "h100,1,8,deepep,1,dispatch,1000,7168,8,256,20,2e-4,0\n"
              "h100,1,8,deepep-low-latency,1,combine,1000,7168,8,256,,2e-4,0\n"
              "gb200,,4,trtllm-x,1,combine,1000,7168,8,256,,2e-4,0\n",
              &r);
    /* one copy of fp8 per rank that has an expert: 8 (1 - (7/8)^8) */
    double copies = 8 * (1 - pow(7 / 8.0, 8));
    assert_true(fabs(r[0].coll->bytes / (1000 * copies * 7168 * 1.03125) - 1) <
                1e-9);
    assert_int_equal(r[0].coll->sms, 20);
    assert_true(r[1].coll->bytes == 1000.0 * 8 * 7168 * 2);
    assert_false(r[1].coll->dedup);
    assert_int_equal(r[2].coll->at.nodes, 1);
}

static void replaces_unknown_names(void **state)
{
    (void)state;

    static const struct {
        const char *text, *device;
    } cases[] = {{"H100 96GB sample", "h100-sxm"},
                 {"8xB200_SXM_180GB", "b200"},
                 {"Vendor H100 NVL rev 2", "h100-nvl"},
                 {"RTX PRO 6000 Blackwell Max-Q", "rtx-pro-6000"},
                 {"H1000", "h800-sxm"},
                 {"", "h100-sxm"},
                 {"AMD_Instinct_MI250", "mi250"}};

    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        const sc_device *d;
        const char *warning;
        assert_int_equal(
            sc_device_nearest(cases[i].text, &arena, &d, &warning, &err),
            SC_OK);
        assert_string_equal(d->name, cases[i].device);
        assert_int_equal(warning == NULL, i == SC_COUNT(cases) - 1);
    }
    calib_kernel_row *r;
    read_rows("gemm.csv",
              "device,software,dtype,m,n,k,seconds\n"
              "NEW-GPU,x,fp8-per-channel,16,32,64,1e-5\n"
              "h100,x,q3,16,32,64,1e-5\n",
              &r);
    assert_int_equal(r[0].n_warnings, 2);
    assert_int_equal(r[0].part[0].scaling, SC_SCALE_ROW);
    assert_int_equal(r[1].part[0].precision, SC_BF16);
}

static void reads_layers(void **state)
{
    (void)state;
    calib_kernel_row *r;
    uint32_t n = read_rows(
        "data/compute/a40/model/mlp.csv",
        "time_stats.mlp_up_proj.median,time_stats.add.median,n_head,n_kv_head,"
        "n_embd,n_expanded_embd,use_gated_mlp,num_tokens,"
        "num_tensor_parallel_workers\n2,0.1,32,8,4096,11008,True,512,2\n",
        &r);
    assert_int_equal(n, 2);
    assert_string_equal(r[0].device->name, "a40");
    assert_string_equal(r[0].id, "mlp.csv:2:mlp_up_proj");
    assert_true(fabs(r[0].seconds - 2e-3) < 1e-12);
    assert_int_equal(r[0].part[0].n, 11008);
    assert_true(r[1].part[0].bytes == 3.0 * 2 * 512 * 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_products, setup, teardown),
        cmocka_unit_test_setup_teardown(reads_attention, setup, teardown),
        cmocka_unit_test_setup_teardown(reads_experts, setup, teardown),
        cmocka_unit_test_setup_teardown(skew_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(reads_collectives, setup, teardown),
        cmocka_unit_test_setup_teardown(replaces_unknown_names, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(reads_layers, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
