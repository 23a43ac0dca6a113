/* SPDX-License-Identifier: Apache-2.0 */
/*
 * man.c - writes manual pages in the form of man(7) from the tables that parse
 * the options. `stepcast --man DIR` writes them when stepcast is built:
 * stepcast.1, and stepcast-COMMAND.1 for each command.
 */
#include "cli/cli.h"

#include <ctype.h>
#include <stepcast_version.h>
#include <string.h>

/* Escapes characters that have a meaning in a manual page: backslashes,
 * hyphens of options, and dots and quotes at the beginning of a line. */
static void plain(sc_text *t, const char *text)
{
    bool begins = t->len == 0 || t->buf[t->len - 1] == '\n';
    for (; *text; text++) {
        if (begins && (*text == '.' || *text == '\'')) sc_text_add(t, "\\&");
        if (*text == '\\')
            sc_text_add(t, "\\e");
        else if (*text == '-')
            sc_text_add(t, "\\-");
        else
            sc_text_add(t, "%c", *text);
        begins = *text == '\n';
    }
}

static void begin(sc_text *t, const char *name, const char *help)
{
    sc_text_add(t, ".\\\" Written by `stepcast --man`.\n.TH ");
    for (const char *s = name; *s; s++)
        sc_text_add(t, "%c", toupper((unsigned char)*s));
    sc_text_add(t, " 1 \"\" \"stepcast %s\" \"User Commands\"\n.SH NAME\n",
                STEPCAST_VERSION);
    plain(t, name);
    sc_text_add(t, " \\- ");
    plain(t, help);
    sc_text_add(t, "\n.SH SYNOPSIS\n.nf\n");
}

/* Writes "usage: stepcast coll ..." and the lines after it. */
static void synopsis(sc_text *t, const char *usage)
{
    static const char word[] = "usage: ";
    size_t skip = sizeof word - 1;
    while (*usage) {
        size_t n = strcspn(usage, "\n");
        sc_text line;
        sc_text_init(&line);
        if (n > skip) sc_text_add(&line, "%.*s", (int)(n - skip), usage + skip);
        plain(t, line.buf);
        sc_text_add(t, "\n");
        t->failed = t->failed || line.failed;
        sc_text_free(&line);
        usage += n + (usage[n] == '\n');
    }
    sc_text_add(t, ".fi\n");
}

static void value(sc_text *t, const sc_key *k)
{
    if (sc_key_is_flag(k)) return;
    sc_text_add(t, " \\fI");
    if (k->meta)
        plain(t, k->meta);
    else if (k->type != SC_T_ENUM)
        sc_text_add(t, "VALUE");
    for (int i = 0; k->type == SC_T_ENUM && k->names[i]; i++) {
        if (i) sc_text_add(t, "|\\:"); /* allows a line break */
        plain(t, k->names[i]);
    }
    sc_text_add(t, "\\fR");
}

static void options(sc_text *t, const sc_key *keys)
{
    for (const sc_key *k = keys; k && k->name; k++) {
        if (!k->flag) continue;
        sc_text_add(t, ".TP\n\\fB");
        plain(t, k->flag);
        sc_text_add(t, "\\fR");
        value(t, k);
        sc_text_add(t, "\n");
        plain(t, k->help ? k->help : "");
        if (k->type == SC_T_LIST) sc_text_add(t, " (may be repeated)");
        if (k->def && k->def[0] && strcmp(k->def, "false") != 0) {
            sc_text_add(t, " [");
            plain(t, k->def);
            sc_text_add(t, "]");
        }
        sc_text_add(t, "\n");
    }
}

static void see_also(sc_text *t, const char *but)
{
    bool more = strcmp(but, "stepcast") != 0;
    sc_text_add(t, ".SH SEE ALSO\n");
    if (more) sc_text_add(t, ".BR stepcast (1)");
    for (const cli_command *x = cli_commands; x->name; x++) {
        if (strcmp(x->name, but) == 0) continue;
        sc_text_add(t, "%s.BR stepcast\\-%s (1)", more ? ",\n" : "", x->name);
        more = true;
    }
    sc_text_add(t, "\n");
}

static const char statuses[] =
    ".SH EXIT STATUS\n.TP\n0\nsuccess; if the command asks a question, the "
    "answer is yes\n.TP\n1\nthe answer is no: the step does not fit into "
    "memory\n.TP\n2\nan option that cannot be parsed\n.TP\n3\nbad input, or "
    "inputs that contradict each other\n.TP\n4\na file that cannot be read or "
    "written\n.TP\n70\na defect of stepcast; please report it\n";

static void command_page(const cli_command *x, sc_text *t, const char *name)
{
    begin(t, name, x->help);
    synopsis(t, cli_help_usage(x->name));
    for (uint32_t i = 0; cli_help_keys(x->name, i); i++) {
        if (i == 0) sc_text_add(t, ".SH OPTIONS\n");
        options(t, cli_help_keys(x->name, i));
    }
    sc_text_add(t, ".SH COMMON OPTIONS\n");
    options(t, cli_common_keys);
    sc_text_add(t,
                ".PP\nAn option without a value is switched off by "
                "\\fB\\-\\-no\\-\\fINAME\\fR.\n%s",
                statuses);
    see_also(t, x->name);
}

static void program_page(sc_text *t)
{
    begin(t, "stepcast",
          "what one training step of a distributed deep-learning job costs");
    sc_text_add(t, "stepcast \\fICOMMAND\\fR [\\fIoptions\\fR]\n"
                   "stepcast \\fICOMMAND\\fR \\-\\-help\n"
                   "stepcast \\-\\-version\n.fi\n.SH COMMANDS\n");
    for (const cli_command *x = cli_commands; x->name; x++) {
        sc_text_add(t, ".TP\n\\fB%s\\fR\n", x->name);
        plain(t, x->help);
        sc_text_add(t, "\n");
    }
    sc_text_add(t,
                ".SH EXAMPLE\n.nf\nstepcast predict \\-\\-model llama3\\-70b "
                "\\-\\-cluster dgx\\-h100:16 \\-\\-tp 8 \\-\\-pp 4\n.fi\n%s",
                statuses);
    see_also(t, "stepcast");
}

static sc_status write_page(cli *c, const char *dir, const cli_command *x)
{
    sc_text t;
    const char *name =
        x ? sc_sprintf(c->arena, "stepcast-%s", x->name) : "stepcast";
    const char *file = name ? sc_sprintf(c->arena, "%s/%s.1", dir, name) : NULL;
    if (!file) return sc_error_nomem(c->err);
    sc_text_init(&t);
    if (x)
        command_page(x, &t, name);
    else
        program_page(&t);
    sc_status s = t.failed ? sc_error_nomem(c->err)
                           : sc_file_write(file, t.buf, t.len, c->err);
    sc_text_free(&t);
    return s;
}

sc_status cli_man(cli *c, const char *dir)
{
    SC_TRY(sc_folder_make(dir, c->err));
    SC_TRY(write_page(c, dir, NULL));
    for (const cli_command *x = cli_commands; x->name; x++)
        SC_TRY(write_page(c, dir, x));
    return SC_OK;
}
