/* SPDX-License-Identifier: Apache-2.0 */
/* pieces.c - collects pieces of data for one kernel (kernels.h). */
#include "nccl/call.h"

#include <string.h>

/* Blocks of a kernel that only writes data. */
static uint32_t useful_blocks(const pieces *p)
{
    uint64_t most = 1;
    for (uint32_t i = 0; i < p->op.n; i++) {
        const kernel_fill *f = &p->op.fill[i];
        uint64_t units = f->copies ? f->n / 16 : f->n;
        uint64_t b = (units + KERNEL_THREADS - 1) / KERNEL_THREADS;
        if (b > most) most = b;
    }
    return (uint32_t)(most < p->g->sms ? most : p->g->sms);
}

static CUresult launch(pieces *p, uint32_t flags)
{
    uint32_t blocks = flags & OP_WAIT ? p->blocks
                      : p->op.n       ? useful_blocks(p)
                                      : 1;
    bool captured = p->op.count != 0;
    p->op.flags = flags;
    CUresult rc = gpu_op(p->g, p->typed ? p->type : NCCL_FLOAT32, blocks,
                         p->stream, &p->op);
    p->op.n = 0;
    p->typed = false;
    if (rc || !(flags & OP_MARK)) return rc;
    /* A later launch of a replay takes the generation from the slot. */
    p->begun = true;
    if (captured) p->op.gen = 0;
    p->op.count = 0;
    return 0;
}

CUresult pieces_flush(pieces *p)
{
    bool marks = p->waits && !p->begun;
    return marks || p->op.n ? launch(p, marks ? OP_MARK : 0) : 0;
}

CUresult pieces_end(pieces *p)
{
    if (!p->waits) return pieces_flush(p);
    return launch(p, p->begun ? OP_WAIT : OP_MARK | OP_WAIT);
}

static CUresult add(pieces *p, const kernel_fill *f)
{
    CUresult rc = p->op.n == KERNEL_FILLS ? pieces_flush(p) : 0;
    if (!rc) p->op.fill[p->op.n++] = *f;
    return rc;
}

CUresult pieces_scale(pieces *p, ncclDataType_t type, const kernel_fill *f)
{
    bool other = p->typed && p->g->op[p->type] != p->g->op[type];
    CUresult rc = other ? pieces_flush(p) : 0;
    if (!rc) rc = add(p, f);
    p->typed = true;
    p->type = type;
    return rc;
}

/* By the driver, where there are no kernels. */
static CUresult copy_now(const pieces *p, CUdeviceptr to, CUdeviceptr from,
                         size_t bytes, uint32_t n)
{
    const driver *d = p->g->d;
    CUresult rc = from ? 0 : d->set(to, 0, bytes * n, p->stream);
    for (uint32_t i = 0; from && i < n && !rc; i++, to += bytes)
        if (to != from) rc = d->copy(to, from, bytes, p->stream);
    return rc;
}

CUresult pieces_copy(pieces *p, CUdeviceptr to, CUdeviceptr from, size_t bytes,
                     uint32_t n)
{
    if (!bytes || (n == 1 && to == from)) return 0;
    if (!p->g->kernels) return copy_now(p, to, from, bytes, n);
    return add(p,
               &(kernel_fill){.dst = to, .src = from, .n = bytes, .copies = n});
}
