/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matrix_lex.h - the table that `nvidia-smi topo -m` prints, as cells.
 *
 * A header line names the columns, and a line follows for each name. Lines of
 * GPUs end with CPU and NUMA affinity. The tool separates columns by tabs;
 * pasted tables may have blanks. Escape sequences count as blanks.
 */
#ifndef HW_MATRIX_LEX_H
#define HW_MATRIX_LEX_H

#include "hw/hw_nccl.h"

typedef enum hw_near {
    HW_NEAR_SELF,
    HW_NEAR_PIX,  /* one PCI switch */
    HW_NEAR_PXB,  /* several PCI switches */
    HW_NEAR_PHB,  /* a host bridge */
    HW_NEAR_NODE, /* host bridges of one NUMA domain */
    HW_NEAR_SYS,  /* CPUs */
    HW_NEAR_NVLINK
} hw_near;

typedef struct hw_cell {
    uint8_t near;  /* hw_near */
    uint8_t links; /* of NVLINK */
} hw_cell;

#define HW_MATRIX_SIDE ((uint32_t)SC_TOPO_GPUS + SC_TOPO_KIND)

typedef struct hw_matrix {
    const char *file, *text;
    size_t len;
    uint32_t n;        /* columns, and rows */
    const char **name; /* [n] "GPU0", "mlx5_0" */
    bool *gpu;         /* [n] */
    uint32_t *dev;     /* [n] of a GPU: its number */
    sc_pos *row;       /* [n] where its row starts */
    hw_cell *cell;     /* [n * n] row by row */
    size_t *offset;    /* [n * n] offset of each cell in the text */
    const char **numa; /* [n] NUMA affinity of a GPU, else its CPU affinity as
                          text; NULL: not given */
} hw_matrix;

sc_status hw_matrix_parse(const char *text, size_t len, const char *file,
                          sc_arena *a, hw_matrix *out, sc_err *err);

sc_pos hw_matrix_pos(const hw_matrix *m, uint32_t row, uint32_t col);

#endif
