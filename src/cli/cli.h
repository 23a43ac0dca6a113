/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.h - commands of the program: they parse options, call the library and
 * print. Everything that a command prints goes through cli_emit(), to stdout or
 * to the file of -o.
 */
#ifndef CLI_H
#define CLI_H

#include "base/base.h"
#include "search/search.h"

/* What only a program has. */
typedef struct cli_host {
    const sc_search_ranks *ranks; /* NULL: one process */
    uint32_t ranks_here;          /* ranks on this machine; at least 1 */
    const char *shard;            /* "3/16" of an array of jobs; NULL: none */
    const char *cache; /* folder for files that may be lost; NULL: none */
    /* From the first call on, whether the process was asked to end. */
    bool (*interrupted)(void);
} cli_host;

typedef struct cli {
    const cli_host *host; /* NULL in library calls */
    sc_arena *arena;
    sc_err *err;
    const char *command; /* as the user called it */
    bool json, quiet;
    bool dump_config;
    int64_t jobs, seed;      /* read by the commands that use them */
    const char *output;      /* -o FILE; NULL: stdout */
    const char *config;      /* --config FILE.yml */
    const char *config_text; /* its contents if they were read already */
    size_t config_len;
    sc_search_config *space; /* filled from it by commands that search; NULL */
    const sc_node *file;     /* the part of it that applies; NULL: none */
    sc_words words;          /* words that are not options */
    const sc_node *file_words; /* such words in the file */
    sc_given given;            /* of cli_common_keys */
    sc_text *answer, *notes;   /* where results and notes go in library
                                * calls; NULL: to stdout and stderr */

    struct cli_told {
        sc_progress progress;
        double begun, last; /* seconds; last 0: nothing was printed */
    } told;
} cli;

/* Options of every command, besides the command's own. */
extern const sc_key cli_common_keys[];
extern const sc_key cli_predict_keys[], cli_simulate_keys[], cli_emulate_keys[],
    cli_coll_keys[], cli_shard_keys[], cli_list_keys[], cli_query_keys[],
    cli_show_keys[], cli_validate_keys[], cli_calibrate_keys[],
    cli_explain_keys[], cli_search_keys[], cli_replay_keys[];

/* Parses the common options and `sets` (at most CLI_SETS), first from the
 * file of --config; the command line overrides it. `given` of each set lists
 * the keys from both. */
sc_status cli_parse(cli *c, int argc, char *const *argv, sc_opt_set *sets,
                    uint32_t n_sets, sc_words *positional);

#define CLI_SETS 4

/* Reports given options of a set that are not among `used` (NULL: none is) as
 * errors, all in one pass. */
sc_status cli_check_used(cli *c, const sc_opt_set *set, const char *const *used,
                         const char *hint);

/* Moves errors of values from --config's file to their place there, and
 * errors without a place to the command. */
void cli_locate(const cli *c);

/* Writes the given options as a file that --config reads. */
sc_status cli_dump(cli *c, const sc_opt_set *sets, uint32_t n_sets);

/* Writes words that are not options, and common options that may change a
 * result, as lines of such a file and as members of a document (NULL: none). */
void cli_dump_common(const cli *c, sc_text *t, sc_json *all);

/* Writes a line of such a file for each given option except those in `but`
 * (NULL: none). */
void cli_dump_lines(const sc_opt_set *set, const char *const *but,
                    sc_text *out);

/* Reports a file of another program that `option` does not read; the error
 * names the file's format and the right option. `file` may be NULL, or not a
 * file. */
sc_status cli_check_format(const cli *c, const char *option, const char *file);
bool cli_is_file(const char *path);

/* Writes the options in effect as members of a result's config
 * ("world_size"), except those in `but` (NULL: none). */
void cli_config_json(const sc_opt_set *set, const char *const *but, sc_json *j);

/* Wraps `text` at 80 columns, indented by `indent` blanks. */
void cli_wrap(sc_text *out, int indent, const char *text);

/* Prints a report by one of two writers: as JSON with --json, else as text. */
sc_status cli_print(cli *c, const void *report,
                    void (*text)(const void *report, sc_text *out),
                    void (*json)(const void *report, sc_json *out));

/* Largest memory of the process so far, bytes; 0: not known. */
uint64_t cli_peak_rss(void);

/* The lines of a text as an array [*n] in the arena. */
sc_status cli_lines(const cli *c, const sc_text *t, const char *const **out,
                    uint32_t *n);

/* Writes the lines of a text report as a JSON value. */
void cli_lines_json(const char *text, sc_arena *a, sc_json *j);

/* "did you mean X?" if a name is similar, else `other`; in the arena. */
const char *cli_hint(const cli *c, const char *word, const char *const *names,
                     const char *other);

/* An empty text with the width of the terminal that it goes to, stdout or
 * stderr, and with colours if that terminal has them. */
void cli_text_init(const cli *c, bool to_stderr, sc_text *t);

/* Columns by COLUMNS or of the terminal at `fd`; 80 if both are unknown. */
uint32_t cli_width(int fd);

/* Shows a line of progress on stderr once a command has taken 2 s, if stderr
 * is a terminal, and removes it at the end. */
const sc_progress *cli_progress(cli *c);
void cli_progress_end(const cli *c);
/* Seconds of a clock that never goes back. */
double cli_now_s(void);

/* Whether that line is due, and its text. */
bool cli_progress_due(cli *c);
void cli_progress_say(const cli *c, const char *text);

/* Whether `fd` is a terminal with colours, and NO_COLOR is not set. */
bool cli_colour(int fd);

/* Whether this process writes: of several ranks only the first does. */
bool cli_is_first(const cli *c);
sc_status cli_emit(const cli *c, const char *text, size_t len);
sc_status cli_emit_text(cli *c, const sc_text *t);
sc_status cli_emit_json(cli *c, const sc_json *j); /* appends a newline */
/* Joins two JSON objects, with the members of `a` first. */
sc_status cli_emit_joined(cli *c, const sc_json *a, const sc_json *b);
/* Writes a file, compressed if its name ends in .gz. */
sc_status cli_write_json(cli *c, const char *path, const sc_json *j);
void cli_note(const cli *c, const char *fmt, ...) SC_PRINTF(2, 3);

sc_status cli_predict(cli *c, int argc, char *const *argv);
sc_status cli_compare(cli *c, int argc, char *const *argv);
sc_status cli_search(cli *c, int argc, char *const *argv);
sc_status cli_query(cli *c, int argc, char *const *argv);
sc_status cli_validate(cli *c, int argc, char *const *argv);
sc_status cli_calibrate(cli *c, int argc, char *const *argv);
sc_status cli_simulate(cli *c, int argc, char *const *argv);
sc_status cli_emulate(cli *c, int argc, char *const *argv);
sc_status cli_list(cli *c, int argc, char *const *argv);
sc_status cli_show(cli *c, int argc, char *const *argv);
sc_status cli_explain(cli *c, int argc, char *const *argv);
sc_status cli_coll(cli *c, int argc, char *const *argv);
sc_status cli_replay(cli *c, int argc, char *const *argv);
sc_status cli_shard(cli *c, int argc, char *const *argv);
sc_status cli_completion(cli *c, int argc, char *const *argv);

/* Writes the manual pages into folder `dir`, and creates the folder if
 * needed. */
sc_status cli_man(cli *c, const char *dir);

/* The commands, in the order of --help. */
typedef struct cli_command {
    const char *name;
    sc_status (*run)(cli *c, int argc, char *const *argv);
    const char *help;
} cli_command;

extern const cli_command cli_commands[]; /* name NULL ends */

/* What `stepcast COMMAND --help` prints. */
void cli_help_page(const cli_command *cmd, sc_text *t);

/* Words that may follow a command (NULL-terminated), or NULL. */
const char *const *cli_help_words(const char *command);

/* Option table `i` (0..2, NULL past the last) and usage of a command. */
const sc_key *cli_help_keys(const char *command, uint32_t i);
const char *cli_help_usage(const char *command);

/* Reads tables of measurements (packed by gzip or zstd or not) into `out` [n].
 * Errors of all of them are reported. */
sc_status cli_read_tables(const cli *c, const char *const *files, uint32_t n,
                          sc_csv *out);

#endif
