/* SPDX-License-Identifier: Apache-2.0 */
/* reuse_stats.h - the reuse histograms of dlrm_datasets (MIT, kept outside the
 * repository): one for each file of look-ups, over all of its tables. */
#ifndef TESTS_REUSE_STATS_H
#define TESTS_REUSE_STATS_H

#include "model/model_access.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REUSE_FILES 40

typedef struct reuse_file {
    char name[64];
    double tables, batch, lookups, unique; /* of all tables together */
    double fraction[SC_REUSE_BINS];        /* of look-ups, as printed */
} reuse_file;

static inline void reuse_line(reuse_file *f, const char *line, bool *look_ups,
                              int *bin)
{
    const char *at = strstr(line, ": ");
    if (strncmp(line, "Histogram of", 12) == 0) *look_ups = false;
    if (strncmp(line, "Ratio of index", 14) == 0) *look_ups = true, *bin = 0;
    if (!at) return;
    double x = strtod(at + 2, NULL);
    if (strncmp(line, "Avg # of indices", 16) == 0) f->lookups = x;
    if (strncmp(line, "Avg # of unique", 15) == 0) f->unique = x;
    if (line[0] == '(' && *look_ups && *bin < SC_REUSE_BINS)
        f->fraction[(*bin)++] = x;
}

/* The histograms of a year, in the file's order; 0: there is no file. */
static inline uint32_t reuse_read(const char *shared, int year,
                                  reuse_file out[REUSE_FILES])
{
    char path[400], line[400];
    uint32_t n = 0;
    bool look_ups = false;
    int bin = 0;
    snprintf(path, sizeof path,
             "%s/data/dlrm_datasets/embedding_bag/%d/locality_stats.txt",
             shared, year);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        const char *t = strncmp(line, "fbgemm_t", 8) == 0 ? line + 8 : NULL;
        if (t && n == REUSE_FILES) break;
        if (t) {
            reuse_file *x = &out[n++];
            memset(x, 0, sizeof *x);
            line[strcspn(line, "\n")] = '\0';
            snprintf(x->name, sizeof x->name, "%.63s", line);
            x->tables = strtod(t, NULL);
            const char *b = strstr(t, "_bs");
            x->batch = b ? strtod(b + 3, NULL) : 0;
        } else if (n > 0) {
            reuse_line(&out[n - 1], line, &look_ups, &bin);
        }
    }
    if (f) fclose(f);
    return n;
}

#endif
