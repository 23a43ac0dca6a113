/* SPDX-License-Identifier: Apache-2.0 */
/* query.h - the parts of `stepcast query`. */
#ifndef CLI_QUERY_H
#define CLI_QUERY_H

#include "cli/cli.h"
#include "store/store.h"

/* The name of a column as SQL takes it without quotes, in the arena: names of
 * axes with underscores, then step_time_s, peak_bytes, and the objective, if it
 * is another one.  NULL: there is no column `i`, or memory is exhausted. */
const char *query_column(const sc_store_reader *r, uint32_t i, sc_arena *a);
/* The text of column `i` of the row that was read last; `buf` may hold it. */
const char *query_value(const sc_store_reader *r, uint32_t i, char *buf,
                        size_t size);
/* Whether column `i` is a number. */
bool query_is_number(const sc_store_reader *r, uint32_t i);
/* Appends a cell of CSV. */
void query_cell(const char *text, bool first, sc_text *out);

/* Writes the rows into table `points` of a new database, and lines that say of
 * which search they are into table `search`.  SC_EINPUT: this program has no
 * SQLite. */
sc_status query_to_sqlite(cli *c, sc_store_reader *r, const char *file);
/* Runs a query over these tables, and prints its rows as CSV. */
sc_status query_sql(cli *c, sc_store_reader *r, const char *sql);

#endif
