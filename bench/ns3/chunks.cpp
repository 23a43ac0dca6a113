/* SPDX-License-Identifier: Apache-2.0 */
/* chunks.cpp - the same communication as a workload, whose messages queue on
 * links or have a closed form. */
#include "compare.h"
#include "sim/sim_workload.h"

#include <numeric>

namespace
{

/* The tasks of one class, none of which waits for another. */
class task_class
{
  public:
    void add(sc_task_kind kind, sc_coll coll, uint64_t size)
    {
        kinds.push_back((uint8_t)kind);
        colls.push_back((uint8_t)coll);
        sizes.push_back(size);
    }

    /* Slot i is the peer of task i; one tag. */
    sc_task_list list()
    {
        const size_t n = kinds.size();
        zeros.assign(n + 1, 0);
        long_zeros.assign(n, 0);
        times.assign(n, 0);
        world.assign(n, SC_TASK_WORLD);
        numbers.resize(n);
        std::iota(numbers.begin(), numbers.end(), 0u);
        ids.assign(numbers.begin(), numbers.end());
        flags.assign(n, 0);
        sc_task_list t = {};
        t.n_tasks = (uint32_t)n;
        t.kind = kinds.data();
        t.coll = colls.data();
        t.flags = flags.data();
        t.n_preds = t.succ_head = t.succ = zeros.data();
        t.tag = t.priority = t.dims = zeros.data();
        t.duration = times.data();
        t.size = sizes.data();
        t.group = world.data();
        t.peer = numbers.data();
        t.id = ids.data();
        t.ops = long_zeros.data();
        t.n_peers = kinds[0] == SC_TASK_COLL ? 0 : t.n_tasks;
        t.n_tags = kinds[0] == SC_TASK_COLL ? 0 : 1;
        return t;
    }

  private:
    std::vector<uint8_t> kinds, colls, flags;
    std::vector<uint32_t> zeros, world, numbers;
    std::vector<uint64_t> sizes, ids, long_zeros;
    std::vector<sc_time> times;
};

sc_system one_chunk()
{
    sc_system s = {};
    s.active_chunks = s.splits = s.comm_slots = 1;
    s.local_mem_bw = 1e30; /* reductions take no time elsewhere either */
    s.port_limit = true;
    for (sc_ccl_list &l : s.ccl) {
        l.n = 1;
        l.dim[0].kind = SC_CCL_DIRECT;
    }
    s.ccl[SC_ALL_REDUCE].dim[0].kind = SC_CCL_RING;
    return s;
}

double simulate(const sc_workload &w, const chunk_machine &m)
{
    const sc_system system = one_chunk();
    const sc_pool pool = {};
    sc_network net = {};
    net.n_dims = 1;
    net.n_ranks = m.hw->n_devices;
    net.dim[0].kind = SC_DIM_SWITCH;
    net.dim[0].size = m.hw->n_devices;
    net.dim[0].gib_per_s =
        m.hw->dim[0].bw * m.routes.fraction[SC_SCOPE_NODE] / (1 << 30);
    net.dim[0].latency_ns = m.hw->dim[0].latency_s / 2 * 1e9; /* of a link */
    sc_simulate_opts o;
    sc_simulate_opts_init(&o);
    o.links = !m.closed;
    o.hw = m.closed ? nullptr : m.hw;
    o.routes = m.routes;
    o.symmetry = false;
    sc_simulate_result r = {};
    if (sc_workload_check(&w, nullptr) ||
        sc_simulate(&w, &system, &net, &pool, &o, m.arena, &r, nullptr) ||
        r.n_finished != r.n_ranks)
        return 0;
    return sc_time_to_s(r.makespan);
}

} /* namespace */

double run_collective(const chunk_machine &m, sc_coll coll, uint64_t bytes)
{
    const uint32_t n = m.hw->n_devices;
    task_class all;
    all.add(SC_TASK_COLL, coll, bytes);
    sc_task_list classes[] = {all.list()};
    std::vector<sc_rank_trace> ranks(n);
    sc_rank_job job = {"all", 0, n};
    sc_workload w = {};
    w.n_ranks = n;
    w.n_classes = w.n_jobs = 1;
    w.classes = classes;
    w.ranks = ranks.data();
    w.jobs = &job;
    return simulate(w, m);
}

double run_incast(const chunk_machine &m, uint64_t bytes)
{
    const uint32_t n = m.hw->n_devices, tag = 0, target = 0;
    task_class receiver, sender;
    std::vector<uint32_t> senders;
    sender.add(SC_TASK_SEND, SC_ALL_REDUCE, bytes);
    for (uint32_t i = 1; i < n; i++) {
        receiver.add(SC_TASK_RECV, SC_ALL_REDUCE, bytes);
        senders.push_back(i);
    }
    sc_task_list classes[] = {receiver.list(), sender.list()};
    std::vector<sc_rank_trace> ranks(n, {1, 0, nullptr, &target, &tag});
    ranks[0] = {0, 0, nullptr, senders.data(), &tag};
    sc_rank_job job = {"incast", 0, n};
    sc_workload w = {};
    w.n_ranks = n;
    w.n_classes = 2;
    w.n_jobs = 1;
    w.classes = classes;
    w.ranks = ranks.data();
    w.jobs = &job;
    return simulate(w, m);
}
