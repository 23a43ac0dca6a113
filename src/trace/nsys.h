/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nsys.h - what the files of the reader of Nsight Systems' databases share.
 *
 * The schema is that of "Exporter SQLite schema" in the user guide of Nsight
 * Systems, 2019 to 2026: tables that a report has nothing for are missing, and
 * columns come with versions.
 */
#ifndef TRACE_NSYS_H
#define TRACE_NSYS_H

#include "base/sqlite.h"
#include "trace/profiled.h"

#ifdef STEPCAST_SQLITE

/* ---- the database (nsys_db.c) -------------------------------------------- */

/* Anybody's file: nothing in it is run, and no value has the type that its
 * column states. */
typedef struct nsys_db {
    const char *file;
    sc_err *err;
    sc_sqlite lite;
    sqlite3 *db;
    sqlite3_stmt *string; /* looks up StringIds; NULL: there is none */
    uint64_t most_rows;   /* more than a table of this size can have */
} nsys_db;

/* nsys_db_close() must follow, also after an error. */
sc_status nsys_db_open(nsys_db *d, const char *path, sc_err *err);
/* `data` is borrowed until then. */
sc_status nsys_db_open_memory(nsys_db *d, const char *data, size_t len,
                              const char *file, sc_err *err);
void nsys_db_close(nsys_db *d);

/* A row of a table; columns are numbered as they were asked for. */
typedef struct nsys_row {
    const nsys_db *d;
    sqlite3_stmt *q;
} nsys_row;

/* Calls `each` for the rows of a table, in the order of the file. Columns that
 * it lacks are NULL. `*found`: the table is there. */
sc_status nsys_rows(nsys_db *d, const char *table, const char *const *columns,
                    sc_status (*each)(void *ctx, const nsys_row *row),
                    void *ctx, bool *found);

/* A whole number, also one in a text; false if there is none. */
bool nsys_int(const nsys_row *r, int column, int64_t *out);
/* The same; `none` if there is none. */
int64_t nsys_int_or(const nsys_row *r, int column, int64_t none);
/* The text of a column; NULL if it has none. */
const char *nsys_text(const nsys_row *r, int column, size_t *len);
/* The text of StringIds; NULL if the number has none. It lasts until the next
 * call. */
sc_status nsys_string(nsys_db *d, int64_t id, const char **out, size_t *len);

/* ---- ranks (nsys.c) ------------------------------------------------------ */

/* The record of an event on a stream. */
typedef struct nsys_record {
    uint64_t event; /* context and event, or what links records and waits */
    uint32_t correlation;
    int32_t stream;
} nsys_record;

/* A process that runs kernels. */
typedef struct nsys_rank {
    int64_t process; /* its serialized number; 0: rows do not state it */
    profiled p;
    sc_map strings; /* numbers of names by those of StringIds */

    nsys_record *record; /* [n_records] in order of event and correlation */
    uint32_t n_records, cap_records;
    /* [n_ranges] of NVTX; detail: 1 for ranges that need not nest */
    sc_trace_span *range;
    uint32_t n_ranges, cap_ranges;
} nsys_rank;

typedef struct nsys {
    nsys_db d;
    sc_arena *a, tmp;
    sc_text *warnings;
    sc_err *err;
    nsys_rank **rank; /* [n_ranks] */
    uint32_t n_ranks, cap_ranks;
    sc_map by_process;
    bool complete; /* there are no other ranks */
    int64_t origin_us;
    int64_t other; /* process of a call where rows do not state theirs */
    bool several;  /* there are more of these */
    uint64_t n_broken, n_open, n_overlap;
    char *text; /* [text_cap] for one text */
    size_t text_cap;
} nsys;

/* The rank of a serialized process or thread; NULL if it runs no kernel. */
nsys_rank *nsys_rank_of(nsys *n, int64_t process);
/* The lane of a serialized thread; false if there is no room. */
bool nsys_thread(nsys_rank *r, int64_t thread, uint16_t *out);
/* Whole microseconds of a time, rounded down. */
int64_t nsys_us(int64_t ns);
/* The time of a rank; false if it is too far from the others. */
bool nsys_time(nsys_rank *r, int64_t ns, sc_time *out);
/* The time of a row with `start` and `end` in columns 0 and 1; false if it has
 * none that can be used. */
bool nsys_span_time(nsys_rank *r, const nsys_row *row, sc_trace_span *out);
/* The number of a text that becomes printable; 0 for none. */
uint32_t nsys_name(nsys *n, nsys_rank *r, const char *text, size_t len);

/* The name of a text of StringIds, of a call without its version; 0 if it has
 * none. */
sc_status nsys_string_name(nsys *n, nsys_rank *r, int64_t id, bool call,
                           uint32_t *out);
/* Numbers of a row; 0 and -1 if it has none. */
uint32_t nsys_correlation(const nsys_row *row, int column);
int32_t nsys_stream(const nsys_row *row, int column);
sc_status nsys_rank_new(nsys *n, int64_t process, int64_t us, nsys_rank **out);
sc_status nsys_keep(nsys *n, nsys_rank *r, sc_trace_span *span,
                    const sc_trace_span_args *args);

/* ---- the device (nsys_device.c, nsys_waits.c) ---------------------------- */

/* What the tables of the device have in common. */
enum {
    NSYS_START,
    NSYS_END,
    NSYS_DEVICE,
    NSYS_STREAM,
    NSYS_CORRELATION,
    NSYS_PROCESS,
    NSYS_OWN
};

#define NSYS_DEVICE_COLUMNS \
    "start", "end", "deviceId", "streamId", "correlationId", "globalPid"

/* `*any`: the report has one of these tables. */
sc_status nsys_devices(nsys *n, bool *any);
sc_status nsys_waits(nsys *n);
sc_status nsys_memory(nsys *n);

/* ---- NVTX (nsys_nvtx.c) -------------------------------------------------- */

/* Ranges become operators, annotations and steps of their threads. Calls have
 * been read. */
sc_status nsys_nvtx(nsys *n);

#endif

/* Reads the ranks of a database; `data`: NULL to open the file `path`. */
sc_status nsys_read(const char *path, const char *data, size_t len, sc_arena *a,
                    sc_text *warnings, sc_profiled **out, uint32_t *n_out,
                    sc_err *err);

#endif
