/* SPDX-License-Identifier: Apache-2.0 */
/* bench_base.c - readers of files that people write. */
#include "base/base.h"
#include "bench.h"

#include <string.h>

static void parse_units(void *ctx, uint64_t n)
{
    static const struct {
        const char *text;
        sc_unit unit;
    } row[] = {{"400Gb/s", SC_U_RATE},
               {"1.2us", SC_U_TIME},
               {"80GiB", SC_U_BYTES},
               {"312TFLOP/s", SC_U_FLOPS},
               {"2.50USD/h", SC_U_PRICE}};

    (void)ctx;
    double sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        double value = 0;
        size_t k = i % SC_COUNT(row);
        if (sc_unit_parse(row[k].text, row[k].unit, sc_pos_none(), &value,
                          NULL) != SC_OK)
            bench_fail(row[k].text);
        sum += value;
    }
    bench_keep(sum);
}

/* One thousand layers as a person's configuration or a trace has them. */
static void write_json(sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_key(j, "layers");
    sc_json_begin(j, '[');
    for (int i = 0; i < 1000; i++) {
        sc_json_begin(j, '{');
        sc_json_key(j, "name");
        sc_json_string(j, "decoder.self_attention.qkv");
        sc_json_key(j, "flops");
        sc_json_double(j, 1.0e9 / 7 * i);
        sc_json_key(j, "bytes");
        sc_json_int(j, 4096 + i);
        sc_json_key(j, "shape");
        sc_json_begin(j, '[');
        for (int d = 0; d < 3; d++) sc_json_int(j, 128 << d);
        sc_json_end(j, ']');
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
    sc_json_end(j, '}');
}

static void json_write(void *ctx, uint64_t n)
{
    (void)ctx;
    for (uint64_t i = 0; i < n; i++) {
        sc_json j;
        sc_json_init(&j, false);
        write_json(&j);
        if (j.failed) bench_fail("json writer");
        bench_keep((double)j.len);
        sc_json_free(&j);
    }
}

static sc_status count_event(void *ctx, const sc_event *ev, sc_err *err)
{
    (void)ev;
    (void)err;
    ++*(uint64_t *)ctx;
    return SC_OK;
}

static void json_events(void *ctx, uint64_t n)
{
    const sc_json *j = ctx;
    uint64_t events = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (sc_doc_events(j->buf, j->len, SC_FMT_JSON, "layers.json",
                          count_event, &events, NULL) != SC_OK)
            bench_fail("json events");
    }
    bench_keep((double)events);
}

void bench_main(void)
{
    bench_case("units.parse", parse_units, NULL, 100000);
    bench_case("json.write.1000_layers", json_write, NULL, 20);

    sc_json j;
    sc_json_init(&j, false);
    write_json(&j);
    bench_case("json.events.1000_layers", json_events, &j, 20);
    sc_json_free(&j);
}
