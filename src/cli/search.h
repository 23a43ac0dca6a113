/* SPDX-License-Identifier: Apache-2.0 */
/* search.h - the options of `stepcast search` beside those of a job. */
#ifndef CLI_SEARCH_H
#define CLI_SEARCH_H

#include "cli/cli.h"
#include "search/search_budget.h"
#include "search/search_saved.h"
#include "search/search_sizes.h"

typedef struct search_opts {
    const char **axis, **where; /* NULL ends; NULL: none */
    const char **machine;       /* KEY=VALUES; likewise */
    const char **emits;         /* FORMAT DIR ...; NULL ends; NULL: none */
    const char **measured;      /* TIME|LOG[=JOB.yml]; likewise */
    const char *nodes, *front, *mix;
    const char *budget_of; /* of the machine */
    int64_t top, row;
    int goal; /* sc_search_goal */
    bool exhaustive, explain_space, neighbours, pareto, tornado;
    double budget_s, margin;
    sc_search_limits limits;
    const char *save, *shard;
    const char **keep; /* all FILE; NULL ends; NULL: none */
    bool resume, merge;
    double every_s;
} search_opts;

/* The axes of machines; n 0: one machine, or several numbers of nodes. */
typedef struct search_machines {
    uint32_t n;
    sc_machine_axis of[SC_MACHINE_AXES];
} search_machines;

/* Adds an axis with the values of a word or list, or of an option of a job. */
sc_status search_machines_add(cli *c, const char *name, const sc_node *value,
                              search_machines *x);
sc_status search_machines_add_option(cli *c, const sc_search_option *o,
                                     sc_pos pos, search_machines *x);
sc_status search_machines_add_axis(cli *c, const sc_machine_axis *axis,
                                   sc_pos pos, search_machines *x);
bool search_machines_have(const search_machines *x, const char *name);
/* Adds those of --machine, of `machine` and several clusters in a file, and --nodes
 * if there are any others.  The first of several clusters becomes that of `job`. */
sc_status search_machines_read(cli *c, const search_opts *o,
                               const sc_search_config *file, search_machines *x,
                               sc_job *job);

/* Reads the budget of the machine, and proposes nodes if neither a cluster nor
 * nodes are given: then the cluster of `job` is the first of them. */
sc_status search_budget_open(cli *c, const search_opts *o, sc_job *job,
                             search_machines *x, sc_search_proposal *out);
/* What a front of machines compares: the dimensions of --front if it is given. */
sc_status search_budget_front(cli *c, const search_opts *o, uint32_t given,
                              const sc_search_question *q,
                              const search_machines *x, uint32_t *dims);
/* Proposes numbers of units unless they are given. */
sc_status search_budget_units(cli *c, const sc_search_question *q,
                              search_machines *x, sc_search_proposal *inout);

/* Searches for the machine that is best for the jobs of --mix. */
sc_status search_mix(cli *c, const search_opts *o, const sc_search_question *q,
                     search_machines *x, sc_search_proposal *budget);

/* What a search leaves in files while it runs, and what ends it. */
typedef struct search_files {
    cli *c;
    const search_opts *o;
    sc_words merge; /* files of parts */
    const char *identity;
    bool first;            /* of several ranks the one that writes */
    double begun, end;     /* seconds; end 0: no limit */
    double saved_s;        /* of the last checkpoint */
    sc_search_saved saved; /* with a file, or with parts */
    const char *file;      /* of the checkpoint; NULL: none */
    bool unnamed; /* it is in the user's cache until the search is done */
    bool saves;
    const char *log, *part; /* of all rows: its name, and until it is whole */
    int fd;
    uint64_t log_bytes, log_rows;
} search_files;

/* Lines of all that the result of a search depends on: program, fit, machine,
 * model, the given options of `sets`, files of strategies; in the arena. */
sc_status search_identity(cli *c, const sc_opt_set sets[2], const sc_job *job,
                          const sc_inputs *in, const sc_search_option *axis,
                          uint32_t n, const char **out);

/* Reads checkpoint or parts, begins the log, and sets what `so` needs.
 * `jobs` NULL: several machines.  SC_EINPUT, SC_EUSAGE. */
sc_status search_files_open(search_files *f, const sc_search_jobs *jobs,
                            sc_search_options *so);
/* After the search, with its status. */
sc_status search_files_close(search_files *f, sc_status s);

#endif
