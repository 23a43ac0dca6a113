/* SPDX-License-Identifier: Apache-2.0 */
/* chrome_exec.c - an execution on devices as Chrome trace events. */
#include "report/chrome.h"

static void put_args(const sc_exec *x, const sc_exec_result *r, sc_op i,
                     sc_json *j)
{
    sc_json_key(j, "args");
    sc_json_begin(j, '{');
    sc_json_put_uint(j, "id", i);
    if (x->bytes[i]) sc_json_put_uint(j, "bytes", x->bytes[i]);
    if (x->flops[i] > 0) sc_json_put_double(j, "flops", x->flops[i]);
    if (r->cause[i] != SC_NONE) sc_json_put_uint(j, "cause", r->cause[i]);
    if (r->shared[i]) chrome_us(j, "shared_us", r->shared[i]);
    if (r->overlapped[i]) chrome_us(j, "overlapped_us", r->overlapped[i]);
    sc_json_end(j, '}');
}

static void put_op(const sc_exec *x, const sc_exec_result *r, sc_op i,
                   uint32_t device, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_string(j, "ph", "X");
    sc_json_put_string(j, "name", x->name[i]);
    sc_json_put_string(j, "cat", sc_cat_names[x->cat[i]]);
    chrome_place(j, device, x->stream[i]);
    chrome_us(j, "ts", r->start[i]);
    chrome_us(j, "dur", r->end[i] - r->start[i]);
    put_args(x, r, i, j);
    sc_json_end(j, '}');
}

static void put_memory(const sc_mem_device *m, uint32_t device, sc_json *j)
{
    for (uint32_t i = 0; i < m->n; i++) {
        sc_json_begin(j, '{');
        sc_json_put_string(j, "ph", "C");
        sc_json_put_string(j, "name", "memory");
        chrome_place(j, device, 0);
        chrome_us(j, "ts", m->at[i].t);
        sc_json_key(j, "args");
        sc_json_begin(j, '{');
        sc_json_put_uint(j, "live", m->at[i].live);
        sc_json_put_uint(j, "reserved", m->at[i].reserved);
        sc_json_end(j, '}');
        sc_json_end(j, '}');
    }
}

void sc_report_chrome_exec(const sc_exec *x, const sc_exec_result *r,
                           const sc_mem_device *memory, sc_json *out)
{
    sc_json_begin(out, '{');
    sc_json_put_string(out, "displayTimeUnit", "ns");
    sc_json_key(out, "traceEvents");
    sc_json_begin(out, '[');
    for (uint32_t d = 0; d < x->n_devices; d++) {
        chrome_meta(out, "process_name", d, 0, x->device_name[d]);
        for (unsigned s = 0; s < SC_N_STREAMS; s++)
            chrome_meta(out, "thread_name", d, s, sc_stream_names[s]);
        if (memory) put_memory(&memory[d], d, out);
    }
    for (sc_op i = 0; i < x->n_ops; i++)
        for (uint32_t k = x->dev_head[i]; k < x->dev_head[i + 1]; k++)
            put_op(x, r, i, x->dev[k], out);
    sc_json_end(out, ']');
    sc_json_end(out, '}');
}
