/* SPDX-License-Identifier: Apache-2.0 */
/*
 * megatron_shell.h - finds the arguments that a launch script passes to its
 * training program, without executing anything.
 *
 * Text is kept as glyphs, which are characters with their offset in the file.
 * The offsets are kept through variables, arrays, quotes, `eval` and `bash -c`,
 * so that an error in an expanded value points at the place where it was
 * written.
 *
 * Text that only a run determines (a command's output, a positional argument, a
 * variable that only the environment sets) becomes a hole in the text: SH_HOLE
 * name SH_HOLE_END. Parts of the script after a condition that depends on a
 * hole are not followed.
 */
#ifndef IMPORT_MEGATRON_SHELL_H
#define IMPORT_MEGATRON_SHELL_H

#include "base/base.h"

#define SH_HOLE     '\1'
#define SH_HOLE_END '\2'

typedef struct sh_glyph {
    uint32_t at; /* byte offset in the file */
    char c;
    bool quoted; /* not split, not an operator */
} sh_glyph;

typedef struct sh_text {
    sh_glyph *g;
    uint32_t n, cap;
} sh_text;

typedef struct sh_list {
    sh_text *t;
    uint32_t n, cap;
} sh_list;

typedef struct sh_var {
    const char *name;
    bool array;
    sh_list v; /* one text unless `array` */
    struct sh_var *next;
} sh_var;

typedef struct sh_src { /* a cursor */
    const sh_glyph *g;
    uint32_t n, i;
} sh_src;

typedef struct sh_function {
    const char *name;
    sh_src body;
    struct sh_function *next;
} sh_function;

typedef enum sh_truth { SH_FALSE, SH_TRUE, SH_UNKNOWN } sh_truth;

typedef struct sh {
    sc_arena *a;
    sc_err *err;
    const char *file, *text;
    size_t len;

    sh_var *vars;
    sh_function *functions;
    uint32_t n_vars;
    bool live;    /* commands have effect */
    bool stopped; /* behind an `exit` */
    uint32_t depth, work;
    uint32_t hidden; /* number of assignments and launches that were not
                        followed */
    sh_truth truth;  /* of the last command */
    const char *stop;
    sh_list heredoc; /* delimiters whose text starts at the next line */

    bool found;
    sh_list launcher, args; /* words of the first launch: before and after its
                               script */
    const char *script;     /* "pretrain_gpt.py"; NULL: a bare list */

    const char **warning; /* [n_warnings] */
    uint32_t n_warnings, cap_warnings;
} sh;

/* Reads a script up to its launch, or with `list` only words. */
sc_status sh_read(sh *s, bool list);

/* ---- text ---------------------------------------------------------------- */

sc_pos sh_pos(const sh *s, uint32_t at);
sc_status sh_push(sh *s, sh_text *t, sh_glyph g);
sc_status sh_append(sh *s, sh_list *l, sh_text t);
/* The text, with holes written as "$NAME"; in the arena. */
char *sh_string(const sh *s, const sh_text *t);
bool sh_has_hole(const sh_text *t);
sc_status sh_warn(sh *s, uint32_t at, const char *fmt, ...) SC_PRINTF(3, 4);

static inline bool sh_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static inline bool sh_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static inline bool sh_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- variables, words ------------------------------------------------------ */

sh_var *sh_find(const sh *s, const char *name);
sc_status sh_set(sh *s, const char *name, bool array, bool add, sh_list v);

/* Reads one word at the cursor and appends the fields it expands to; `whole`:
 * exactly one field, never split. */
sc_status sh_word(sh *s, sh_src *c, bool whole, sh_list *out);

/* Moves past the bracket that closes the one before the cursor. */
sc_status sh_match(sh *s, sh_src *c, char open, char close, uint32_t at);

/* Reads the lines "#SBATCH --nodes=4": they count as options of the launcher and
 * set the variables that SLURM sets. */
sc_status sh_batch(sh *s, const sh_src *all);

/* ---- commands --------------------------------------------------------------- */

enum { SH_MAX_NESTING = 40 };

char sh_at(const sh_src *c, uint32_t ahead); /* NUL behind the end */
uint32_t sh_here(const sh *s, const sh_src *c);
sc_status sh_syntax(sh *s, uint32_t at, const char *what);
void sh_skip_line(sh_src *c);
void sh_skip_blanks(sh_src *c); /* and comments, continued lines */
void sh_skip_lines(sh *s, sh_src *c);
size_t sh_plain(const sh_src *c, char *buf, size_t size);
bool sh_next_is(const sh_src *c, const char *word);
bool sh_redirected(const sh_src *c);
sc_status sh_redirection(sh *s, sh_src *c);
sc_status sh_simple(sh *s, sh_src *c);

/* Reads commands up to a closing word, which is consumed and stored in s->stop
 * ("" at the end). */
sc_status sh_commands(sh *s, sh_src *c);

/* ---- arithmetic, tests ------------------------------------------------------ */

/* Evaluates `t` as a whole-number expression; *known is false if it has
 * holes. */
sc_status sh_arith(sh *s, const sh_text *t, uint32_t at, int64_t *out,
                   bool *known);

/* Evaluates the words of [ ... ] or [[ ... ]] without the brackets. */
sh_truth sh_test(sh *s, const sh_list *words, bool patterns);

#endif
