/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - the configuration files beside a workload. */
#include "trace/trace_machine.h"

#include <string.h>

typedef struct block {
    const char *name;
    sc_ccl_kind ccl, all_to_all;
    sc_net_dim dim;
} block;

/* The nominal links of a dimension, or those of an equally wide switch if it
 * has none. One hop through a switch is two links. */
static sc_net_dim links_of(const sc_dim *d)
{
    double ns = d->latency_s * 1e9;
    sc_net_dim x = {.kind = d->kind,
                    .size = d->size,
                    .gib_per_s = d->bw / SC_GIB,
                    .latency_ns = ns};
    switch (d->kind) {
    case SC_DIM_RING:
    case SC_DIM_MESH:
        if (d->kind == SC_DIM_MESH || d->size > 2) x.gib_per_s /= 2;
        return x;
    case SC_DIM_FULL: x.gib_per_s /= d->size - 1; return x;
    default: break;
    }
    x.kind = SC_DIM_SWITCH;
    x.latency_ns /= 2;
    return x;
}

/* A ring passes all-to-alls from neighbour to neighbour. */
static block block_of(const sc_dim *d, sc_text *notes)
{
    block b = {"Switch", SC_CCL_RING, SC_CCL_DIRECT, links_of(d)};
    switch (d->kind) {
    case SC_DIM_MESH:
        if (notes)
            sc_text_add(
                notes, "mesh of %u: written as a Ring, whose ends are joined\n",
                d->size);
        /* fall through */
    case SC_DIM_RING:
        b.name = "Ring";
        b.all_to_all = SC_CCL_RING;
        break;
    case SC_DIM_FULL: b.name = "FullyConnected"; break;
    case SC_DIM_TREE:
    case SC_DIM_CUBE:
        if (notes)
            sc_text_add(notes, "%s of %u: written as a Switch\n",
                        sc_dim_kind_names[d->kind], d->size);
        break;
    case SC_DIM_SWITCH: break;
    }
    if (d->oversub > 1 && notes)
        sc_text_add(
            notes,
            "oversubscription of %g between %u nodes: not in the files\n",
            d->oversub, d->size);
    return b;
}

/* A network between nodes: one rail per device, no tier that is narrower. */
static bool is_plain(const sc_hw *hw, const sc_dim *d)
{
    if (d->kind == SC_DIM_TREE || d->kind == SC_DIM_CUBE) return false;
    if (d->ports == 0) return true;
    return d->ports == hw->node_size && d->rails == d->ports && d->group == 0 &&
           !(d->oversub > 1) && !(d->core_oversub > 1);
}

bool sc_trace_machine_is_network(const sc_hw *hw)
{
    if (hw->wiring || hw->n_groups > 0) return false;
    for (uint32_t i = 0; i < hw->n_dims; i++)
        if (hw->dim[i].size > 1 && !is_plain(hw, &hw->dim[i])) return false;
    return true;
}

sc_status sc_trace_machine_network(const sc_hw *hw, sc_pos pos, sc_network *out,
                                   sc_err *err)
{
    sc_network net = {.n_ranks = 1, .pos = pos};
    for (uint32_t i = 0; i < hw->n_dims; i++) {
        if (hw->dim[i].size < 2) continue;
        net.dim[net.n_dims] = links_of(&hw->dim[i]);
        net.n_ranks *= net.dim[net.n_dims].size;
        net.dim[net.n_dims++].pos = pos;
    }
    if (net.n_dims == 0 || net.n_ranks != hw->n_devices)
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, pos, NULL,
                        "%u devices do not form a network of dimensions",
                        hw->n_devices);
    *out = net;
    return SC_OK;
}

/* The text of a file in the arena; `j` is freed. */
static sc_status json_file(const char *name, sc_json *j, sc_arena *a,
                           sc_trace_file *out, sc_err *err)
{
    *out =
        (sc_trace_file){name, j->failed ? NULL : sc_strndup(a, j->buf, j->len)};
    sc_json_free(j);
    return out->text ? SC_OK : sc_error_nomem(err);
}

static void algorithms(sc_json *j, const char *key, const sc_ccl_list *l)
{
    sc_json_key(j, key);
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < l->n; i++)
        sc_json_string(j, l->dim[i].kind == SC_CCL_RING ? "ring" : "direct");
    sc_json_end(j, ']');
}

void sc_trace_machine_system(const sc_trace_machine *m, sc_system *out,
                             sc_pool *pool)
{
    const sc_device *d = m->hw->device;
    double peak = d->peak[m->precision];
    /* Order, splits, chunks and delays of ASTRA-sim's own example systems. */
    sc_system s = {.order = SC_LIFO,
                   .order_given = true,
                   .local_bw_aware = true,
                   .active_chunks = 1,
                   .splits = 4,
                   .endpoint_delay_ns = 10,
                   .local_mem_bw = d->mem_bw,
                   .peak_flops = peak > 0 ? peak : d->vector_flops,
                   .local_reduction_delay_ns = 1,
                   .comm_slots = 1,
                   .compat_warnings = "",
                   .port_limit = true};
    for (uint32_t i = 0, n = 0; i < m->hw->n_dims; i++) {
        if (m->hw->dim[i].size < 2) continue;
        block b = block_of(&m->hw->dim[i], NULL);
        for (int op = 0; op < (int)SC_N_CCL_OPS; op++) {
            s.ccl[op].dim[n].kind = op == SC_ALL_TO_ALL ? b.all_to_all : b.ccl;
            s.ccl[op].n = n + 1;
        }
        n++;
    }
    if (m->at_once > 0) {
        s.splits = s.ccl[SC_ALL_REDUCE].n > 1 ? s.splits : 1;
        s.active_chunks = m->at_once;
        s.endpoint_delay_ns = 0;
    }
    *out = s;
    *pool = (sc_pool){.kind = SC_POOL_NONE};
    if (m->remote_bw > 0)
        *pool = (sc_pool){.kind = SC_POOL_PER_NPU,
                          .latency_ns = m->remote_latency_s * 1e9,
                          .bytes_per_ns = m->remote_bw / 1e9};
}

static sc_status system_file(const sc_system *s, sc_arena *a,
                             sc_trace_file *out, sc_err *err)
{
    sc_json j;
    sc_json_init(&j, true);
    sc_json_begin(&j, '{');
    sc_json_put_string(&j, "scheduling-policy", "LIFO");
    sc_json_put_uint(&j, "endpoint-delay", (uint64_t)s->endpoint_delay_ns);
    sc_json_put_uint(&j, "active-chunks-per-dimension", s->active_chunks);
    sc_json_put_uint(&j, "preferred-dataset-splits", s->splits);
    algorithms(&j, "all-reduce-implementation", &s->ccl[SC_ALL_REDUCE]);
    algorithms(&j, "all-gather-implementation", &s->ccl[SC_ALL_GATHER]);
    algorithms(&j, "reduce-scatter-implementation", &s->ccl[SC_REDUCE_SCATTER]);
    algorithms(&j, "all-to-all-implementation", &s->ccl[SC_ALL_TO_ALL]);
    sc_json_put_string(&j, "collective-optimization", "localBWAware");
    sc_json_put_double(&j, "local-mem-bw", s->local_mem_bw / 1e9);
    sc_json_put_double(&j, "peak-perf", s->peak_flops / 1e12);
    sc_json_put_uint(&j, "roofline-enabled", s->roofline);
    sc_json_end(&j, '}');
    return json_file("system.json", &j, a, out, err);
}

static sc_status memory_file(const sc_pool *pool, sc_arena *a,
                             sc_trace_file *out, sc_err *err)
{
    sc_json j;
    sc_json_init(&j, true);
    sc_json_begin(&j, '{');
    if (pool->kind == SC_POOL_PER_NPU) {
        sc_json_put_string(&j, "memory-type", "PER_NPU_MEMORY_EXPANSION");
        sc_json_put_double(&j, "remote-mem-latency", pool->latency_ns);
        sc_json_put_double(&j, "remote-mem-bw", pool->bytes_per_ns);
    } else {
        sc_json_put_string(&j, "memory-type", "NO_MEMORY_EXPANSION");
    }
    sc_json_end(&j, '}');
    return json_file("memory.json", &j, a, out, err);
}

static sc_status network_file(const sc_hw *hw, const block *b, uint32_t n,
                              sc_arena *a, sc_trace_file *out, sc_err *err)
{
    sc_text t;
    sc_text_init(&t);
    sc_text_add(&t, "# %s\ntopology: [ ", hw->name);
    for (uint32_t i = 0; i < n; i++)
        sc_text_add(&t, "%s%s", i ? ", " : "", b[i].name);
    sc_text_add(&t, " ]\nnpus_count: [ ");
    for (uint32_t i = 0; i < n; i++)
        sc_text_add(&t, "%s%u", i ? ", " : "", b[i].dim.size);
    sc_text_add(&t, " ]\nbandwidth: [ ");
    for (uint32_t i = 0; i < n; i++)
        sc_text_add(&t, "%s%.9g", i ? ", " : "", b[i].dim.gib_per_s);
    sc_text_add(&t, " ] # of a link in one direction; GB/s of 2^30 bytes\n"
                    "latency: [ ");
    for (uint32_t i = 0; i < n; i++)
        sc_text_add(&t, "%s%.9g", i ? ", " : "", b[i].dim.latency_ns);
    sc_text_add(&t, " ] # of a link, ns\n");
    *out =
        (sc_trace_file){"network.yml", t.failed ? NULL : sc_strdup(a, t.buf)};
    sc_text_free(&t);
    return out->text ? SC_OK : sc_error_nomem(err);
}

sc_status sc_trace_machine_files(const sc_trace_machine *m, sc_arena *a,
                                 sc_trace_file out[SC_TRACE_MACHINE_FILES],
                                 sc_text *notes, sc_err *err)
{
    block b[SC_HW_DIMS];
    sc_system system;
    sc_pool pool;
    uint32_t n = 0, ranks = 1;
    for (uint32_t i = 0; i < m->hw->n_dims; i++) {
        if (m->hw->dim[i].size < 2) continue;
        b[n] = block_of(&m->hw->dim[i], notes);
        ranks *= b[n++].dim.size;
    }
    if (n == 0 || ranks != m->hw->n_devices)
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_none(), NULL,
                        "no network file describes %u devices as %u dimensions "
                        "of %u",
                        m->hw->n_devices, n, ranks);
    sc_trace_machine_system(m, &system, &pool);
    SC_TRY(system_file(&system, a, &out[0], err));
    SC_TRY(network_file(m->hw, b, n, a, &out[1], err));
    return memory_file(&pool, a, &out[2], err);
}

sc_status sc_trace_machine_write(const sc_trace_machine *m, const char *dir,
                                 sc_arena *a, sc_text *notes, sc_err *err)
{
    sc_trace_file f[SC_TRACE_MACHINE_FILES];
    SC_TRY(sc_trace_machine_files(m, a, f, notes, err));
    for (size_t i = 0; i < SC_COUNT(f); i++) {
        const char *path = sc_sprintf(a, "%s/%s", dir, f[i].name);
        if (!path) return sc_error_nomem(err);
        SC_TRY(sc_file_write(path, f[i].text, strlen(f[i].text), err));
    }
    return SC_OK;
}
