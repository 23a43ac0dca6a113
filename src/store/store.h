/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - a log of evaluated points, as `stepcast search --keep all` writes
 * it and `stepcast query` reads it.
 *
 *   file   magic, version, head, seal; blocks; end
 *   head   identity (text), name of the objective ("" if it is the step),
 *          axes: name, whether values are numbers, values (texts)
 *   block  rows (not 0), bytes of the rows, the rows, seal
 *   row    number of first digits that equal those of the row before (0 for the
 *          first of a block), the other digits, picoseconds of the step, bytes
 *          on the fullest device, and the score, unless it is the step
 *   end    0, number of all rows, seal
 *
 * Numbers are those of base/bytes.h.  A file that was cut off is readable up to
 * its last whole block.
 */
#ifndef STORE_H
#define STORE_H

#include "base/base.h"

enum { SC_STORE_AXES = 64, SC_STORE_VALUES = 1 << 20 };

typedef struct sc_store_axis {
    const char *name;
    bool number; /* its values are numbers */
    uint32_t n;
    const char **value; /* [n] */
} sc_store_axis;

typedef struct sc_store_head {
    const char *identity;  /* lines: the search whose rows these are */
    const char *objective; /* ""; else rows have a score */
    uint32_t n;
    sc_store_axis *axis; /* [n] */
} sc_store_head;

typedef struct sc_store_row {
    uint32_t digit[SC_STORE_AXES]; /* of each axis the number of its value */
    uint64_t step_ps, peak;
    double score; /* NaN: there is none */
} sc_store_row;

/* Rows of a block that is written; all zero: none. */
typedef struct sc_store_block {
    sc_bytes bytes;
    uint64_t rows;
    uint32_t last[SC_STORE_AXES];
} sc_store_block;

void sc_store_block_add(sc_store_block *b, uint32_t n_axes,
                        const uint32_t *digit, uint64_t step_ps, uint64_t peak,
                        double score);
/* Removes all rows, and keeps the memory. */
void sc_store_block_clear(sc_store_block *b);
void sc_store_block_free(sc_store_block *b);

void sc_store_write_head(const sc_store_head *h, sc_bytes *out);
/* The rows of a block as it has them; none writes nothing. */
void sc_store_write_block(uint64_t rows, const uint8_t *bytes, size_t len,
                          sc_bytes *out);
void sc_store_write_end(uint64_t all_rows, sc_bytes *out);

typedef struct sc_store_reader {
    const char *file; /* for errors */
    sc_bytes_in in;
    sc_store_head head;
    size_t block_at, block_end; /* the block that is read */
    uint64_t block_rows;        /* of it, that are left */
    uint64_t rows;              /* that were read */
    sc_store_row row;           /* the last one */
    bool whole;                 /* the end was reached */
} sc_store_reader;

/* Reads the head.  SC_EINPUT with the byte; the data must outlive the reader.*/
sc_status sc_store_open(const void *data, size_t len, const char *file,
                        sc_arena *a, sc_store_reader *out, sc_err *err);
/* Reads the next row into r->row; *is false: there are no more.  A block that
 * was cut off at the end of the file ends the rows. */
sc_status sc_store_next(sc_store_reader *r, bool *is, sc_err *err);

#endif
