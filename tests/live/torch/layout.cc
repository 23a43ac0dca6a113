// SPDX-License-Identifier: Apache-2.0
// abi.h against the headers of libgloo-dev: compiled, never run.

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

// The classes' fields are protected.
#define protected public
#define private public
#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>
#undef protected
#undef private

#define _Static_assert static_assert
namespace c {
#include "abi.h"
}

#define SIZE(ours, theirs) static_assert(sizeof(c::ours) == sizeof(theirs), #ours)
#define SAME(ours, a, theirs, b)                                               \
    static_assert(offsetof(c::ours, a) == offsetof(theirs, b), #ours "." #a)

using gloo::detail::AllreduceOptionsImpl;

SIZE(gloo_context, gloo::Context);
SAME(gloo_context, rank, gloo::Context, rank);
SAME(gloo_context, size, gloo::Context, size);
SAME(gloo_context, device, gloo::Context, device_);
SAME(gloo_context, transport, gloo::Context, transportContext_);
SAME(gloo_context, timeout, gloo::Context, timeout_);

SIZE(gloo_buffer, gloo::transport::UnboundBuffer);
SAME(gloo_buffer, ptr, gloo::transport::UnboundBuffer, ptr);
SAME(gloo_buffer, size, gloo::transport::UnboundBuffer, size);

SIZE(gloo_allreduce_opts, gloo::AllreduceOptions);
SAME(gloo_allreduce_opts, timeout, AllreduceOptionsImpl, timeout);
SAME(gloo_allreduce_opts, in, AllreduceOptionsImpl, in);
SAME(gloo_allreduce_opts, out, AllreduceOptionsImpl, out);
SAME(gloo_allreduce_opts, elements, AllreduceOptionsImpl, elements);
SAME(gloo_allreduce_opts, element_size, AllreduceOptionsImpl, elementSize);
SAME(gloo_allreduce_opts, reduce, AllreduceOptionsImpl, reduce);

SIZE(gloo_broadcast_opts, gloo::BroadcastOptions);
SAME(gloo_broadcast_opts, in, gloo::BroadcastOptions, in);
SAME(gloo_broadcast_opts, out, gloo::BroadcastOptions, out);
SAME(gloo_broadcast_opts, elements, gloo::BroadcastOptions, elements);
SAME(gloo_broadcast_opts, element_size, gloo::BroadcastOptions, elementSize);
SAME(gloo_broadcast_opts, root, gloo::BroadcastOptions, root);
SAME(gloo_broadcast_opts, timeout, gloo::BroadcastOptions, timeout);

SIZE(gloo_allgather_opts, gloo::AllgatherOptions);
SAME(gloo_allgather_opts, in, gloo::AllgatherOptions, in);
SAME(gloo_allgather_opts, out, gloo::AllgatherOptions, out);
SAME(gloo_allgather_opts, element_size, gloo::AllgatherOptions, elementSize);
SAME(gloo_allgather_opts, timeout, gloo::AllgatherOptions, timeout);

SIZE(gloo_allgather_opts, gloo::AlltoallOptions);
SAME(gloo_allgather_opts, in, gloo::AlltoallOptions, in);
SAME(gloo_allgather_opts, out, gloo::AlltoallOptions, out);
SAME(gloo_allgather_opts, timeout, gloo::AlltoallOptions, timeout);

SIZE(gloo_allgatherv_opts, gloo::AllgathervOptions);
SAME(gloo_allgatherv_opts, elements, gloo::AllgathervOptions, elements);
SAME(gloo_allgatherv_opts, element_size, gloo::AllgathervOptions, elementSize);
SAME(gloo_allgatherv_opts, timeout, gloo::AllgathervOptions, timeout);

SIZE(gloo_gather_opts, gloo::GatherOptions);
SAME(gloo_gather_opts, root, gloo::GatherOptions, root);
SAME(gloo_gather_opts, timeout, gloo::GatherOptions, timeout);

SIZE(gloo_reduce_opts, gloo::ReduceOptions);
SAME(gloo_reduce_opts, elements, gloo::ReduceOptions, elements);
SAME(gloo_reduce_opts, root, gloo::ReduceOptions, root);
SAME(gloo_reduce_opts, reduce, gloo::ReduceOptions, reduce);
SAME(gloo_reduce_opts, timeout, gloo::ReduceOptions, timeout);

SIZE(gloo_scatter_opts, gloo::ScatterOptions);
SAME(gloo_scatter_opts, in, gloo::ScatterOptions, in);
SAME(gloo_scatter_opts, out, gloo::ScatterOptions, out);
SAME(gloo_scatter_opts, root, gloo::ScatterOptions, root);
SAME(gloo_scatter_opts, timeout, gloo::ScatterOptions, timeout);

SIZE(gloo_alltoallv_opts, gloo::AlltoallvOptions);
SAME(gloo_alltoallv_opts, in_offset, gloo::AlltoallvOptions, inOffsetPerRank);
SAME(gloo_alltoallv_opts, in_length, gloo::AlltoallvOptions, inLengthPerRank);
SAME(gloo_alltoallv_opts, out_offset, gloo::AlltoallvOptions, outOffsetPerRank);
SAME(gloo_alltoallv_opts, out_length, gloo::AlltoallvOptions, outLengthPerRank);
SAME(gloo_alltoallv_opts, timeout, gloo::AlltoallvOptions, timeout);

SIZE(gloo_barrier_opts, gloo::BarrierOptions);
SAME(gloo_barrier_opts, buffer, gloo::BarrierOptions, buffer);
SAME(gloo_barrier_opts, timeout, gloo::BarrierOptions, timeout);

SIZE(cxx_function, std::function<void(void *, const void *, const void *, size_t)>);
SIZE(cxx_vector, std::vector<char>);
SIZE(cxx_shared, std::shared_ptr<int>);
