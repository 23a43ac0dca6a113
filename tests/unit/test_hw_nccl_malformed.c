/* SPDX-License-Identifier: Apache-2.0 */
/* Topology files of NCCL that are none: every error of each file, at its
 * place, as it is printed.  No command reads these files yet, so the texts
 * stand here beside the inputs of the other readers. */
#include "fixture.h"
#include "hw/hw_nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *file, *errors;
} cases[] = {
    {"busid.xml", "busid.xml:3:10: error: busid=\"0000:0G:00.0\" is not a "
                  "bus id; write it like 0000:18:00.0\n"
                  "busid.xml:6:5: error: <pci> has no busid\n"},
    {"cpu.xml", "cpu.xml:2:8: error: numaid=\"zero\" is not a number; write a "
                "whole number\ncpu.xml:3:3: error: <cpu> has no arch\n"},
    {"cut.xml", "cut.xml:6:1: error: bad XML: <cpu> of line 2 is not "
                "closed\n"},
    {"entity.xml", "entity.xml:1:1: error: document types are not "
                   "read; remove <!DOCTYPE ...>\n"},
    {"gpu.xml", "gpu.xml:4:7: error: <gpu> has no sm\n"
                "gpu.xml:7:7: error: <gpu> has no dev\n"},
    {"graphs.xml",
     "graphs.xml:1:1: error: an NCCL topology starts with <system>, not "
     "<graphs>; write it with NCCL_TOPO_DUMP_FILE\n"},
    {"log.xml", "log.xml:1:1: error: bad XML: syntax error\n"},
    {"net.xml",
     "net.xml:7:20: error: speed=\"fast\" is not a number; write a whole "
     "number\nnet.xml:7:33: error: latency=\"-1\" is not in 0 to 1e6 us\n"},
    {"nogpu.xml",
     "nogpu.xml:1:1: error: there is no <gpu> in the file; files for "
     "NCCL_TOPO_FILE leave GPUs out; let a run write NCCL_TOPO_DUMP_FILE\n"},
    {"nvlink.xml", "nvlink.xml:6:9: error: NCCL has no element "
                   "<nvlnk>; did you mean <nvlink>?\n"},
    {"oneway.xml", "oneway.xml:1:1: error: GPU 0 has an NVLink to GPU 1, which "
                   "has none back; write an NVLink at both of its ends\n"},
    {"twice.xml", "twice.xml:6:10: error: another <pci> has this busid\n"},
    {"version.xml", "version.xml:1:9: error: NCCL topologies have version 1\n"},
};

static void errors_of(const char *name, char *out, size_t size)
{
    const char *root = getenv("STEPCAST_SOURCE");
    const char *path =
        sc_sprintf(&arena, "%s/tests/golden/malformed/in/nccl_xml/%s",
                   root ? root : ".", name);
    char *text;
    size_t len, n = 0;
    const sc_topo *t = NULL;
    assert_int_equal(
        sc_file_read(path, (size_t)1 << 20, &arena, &text, &len, &err), SC_OK);
    sc_err_init(&err);
    assert_int_equal(
        sc_topo_read(text, len, name, SC_NCCL_2_30_7, &arena, &t, &err),
        SC_EINPUT);
    assert_null(t);
    for (uint32_t i = 0; i < err.n; i++) {
        sc_diag_format(&err.d[i], out + n, size - n);
        n += strlen(out + n);
        n += (size_t)snprintf(out + n, size - n, "\n");
        assert_true(n < size);
    }
}

static void every_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        char got[4000];
        errors_of(cases[i].file, got, sizeof got);
        assert_string_equal(got, cases[i].errors);
    }
}

/* A file cut at any byte is refused, or is whole. */
static void cut_anywhere(void **state)
{
    (void)state;
    static const char whole[] =
        "<system version=\"1\">\n<cpu numaid=\"0\" arch=\"arm64\">"
        "<pci busid=\"1\" class=\"0x03\"><gpu dev=\"0\" sm=\"90\"/></pci>"
        "<nic><net dev=\"0\" speed=\"400000\"/></nic></cpu></system>\n";
    size_t read = 0;
    for (size_t len = 0; len <= strlen(whole); len++) {
        const sc_topo *t = NULL;
        sc_err_init(&err);
        sc_status s =
            sc_topo_read(whole, len, "t.xml", SC_NCCL_2_30_7, &arena, &t, &err);
        assert_true(s == SC_OK || (s == SC_EINPUT && err.n > 0));
        assert_true(s == SC_OK || err.d[0].line > 0);
        read += s == SC_OK;
    }
    assert_int_equal(read, 2); /* with and without the last newline */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_error, setup, teardown),
        cmocka_unit_test_setup_teardown(cut_anywhere, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
