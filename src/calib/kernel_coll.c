/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_coll.c - rows of tables of collectives and of token dispatch. */
#include "calib/kernel_reader.h"
#include "calib/network.h"
#include "cost/cost_alone.h"
#include "hw/hw_arch.h"

#include <math.h>
#include <string.h>

#define SMALL_BYTES 1048576.0 /* larger messages are judged apart */

/* Ranks are assumed to be part of a usual node of eight devices. */
#define USUAL_NODE 8

static bool starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static int collective(const char *name)
{
    if (strcmp(name, "alltoall") == 0) return SC_ALL_TO_ALL;
    if (strcmp(name, "send_recv") == 0) return SC_SENDRECV;
    sc_coll coll = sc_coll_find(name);
    return coll == SC_N_COLLS || sc_coll_priced(coll) != coll ? -1 : (int)coll;
}

static void set_coll(kernel_reader *rd, calib_kernel_row *r, const sc_hw *hw,
                     calib_kernel_coll c, uint32_t ranks, uint32_t nodes)
{
    calib_kernel_coll *out = SC_NEW(rd->a, calib_kernel_coll);
    if (!out) {
        kernel_fail(rd, sc_error_nomem(rd->err));
        return;
    }
    *out = c;
    out->hw = hw;
    out->at = network_place(hw, ranks, nodes);
    r->coll = out;
}

/* ---- collectives --------------------------------------------------------- */

static const char *coll_label(kernel_reader *rd, const char *library,
                              const char *operation, double bytes)
{
    bool custom = strstr(library, "custom") != NULL;
    return sc_sprintf(rd->a, "%s %s%s", custom ? "custom" : library, operation,
                      bytes <= SMALL_BYTES ? " to 1 MiB" : "");
}

void kernel_read_comm(kernel_reader *rd)
{
    uint32_t gpus = (uint32_t)kernel_whole(rd, K_GPUS);
    double bytes = kernel_number(rd, K_BYTES);
    double s = kernel_number(rd, K_SECONDS);
    const char *library = kernel_text(rd, K_LIBRARY);
    const char *operation = kernel_text(rd, K_OPERATION);
    if (rd->bad) return;
    calib_kernel_row *r =
        kernel_row(rd, kernel_text(rd, K_DEVICE),
                   coll_label(rd, library, operation, bytes), NULL);
    if (!r) return;
    int coll = collective(operation);
    r->seconds = s;
    r->software = library;
    if (coll < 0 || gpus < 2) {
        r->reason = "this version has no such collective";
        return;
    }
    if (strcmp(library, "nccl") != 0)
        kernel_warn(r, "a collective of another library; priced as NCCL's");
    uint32_t size = gpus < USUAL_NODE ? USUAL_NODE : gpus;
    const sc_hw *hw = kernel_machine(rd, r, NULL, 1, size);
    if (!hw) return;
    set_coll(rd, r, hw,
             (calib_kernel_coll){.coll = (sc_coll)coll, .bytes = bytes}, gpus,
             1);
}

/* ---- token dispatch ------------------------------------------------------ */

typedef struct dispatch {
    uint32_t nodes, gpus;
    double tokens, hidden, topk, experts, seconds;
} dispatch;

static dispatch read_dispatch(kernel_reader *rd)
{
    dispatch d = {
        .nodes = (uint32_t)kernel_optional(rd, K_NODES, 1),
        .gpus = (uint32_t)kernel_whole(rd, K_GPUS),
        .tokens = (double)kernel_whole(rd, K_TOKENS),
        .hidden = (double)kernel_whole(rd, K_HIDDEN),
        .topk = (double)kernel_whole(rd, K_TOPK),
        .experts = (double)kernel_whole(rd, K_EXPERTS),
        .seconds = kernel_number(rd, K_SECONDS),
    };
    return d;
}

/* DeepEP dispatches fp8 with a scale of four bytes per 128 values on Hopper
 * (README.md of the table); everything else is bf16. */
static double value_bytes(const calib_kernel_row *r, bool combine)
{
    bool hopper = sc_arch_of(r->device->arch)->fit == SC_FIT_HOPPER;
    return !combine && hopper && starts(r->software, "deepep") ? 1 + 4.0 / 128
                                                               : 2;
}

void kernel_read_deepep(kernel_reader *rd)
{
    dispatch d = read_dispatch(rd);
    const char *library = kernel_text(rd, K_LIBRARY);
    const char *operation = kernel_text(rd, K_OPERATION);
    if (rd->bad) return;
    calib_kernel_row *r =
        kernel_row(rd, kernel_text(rd, K_DEVICE),
                   sc_sprintf(rd->a, "%s %s%s", library, operation,
                              d.nodes > 1 ? " over nodes" : ""),
                   NULL);
    if (!r) return;
    bool combine = strstr(operation, "combine") != NULL;
    bool dedup = strstr(library, "low-latency") == NULL;
    r->seconds = d.seconds;
    r->software = library;
    double e = value_bytes(r, combine);
    r->dtype = e < 2 ? "fp8" : "bf16";
    if (d.gpus < 2 || d.gpus % d.nodes) {
        r->reason = "no group of equal nodes";
        return;
    }
    uint32_t per_node = d.gpus / d.nodes;
    uint32_t size =
        per_node < USUAL_NODE && d.nodes == 1 ? USUAL_NODE : per_node;
    const sc_hw *hw = kernel_machine(rd, r, NULL, d.nodes, size);
    if (!hw) return;
    double copies = d.topk;
    if (dedup)
        copies *=
            sc_cost_dispatch_copies(d.nodes > 1 ? d.nodes : d.gpus, d.topk);
    calib_kernel_coll c = {.coll = SC_ALL_TO_ALL,
                           .bytes = d.tokens * copies * d.hidden * e,
                           .hidden = (uint32_t)d.hidden,
                           .dedup = dedup};
    c.sms = (uint32_t)kernel_optional(rd, K_SMS, 0);
    set_coll(rd, r, hw, c, d.gpus, d.nodes);
}

/* ---- Vidur --------------------------------------------------------------- */

/* A folder such as a100_pairwise_nvlink names the node too. */
static const sc_hw *vidur_machine(kernel_reader *rd, calib_kernel_row *r,
                                  uint32_t nodes, uint32_t per_node)
{
    const sc_hw *hw = kernel_machine(rd, r, rd->path_folder, nodes, per_node);
    if (hw && hw->node_size >= per_node) return hw;
    r->reason = NULL;
    uint32_t size = per_node < USUAL_NODE ? USUAL_NODE : per_node;
    return kernel_machine(rd, r, NULL, nodes, size);
}

void kernel_read_vidur_coll(kernel_reader *rd)
{
    const char *name = kernel_text(rd, K_COLLECTIVE);
    uint32_t ranks = (uint32_t)kernel_whole(rd, K_WORKERS);
    uint32_t each = (uint32_t)kernel_whole(rd, K_PER_NODE);
    double bytes = kernel_number(rd, K_SIZE);
    double s = 0;
    bool timed = kernel_vidur_seconds(rd, name, &s);
    const char *device = kernel_path_device(rd);
    if (rd->bad) return;
    calib_kernel_row *r =
        kernel_row(rd, device, coll_label(rd, "vidur", name, bytes), NULL);
    if (!r) return;
    int coll = collective(name);
    r->seconds = s;
    r->software = "vidur";
    r->dtype = "fp16";
    if (!timed || s <= 0) r->reason = "no measured time";
    if (coll < 0) r->reason = "this version has no such collective";
    if (ranks < 2 || ranks % each) r->reason = "no group of equal nodes";
    if (r->reason) return;
    const sc_hw *hw = vidur_machine(rd, r, ranks / each, each);
    if (!hw) return;
    set_coll(rd, r, hw,
             (calib_kernel_coll){.coll = (sc_coll)coll, .bytes = bytes}, ranks,
             ranks / each);
}

/* ---- prices -------------------------------------------------------------- */

/* Events on a stream around one launch from PyTorch: the host needs this long
 * for the smallest operators (medians 24 to 33 us on four hosts of NeuSight's
 * tables, 44 us on one), and larger kernels take this much longer than their
 * bytes (intercepts of 10 to 20 us). */
#define EAGER_LEAST 26e-6
#define EAGER_MORE  10e-6
/* A convolution of PyTorch looks up its algorithm and asks for workspace: the
 * smallest of NeuSight's take 60 to 110 us, and all of them 150 us more than
 * their kernels, by the median of five devices. */
#define EAGER_CONV 150e-6

/* The experts of SGLang behind DeepEP never take less than 295, 387 and 482 us
 * (B200, H100, GB200; moe.csv of data/aiconfigurator): the host is slower. */
#define PROGRAM_LEAST 387e-6

static double predict_coll(const calib_kernel_coll *k, const sc_cost *c)
{
    sc_coll_price p;
    if (sc_cost_coll(c, k->hw, k->coll, k->bytes, &k->at, -1, &p, NULL) !=
        SC_OK)
        return NAN;
    return k->hidden ? p.seconds * sc_cost_dispatch_factor(c, &k->at, k->dedup,
                                                           k->hidden)
                     : p.seconds;
}

/* What the host adds to a kernel in a row that it launched, and the least that
 * such a row takes, are those of the device's form. */
static double predict_alone(const calib_kernel_row *r, const sc_cost *c)
{
    double s = 0, more = EAGER_MORE, least = EAGER_LEAST;
    for (uint32_t i = 0; i < r->n_parts; i++) {
        const sc_kernel *k = &r->part[i];
        const sc_form *f = NULL;
        sc_form_use use;
        s += (r->times ? r->times[i] : 1) *
             sc_kernel_alone(c, r->device, k).seconds;
        if (k->kind == SC_K_CONV) more = EAGER_CONV;
        if (!sc_alone_use_of(c, r->device, k, &use, &f) || f->least <= 0)
            continue;
        more = f->host;
        least = f->least;
    }
    s += r->waits * EAGER_LEAST;
    return r->launch == CALIB_LAUNCH_EAGER ? fmax(least, s + more) : s;
}

double calib_kernel_predict(const calib_kernel_row *r, const sc_cost *c)
{
    double s = 0;
    if (r->coll) return predict_coll(r->coll, c);
    if (r->table == CALIB_T_OPERATOR || r->table == CALIB_T_LAYER ||
        r->table == CALIB_T_NETWORK)
        return predict_alone(r, c);
    for (uint32_t i = 0; i < r->n_parts; i++)
        s += sc_cost_kernel(c, r->device, &r->part[i]).seconds;
    return r->launch == CALIB_LAUNCH_PROGRAM ? fmax(PROGRAM_LEAST, s) : s;
}
