/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.cpp - the same messages as packets of ns-3, as flows, as queueing
 * chunks and in closed form: when the last has arrived, and how far that is
 * from ns-3.
 *
 *   compare incast|crossing|ring|even|uneven DEVICES BYTES
 *
 * incast: all others send BYTES to device 0; crossing: and as much to their
 * right neighbour.  ring: all-reduce of BYTES in 2 (n - 1) steps; a device
 * sends on what it has received.  even: all-to-all of BYTES per device, all
 * messages at once; uneven: of half to one and a half times an even share.
 *
 * A link carries 400 Gb/s of packets.  The others know no packets: they get
 * the part of the link that is payload.
 */
#include "compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

namespace
{

constexpr double bandwidth = 50e9, latency = 1e-6;
/* Of a connection: some 1.3 times what a link carries in a round trip. */
constexpr uint64_t window = 256 << 10;
/* Where so much moves, packets and flows must agree to this. */
constexpr uint64_t large = 16 << 20;
constexpr double limit = 0.02;

[[noreturn]] void fail(const char *what)
{
    std::fprintf(stderr, "compare: %s\n", what);
    std::exit(1);
}

double cpu_seconds()
{
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- what moves ---- */

std::vector<message> ring(unsigned n, uint64_t bytes)
{
    std::vector<message> m;
    for (unsigned step = 0; step < 2 * (n - 1); step++)
        for (unsigned i = 0; i < n; i++) {
            const unsigned received = (i + n - 1) % n;
            const int after =
                step == 0 ? nothing : (int)((step - 1) * n + received);
            m.push_back({i, (i + 1) % n, bytes / n, after, 0});
        }
    return m;
}

std::vector<message> everyone(unsigned n, uint64_t bytes, bool even)
{
    std::vector<message> m;
    uint64_t seed = 7;
    const uint64_t share = bytes / n; /* what stays at home included */
    for (unsigned k = 1; k < n; k++)
        for (unsigned i = 0; i < n; i++) {
            const uint64_t size =
                even ? share : share / 2 + sc_random_below(&seed, share);
            m.push_back({i, (i + k) % n, size, nothing, 0});
        }
    return m;
}

std::vector<message> incast(unsigned n, uint64_t bytes, bool crossing)
{
    std::vector<message> m;
    for (unsigned i = 1; i < n; i++) m.push_back({i, 0, bytes, nothing, 0});
    for (unsigned i = 1; crossing && i + 1 < n; i++)
        m.push_back({i, i + 1, bytes, nothing, 0});
    return m;
}

std::vector<message> messages_of(const std::string &what, unsigned n,
                                 uint64_t bytes)
{
    if (what == "ring") return ring(n, bytes);
    if (what == "even" || what == "uneven")
        return everyone(n, bytes, what == "even");
    if (what == "incast" || what == "crossing")
        return incast(n, bytes, what == "crossing");
    fail("no such pattern");
}

/* ---- ours ---- */

void run_flows(const chunk_machine &m, std::vector<message> &messages)
{
    sc_fabric *f;
    if (sc_fabric_new(m.hw, &m.routes, m.arena, &f, nullptr))
        fail("out of memory");
    sc_flows *x = sc_fabric_flows(f);
    auto post = [&](size_t i, sc_time t) {
        sc_message s = {};
        s.src = messages[i].from;
        s.dst = messages[i].to;
        s.bytes = messages[i].bytes;
        s.tag = i;
        if (sc_fabric_post(f, &s, t) == SC_FLOW_NONE) fail("post");
    };
    std::vector<std::vector<size_t>> released(messages.size());
    for (size_t i = 0; i < messages.size(); i++)
        if (messages[i].after == nothing)
            post(i, 0);
        else
            released[(size_t)messages[i].after].push_back(i);
    for (sc_time t; (t = sc_flows_next(x)) != SC_TIME_MAX;) {
        const sc_flow_end *end;
        const uint32_t n = sc_flows_advance(x, t, &end);
        for (uint32_t k = 0; k < n; k++) {
            messages[end[k].tag].ended = sc_time_to_s(t);
            for (const size_t i : released[end[k].tag]) post(i, t);
        }
    }
}

double run_chunks(const chunk_machine &m, const std::string &what,
                  uint64_t bytes)
{
    if (what == "ring") return run_collective(m, SC_ALL_REDUCE, bytes);
    if (what == "even") return run_collective(m, SC_ALL_TO_ALL, bytes);
    if (what == "incast") return run_incast(m, bytes);
    return 0;
}

/* ---- the table ---- */

double last(const std::vector<message> &messages)
{
    double t = 0;
    for (const message &m : messages) t = std::max(t, m.ended);
    return t;
}

void column(double seconds, double of)
{
    if (seconds == 0)
        std::printf(" %8s", "-");
    else
        std::printf(" %+7.2f%%", 100 * (seconds - of) / of);
}

const sc_hw *switch_of(unsigned n, sc_arena *a)
{
    const sc_hw *hw;
    char spec[64];
    std::snprintf(spec, sizeof spec, "switch%u@%.0fGB/s,%.0fns", n,
                  bandwidth / 1e9, 2 * latency * 1e9);
    if (sc_hw_build(spec, sc_pos_none(), a, &hw, nullptr)) fail("machine");
    return hw;
}

/* The largest difference of a message's end. */
double apart(const std::vector<message> &flows,
             const std::vector<message> &packets)
{
    double most = 0;
    for (size_t i = 0; i < packets.size(); i++)
        most = std::max(most, std::fabs(flows[i].ended - packets[i].ended) /
                                  packets[i].ended);
    return most;
}

} /* namespace */

int main(int argc, char **argv)
{
    if (argc != 4)
        fail("compare incast|crossing|ring|even|uneven DEVICES BYTES");
    const std::string what = argv[1];
    const auto n = (unsigned)std::strtoul(argv[2], nullptr, 10);
    const uint64_t bytes = std::strtoull(argv[3], nullptr, 10);
    if (n < 3 || n > 250 || bytes < 2 * n)
        fail("from 3 to 250 devices, two bytes for each");
    std::vector<message> packets = messages_of(what, n, bytes), flows = packets;

    const double from = cpu_seconds();
    const packet_run p = run_packets({n, bandwidth, latency}, window, packets);
    const double theirs = cpu_seconds() - from;
    if (p.lost != 0) fail("packets or messages were lost");

    sc_arena arena;
    sc_arena_init(&arena, 0);
    chunk_machine m = {};
    m.arena = &arena;
    m.hw = switch_of(n, &arena);
    for (double &share : m.routes.fraction)
        share = (double)payload / (payload + headers);
    const double start = cpu_seconds();
    run_flows(m, flows);
    const double ours = cpu_seconds() - start;

    const double end = last(packets), flow = last(flows);
    std::printf("%-8s %7u %8llu %9.2f %9.2f", what.c_str(), n,
                (unsigned long long)bytes, end * 1e6, flow * 1e6);
    column(flow, end);
    column(run_chunks(m, what, bytes), end);
    m.closed = true;
    column(run_chunks(m, what, bytes), end);
    std::printf(" %7.2f%% %7llu %6.2f %8.1e\n", 100 * apart(flows, packets),
                (unsigned long long)p.packets, theirs, theirs / ours);
    sc_arena_free(&arena);
    return bytes >= large && std::fabs(flow - end) > limit * end;
}
