/* SPDX-License-Identifier: Apache-2.0 */
/* profiled_names.c - what names of calls and of kernels tell. */
#include "trace/profiled.h"

#include <string.h>

const char *const sc_trace_span_kind_names[] = {
    "operator", "annotation", "step", "call",   "wait",
    "kernel",   "collective", "copy", "memset", NULL};

/* "cuda", "hip", "cu" and the like are followed by what a call does. */
static const char *verb(const char *name)
{
    static const char *const prefixes[] = {"cuda", "hip", "musa", "cu"};
    for (size_t i = 0; i < SC_COUNT(prefixes); i++) {
        size_t n = strlen(prefixes[i]);
        if (strncmp(name, prefixes[i], n) == 0 && name[n] >= 'A' &&
            name[n] <= 'Z')
            return name + n;
    }
    return name;
}

sc_call_kind profiled_call_kind(const char *name)
{
    static const struct {
        const char *prefix;
        sc_call_kind kind;
    } calls[] = {
        {"StreamSynchronize", SC_CALL_STREAM_SYNC},
        {"DeviceSynchronize", SC_CALL_DEVICE_SYNC},
        {"CtxSynchronize", SC_CALL_DEVICE_SYNC},
        {"ThreadSynchronize", SC_CALL_DEVICE_SYNC},
        {"FreeHost", SC_CALL_OTHER},
        {"FreeAsync", SC_CALL_OTHER},
        {"FreeArray", SC_CALL_OTHER},
        {"Free", SC_CALL_DEVICE_SYNC}, /* waits for all work */
        {"MemFree", SC_CALL_DEVICE_SYNC},
        {"EventSynchronize", SC_CALL_EVENT_SYNC},
        {"EventRecord", SC_CALL_RECORD},
        {"StreamWaitEvent", SC_CALL_STREAM_WAIT},
        {"GraphLaunch", SC_CALL_GRAPH_LAUNCH},
        {"Memcpy", SC_CALL_COPY},
    };

    const char *v = verb(name);
    for (size_t i = 0; i < SC_COUNT(calls); i++)
        if (strncmp(v, calls[i].prefix, strlen(calls[i].prefix)) == 0)
            return calls[i].kind;
    return SC_CALL_OTHER;
}

bool profiled_is_coll_kernel(const char *name)
{
    return strncmp(name, "nccl", 4) == 0 || strncmp(name, "rccl", 4) == 0 ||
           strncmp(name, "oneccl", 6) == 0 || strstr(name, "nvshmem") ||
           strstr(name, "deep_ep::");
}

sc_coll profiled_coll_of_kernel(const char *name)
{
    static const struct {
        const char *word;
        sc_coll coll;
    } words[] = {
        {"AllReduce", SC_ALL_REDUCE},
        {"AllGather", SC_ALL_GATHER},
        {"ReduceScatter", SC_REDUCE_SCATTER},
        {"AllToAll", SC_ALL_TO_ALL},
        {"SendRecv", SC_SENDRECV},
        {"Broadcast", SC_BROADCAST},
        {"Reduce", SC_REDUCE},
        {"allreduce", SC_ALL_REDUCE},
        {"allgather", SC_ALL_GATHER},
        {"alltoall", SC_ALL_TO_ALL},
        {"dispatch", SC_ALL_TO_ALL}, /* of experts, by DeepEP */
        {"combine", SC_ALL_TO_ALL},
        {"barrier", SC_BARRIER},
    };

    for (size_t i = 0; i < SC_COUNT(words); i++)
        if (strstr(name, words[i].word)) return words[i].coll;
    return SC_N_COLLS;
}
