/* SPDX-License-Identifier: Apache-2.0 */
/* library.c - reads the collective library of a cluster: version, options,
 * topology file. */
#include "hw/build.h"
#include "hw/hw_arch.h"
#include "hw/hw_memo.h"
#include "hw/hw_nccl_graph.h"
#include "hw/hw_wiring.h"

#include <string.h>

/* PXN exists from NCCL 2.12 on, and the tables of 2.10 hold until 2.11. */
enum { NEXT_TABLE_MINOR = 12 };

bool sc_nccl_version(const char *text, const char *arch, sc_nccl *out)
{
    unsigned part[2] = {0, 0};
    bool old = sc_arch_of(arch)->in_nccl_2_10;
    *out = old ? SC_NCCL_2_10_3 : SC_NCCL_2_30_7;
    if (text == NULL) return true;
    const char *s = text;
    for (int i = 0; i < 2; i++) {
        if (*s < '0' || *s > '9') return false;
        for (; *s >= '0' && *s <= '9' && part[i] < 1000; s++)
            part[i] = part[i] * 10 + (unsigned)(*s - '0');
        if (i == 0 && *s++ != '.') return false;
    }
    for (; *s != '\0'; s++)
        if (*s != '.' && (*s < '0' || *s > '9')) return false;
    bool before = part[0] < 2 || (part[0] == 2 && part[1] < NEXT_TABLE_MINOR);
    *out = before && old ? SC_NCCL_2_10_3 : SC_NCCL_2_30_7;
    return true;
}

static sc_status read_version(const hw_spec *s, sc_hw *hw, sc_err *err)
{
    sc_nccl version;
    if (!sc_nccl_version(s->nccl, hw->device->arch, &version))
        return sc_error(err, SC_EINPUT, SC_C_TYPE, hw_spec_pos(s, "nccl"),
                        "write a release like 2.18 or 2.21.5",
                        "\"%.40s\" is not a release of NCCL", s->nccl);
    hw->nccl = (int)version;
    hw->nccl_assumed = s->nccl == NULL;
    return SC_OK;
}

static sc_status check_channels(const hw_spec *s, sc_err *err)
{
    if (s->nccl_max_channels == 0 ||
        s->nccl_min_channels <= s->nccl_max_channels)
        return SC_OK;
    return sc_error(
        err, SC_EINPUT, SC_C_CONFLICT, hw_spec_pos(s, "nccl_min_nchannels"),
        NULL, "at least %lld channels, but at most %lld",
        (long long)s->nccl_min_channels, (long long)s->nccl_max_channels);
}

static bool any_option(const hw_spec *s)
{
    return s->nccl_algo != NULL || s->nccl_proto != NULL ||
           s->nccl_min_channels > 0 || s->nccl_max_channels > 0 ||
           s->nccl_cross_nic >= 0 || s->nccl_pxn_disable || s->sharp;
}

static sc_status read_options(const hw_spec *s, sc_hw *hw, sc_arena *a,
                              sc_err *err)
{
    SC_TRY(check_channels(s, err));
    if (!any_option(s)) return SC_OK;
    sc_nccl_options *o = SC_NEW(a, sc_nccl_options);
    if (o == NULL) return sc_error_nomem(err);
    *o = (sc_nccl_options){.algo = s->nccl_algo,
                           .proto = s->nccl_proto,
                           .min_channels = (uint32_t)s->nccl_min_channels,
                           .max_channels = (uint32_t)s->nccl_max_channels,
                           .cross_nic = s->nccl_cross_nic < 0
                                            ? 0
                                            : (uint32_t)s->nccl_cross_nic + 1,
                           .pxn_disable = s->nccl_pxn_disable,
                           .collnet = s->sharp,
                           .algo_pos = hw_spec_pos(s, "nccl_algo"),
                           .proto_pos = hw_spec_pos(s, "nccl_proto")};
    hw->nccl_options = o;
    return SC_OK;
}

/* A path in a file is relative to the folder of that file, unless it is
 * absolute. */
static const char *beside(const char *path, sc_pos pos, sc_arena *a)
{
    const char *file = pos.file != NULL ? pos.file : "";
    const char *slash = strrchr(file, '/');
    if (path[0] == '/' || slash == NULL) return path;
    return sc_sprintf(a, "%.*s/%s", (int)(slash - file), file, path);
}

typedef struct named_file {
    const char *path;
    char *text;
    size_t len;
} named_file;

/* Reads the file that a key names, of at most `mib` MiB. */
static sc_status read_beside(const char *path, sc_pos pos, size_t mib,
                             sc_arena *a, named_file *out, sc_err *err)
{
    out->path = beside(path, pos, a);
    if (out->path == NULL) return sc_error_nomem(err);
    return sc_file_read(out->path, mib << 20, a, &out->text, &out->len, err);
}

static sc_status read_wiring(const hw_spec *s, sc_hw *hw, sc_arena *a,
                             sc_err *err)
{
    named_file f;
    if (s->wiring == NULL) return SC_OK;
    sc_pos pos = hw_spec_pos(s, "wiring");
    SC_TRY(read_beside(s->wiring, pos, 64, a, &f, err));
    SC_TRY(sc_wiring_read(f.text, f.len, f.path, a, &hw->wiring, err));
    hw->hash = sc_hash(&hw->wiring->hash, sizeof hw->hash, hw->hash);
    if (hw->wiring->n_devices == hw->n_devices) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, pos,
                    "the file describes the whole cluster",
                    "the wiring has %u devices, the cluster %u",
                    hw->wiring->n_devices, hw->n_devices);
}

static sc_status read_topology(const hw_spec *s, sc_hw *hw, sc_arena *a,
                               sc_err *err)
{
    named_file f;
    if (s->topology == NULL) return SC_OK;
    sc_pos pos = hw_spec_pos(s, "topology");
    SC_TRY(read_beside(s->topology, pos, 16, a, &f, err));
    SC_TRY(sc_topo_read_any(f.text, f.len, f.path, hw, a, &hw->topo, err));
    uint32_t n = hw->topo->n[SC_TOPO_GPU];
    if (n == hw->node_size) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, pos,
                    "name the node that the file describes",
                    "the topology has %u GPUs, a node %u", n, hw->node_size);
}

static uint64_t hash_text(const char *text, uint64_t h)
{
    return text == NULL ? h : sc_hash(text, strlen(text) + 1, h);
}

/* Options that are not set leave the hash unchanged. */
static void hash_library(const hw_spec *s, sc_hw *hw)
{
    sc_nccl usual;
    sc_nccl_version(NULL, hw->device->arch, &usual);
    if (hw->nccl != (int)usual)
        hw->hash = sc_hash(&hw->nccl, sizeof hw->nccl, hw->hash);
    if (any_option(s)) {
        int64_t number[] = {s->nccl_min_channels, s->nccl_max_channels,
                            s->nccl_cross_nic, s->nccl_pxn_disable, s->sharp};
        hw->hash = sc_hash(number, sizeof number, hw->hash);
        hw->hash = hash_text(s->nccl_algo, hash_text("algo", hw->hash));
        hw->hash = hash_text(s->nccl_proto, hash_text("proto", hw->hash));
    }
    hw->hash = hash_text(s->topology, hw->hash);
}

sc_status hw_library(const hw_spec *s, sc_hw *hw, sc_arena *a, sc_err *err)
{
    SC_TRY(read_version(s, hw, err));
    SC_TRY(read_options(s, hw, a, err));
    SC_TRY(read_topology(s, hw, a, err));
    SC_TRY(read_wiring(s, hw, a, err));
    hw->memo = hw_memo_new(a);
    if (hw->memo == NULL) return sc_error_nomem(err);
    hash_library(s, hw);
    return SC_OK;
}
