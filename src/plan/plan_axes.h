/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_axes.h - the axes whose names have a meaning: those of a run's mesh, and
 * further ones that a strategy's mesh may have.  Their names are
 * compared only where a mesh is read.
 */
#ifndef SC_PLAN_AXES_H
#define SC_PLAN_AXES_H

/* Mesh axes: rank = tp + TP * (cp + CP * (ep + EP * (dp + DP * (rep + REP *
 * pp)))).  Expert parallelism and replicas of sharded groups (HSDP) are part
 * of data parallelism: the usual DP degree is REP times DP times EP. */
typedef enum sc_axis {
    SC_AX_PP,
    SC_AX_DP,
    SC_AX_EP,
    SC_AX_CP,
    SC_AX_TP,
    SC_AX_REP, /* replicas of groups that shard weights; size 0 means 1 */
    SC_N_AX,   /* number of axes of a run; more, of strategies only: */
    SC_AX_FSDP = SC_N_AX, /* shards weights; then dp has replicas */
    SC_AX_SPATIAL,        /* splits images and volumes into slabs */
    SC_N_AX_NAMES,
    SC_AX_OTHER = SC_N_AX_NAMES /* an axis that only rules use */
} sc_axis;

extern const char *const sc_axis_names[]; /* "pp" "dp" "ep" ...; NULL ends */

/* SC_AX_OTHER if it is no name of the table. */
sc_axis sc_axis_named(const char *name);

#endif
