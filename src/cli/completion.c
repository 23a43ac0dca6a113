/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completion.c - `stepcast completion bash
 * zsh
 * fish`: completes commands, options and values from the tables that parse
 * them. The scripts get catalogue names from `stepcast list` at run time.
 */
#include "cli/cli.h"

#include <string.h>

typedef void (*key_fn)(const char *command, const sc_key *k, sc_text *out);

/* Visits every option of a command: its own, then the common ones. */
static void each_key(const char *command, key_fn fn, sc_text *out)
{
    const sc_key *keys = cli_help_keys(command, 0);
    for (uint32_t i = 0; keys; keys = cli_help_keys(command, ++i))
        for (const sc_key *k = keys; k->name; k++)
            if (k->flag) fn(command, k, out);
    for (const sc_key *k = cli_common_keys; k->name; k++)
        if (k->flag) fn(command, k, out);
}

static const char *catalogue(const sc_key *k)
{
    if (strcmp(k->name, "model") == 0) return "models";
    if (strcmp(k->name, "cluster") == 0) return "clusters";
    if (strcmp(k->name, "software") == 0) return "software";
    return NULL;
}

static bool is_text(const sc_key *k)
{
    return k->type == SC_T_STRING || k->type == SC_T_LIST;
}

static void words(const char *const *w, sc_text *out)
{
    for (uint32_t i = 0; w && w[i]; i++)
        sc_text_add(out, "%s%s", i ? " " : "", w[i]);
}

/* ---- bash ---------------------------------------------------------------- */

static void bash_flag(const char *command, const sc_key *k, sc_text *out)
{
    (void)command;
    sc_text_add(out, " %s", k->flag);
}

static void bash_value(const char *command, const sc_key *k, sc_text *out)
{
    const char *names = catalogue(k);
    if (sc_key_is_flag(k) || (k->type != SC_T_ENUM && !names && !is_text(k)))
        return;
    sc_text_add(out, "    %s,%s)", command, k->flag);
    if (k->type == SC_T_ENUM) {
        sc_text_add(out, " words='");
        words(k->names, out);
        sc_text_add(out, "'");
    } else if (names) {
        sc_text_add(out,
                    " words=$(stepcast list %s --names 2>/dev/null); files=-f",
                    names);
    } else {
        sc_text_add(out, " files=-f");
    }
    sc_text_add(out, " ;;\n");
}

static void bash(sc_text *out)
{
    sc_text_add(out, "# completion of stepcast for bash\n"
                     "_stepcast() {\n"
                     "  local cur=${COMP_WORDS[COMP_CWORD]}\n"
                     "  local prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                     "  local command=${COMP_WORDS[1]} words= files=\n"
                     "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                     "    words='");
    for (const cli_command *x = cli_commands; x->name; x++)
        sc_text_add(out, "%s ", x->name);
    sc_text_add(out, "--help --version'\n  else case $command,$prev in\n");
    for (const cli_command *x = cli_commands; x->name; x++)
        each_key(x->name, bash_value, out);
    for (const cli_command *x = cli_commands; x->name; x++) {
        sc_text_add(out, "    %s,*) words='", x->name);
        words(cli_help_words(x->name), out);
        each_key(x->name, bash_flag, out);
        sc_text_add(out, " --help'; files=-f ;;\n");
    }
    sc_text_add(out, "  esac; fi\n"
                     "  COMPREPLY=($(compgen $files -W \"$words\" -- "
                     "\"$cur\"))\n"
                     "}\n"
                     "complete -o filenames -F _stepcast stepcast\n");
}

/* ---- zsh ----------------------------------------------------------------- */

/* Escapes quotes, brackets and colons, which have a meaning inside '...' and
 * [...]. */
static void zsh_text(const char *text, sc_text *out)
{
    for (; *text; text++) {
        if (*text == '\'')
            sc_text_add(out, "'\\''");
        else
            sc_text_add(out, strchr("[]:\\", *text) ? "\\%c" : "%c", *text);
    }
}

static void zsh_key(const char *command, const sc_key *k, sc_text *out)
{
    const char *names = catalogue(k);
    (void)command;
    sc_text_add(out, "        '%s%s[", k->type == SC_T_LIST ? "*" : "",
                k->flag);
    zsh_text(k->help ? k->help : "", out);
    sc_text_add(out, "]");
    if (k->type == SC_T_ENUM) {
        sc_text_add(out, ":%s:(", k->name);
        words(k->names, out);
        sc_text_add(out, ")");
    } else if (names) {
        sc_text_add(out, ":%s:($(stepcast list %s --names))", k->name, names);
    } else if (is_text(k)) {
        sc_text_add(out, ":%s:_files", k->name);
    } else if (!sc_key_is_flag(k)) {
        sc_text_add(out, ":%s: ", k->name);
    }
    sc_text_add(out, "' \\\n");
}

static void zsh(sc_text *out)
{
    sc_text_add(out, "#compdef stepcast\n"
                     "_stepcast() {\n"
                     "  if (( CURRENT == 2 )); then\n"
                     "    local -a commands=(\n");
    for (const cli_command *x = cli_commands; x->name; x++) {
        sc_text_add(out, "      '%s:", x->name);
        zsh_text(x->help, out);
        sc_text_add(out, "'\n");
    }
    sc_text_add(out, "    )\n"
                     "    _describe command commands\n"
                     "    return\n"
                     "  fi\n"
                     "  local command=$words[2]\n"
                     "  shift words; (( CURRENT-- ))\n"
                     "  case $command in\n");
    for (const cli_command *x = cli_commands; x->name; x++) {
        const char *const *w = cli_help_words(x->name);
        sc_text_add(out, "    %s)\n      _arguments \\\n", x->name);
        each_key(x->name, zsh_key, out);
        sc_text_add(out, "        '*:%s:", w ? "word" : "file");
        if (w) sc_text_add(out, "(");
        words(w, out);
        sc_text_add(out, "%s' ;;\n", w ? ")" : "_files");
    }
    sc_text_add(out, "  esac\n"
                     "}\n"
                     "compdef _stepcast stepcast\n");
}

/* ---- fish ---------------------------------------------------------------- */

static void fish_text(const char *text, sc_text *out)
{
    sc_text_add(out, " -d '");
    for (; *text; text++)
        sc_text_add(out, *text == '\'' || *text == '\\' ? "\\%c" : "%c", *text);
    sc_text_add(out, "'");
}

static void fish_key(const char *command, const sc_key *k, sc_text *out)
{
    const char *names = catalogue(k);
    sc_text_add(out,
                "complete -c stepcast -n '__fish_seen_subcommand_from %s' "
                "-l %s",
                command, k->flag + 2);
    if (k->type == SC_T_ENUM) {
        sc_text_add(out, " -x -a '");
        words(k->names, out);
        sc_text_add(out, "'");
    } else if (names) {
        sc_text_add(out, " -r -a '(stepcast list %s --names)'", names);
    } else if (!sc_key_is_flag(k)) {
        sc_text_add(out, is_text(k) ? " -r" : " -x");
    }
    fish_text(k->help ? k->help : "", out);
    sc_text_add(out, "\n");
}

static void fish(sc_text *out)
{
    sc_text_add(out, "# completion of stepcast for fish\n");
    for (const cli_command *x = cli_commands; x->name; x++) {
        sc_text_add(out,
                    "complete -c stepcast -n __fish_use_subcommand -f -a %s",
                    x->name);
        fish_text(x->help, out);
        sc_text_add(out, "\n");
        const char *const *w = cli_help_words(x->name);
        if (w) {
            sc_text_add(out,
                        "complete -c stepcast -n "
                        "'__fish_seen_subcommand_from %s' -f -a '",
                        x->name);
            words(w, out);
            sc_text_add(out, "'\n");
        }
        each_key(x->name, fish_key, out);
    }
}

sc_status cli_completion(cli *c, int argc, char *const *argv)
{
    static void (*const print[])(sc_text *) = {bash, zsh, fish};
    const char *const *shells = cli_help_words("completion");
    sc_words args = {0};
    size_t shell = 0;
    SC_TRY(cli_parse(c, argc, argv, NULL, 0, &args));
    if (c->dump_config) return cli_dump(c, NULL, 0);
    if (args.n != 1)
        return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(),
                        "bash, zsh or fish", "completion needs a shell");
    while (shell < SC_COUNT(print) && strcmp(shells[shell], args.w[0]) != 0)
        shell++;
    if (shell == SC_COUNT(print))
        return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_none(),
                        cli_hint(c, args.w[0], shells, "bash, zsh or fish"),
                        "no completion for \"%.60s\"", args.w[0]);
    sc_text t;
    sc_text_init(&t);
    print[shell](&t);
    sc_status s = t.failed ? sc_error_nomem(c->err) : cli_emit_text(c, &t);
    sc_text_free(&t);
    return s;
}
