/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest.c - functions that need no state, and functions without an
 * implementation.
 */
#include "nccl/comm.h"

NCCL_API(const char *, ncclGetErrorString, ncclResult_t rc)
{
    switch (rc) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError:
        return "unhandled cuda error (see ncclGetLastError())";
    case ncclSystemError:
        return "unhandled system error (see ncclGetLastError())";
    case ncclInternalError: return "internal error";
    case ncclInvalidArgument:
        return "invalid argument (see ncclGetLastError())";
    case ncclInvalidUsage: return "invalid usage (see ncclGetLastError())";
    case ncclRemoteError: return "remote error";
    case ncclInProgress: return "operation in progress";
    case ncclTimeout: return "timeout";
    }
    return "unknown result code";
}

/* Settings of another implementation. */
NCCL_API(void, ncclResetDebugInit, void) {}

NCCL_API(void, ncclParamDumpAll, void) {}

/* ---- teams, of which the device functions would need more ---------------------------- */

NCCL_API(ncclTeam_t, ncclTeamWorld, ncclComm_t comm)
{
    return comm ? (ncclTeam_t){(int)comm->n, (int)comm->rank, 1}
                : (ncclTeam_t){0, 0, 0};
}

/* The memory of peers can't be reached. */
NCCL_API(ncclTeam_t, ncclTeamLsa, ncclComm_t comm)
{
    (void)comm;
    return (ncclTeam_t){1, 0, 1};
}

NCCL_API(ncclTeam_t, ncclTeamRail, ncclComm_t comm)
{
    return ncclTeamWorld(comm);
}

NCCL_API(int, ncclTeamRankToWorld, ncclComm_t comm, ncclTeam_t team, int rank)
{
    return (comm ? (int)comm->rank : 0) + (rank - team.rank) * team.stride;
}

NCCL_API(int, ncclTeamRankToLsa, ncclComm_t comm, ncclTeam_t team, int rank)
{
    (void)comm;
    return rank - team.rank;
}

NCCL_API(int, ncclLLA2ACalcSlots, int elements, int size)
{
    /* 8 bytes of data per slot of 16. */
    return elements > 0 && size > 0 ? elements * ((size + 7) / 8) : 0;
}

/* ---- not there ------------------------------------------------------------------------ */

#define MISSING(name)                                            \
    NCCL_API(ncclResult_t, name, void)                           \
    {                                                            \
        return comm_fail(ncclInvalidUsage,                       \
                         #name " is not part of the emulation"); \
    }

MISSING(ncclCommGetUniqueId)
MISSING(ncclCommGrow)
MISSING(ncclPutSignal)
MISSING(ncclSignal)
MISSING(ncclWaitSignal)
MISSING(ncclCommQueryProperties)
MISSING(ncclDevCommCreate)
MISSING(ncclDevCommDestroy)
MISSING(ncclGetLsaMultimemDevicePointer)
MISSING(ncclGetMultimemDevicePointer)
MISSING(ncclGetLsaDevicePointer)
MISSING(ncclGetPeerDevicePointer)
MISSING(ncclLsaBarrierCreateRequirement)
MISSING(ncclGinBarrierCreateRequirement)
MISSING(ncclGinInboxA2ACreateRequirement)
MISSING(ncclGinOutboxCreateRequirement)
MISSING(ncclLLA2ACreateRequirement)
MISSING(ncclParamBind)
MISSING(ncclParamGetI8)
MISSING(ncclParamGetI16)
MISSING(ncclParamGetI32)
MISSING(ncclParamGetI64)
MISSING(ncclParamGetU8)
MISSING(ncclParamGetU16)
MISSING(ncclParamGetU32)
MISSING(ncclParamGetU64)
MISSING(ncclParamGetStr)
MISSING(ncclParamGet)
MISSING(ncclParamGetParameter)
MISSING(ncclParamGetAllParameterKeys)
