/* SPDX-License-Identifier: Apache-2.0 */
/* help_page.c - `stepcast COMMAND --help`: options in groups, examples. */
#include "cli/cli.h"

#include <string.h>

typedef struct group {
    const char *command, *title; /* sc_key.group */
} group;

/* In this order; options of other groups are listed under "more options". */
static const group groups[] = {
    {"predict", "the job"},
    {"predict", "parallelism"},
    {"predict", "memory"},
    {"predict", "training"},
    {"predict", "the answer"},
    {"predict", "the whole run"},
    {"predict", "how it is computed"},
    {"simulate", "what runs"},
    {"simulate", "where it runs"},
    {"simulate", "how it is simulated"},
    {"simulate", "the answer"},
    {"replay", "what runs"},
    {"replay", "what changes"},
    {"replay", "the answer"},
    {"emulate", "the world"},
    {"emulate", "time"},
    {"emulate", "emulated ranks"},
    {"emulate", "the answer"},
    {"emulate", "the processes"},
};

static const struct {
    const char *command, *text;
} examples[] = {
    {"predict", "stepcast predict --model llama3-70b --cluster dgx-h100:16\n"
                "  stepcast predict --model llama3-70b --cluster dgx-h100:16 "
                "--tp 8 --pp 4 --json\n"
                "  stepcast predict --megatron train.sh --cluster dgx-h100 "
                "--measured train.log"},
    {"compare", "stepcast compare a.json b.json\n"
                "  stepcast compare train.sh train-tp4.sh --cluster "
                "dgx-h100:16"},
    {"simulate", "stepcast simulate --workload traces/dp4 --system system.json "
                 "--network ring4.yml\n"
                 "  stepcast simulate --workload traces/dp4 --system "
                 "system.json --network 'ring4@100GB/s,500ns'"},
    {"replay",
     "stepcast replay worker*.pt.trace.json.gz\n"
     "  stepcast replay trace.json --scale compute=0.5 --cuda-graphs\n"
     "  stepcast replay new.json --against old.json"},
    {"emulate", "stepcast emulate --cluster dgx-h100:8 --world-size 64 -- "
                "python3 train.py"},
    {"validate", "stepcast validate data/validation/bloom.csv\n"
                 "  stepcast validate --leave-out family runs.csv\n"
                 "  stepcast validate --rows gemm.csv.gz"},
    {"calibrate", "stepcast calibrate --nccl-tests all_reduce.log --cluster "
                  "dgx-h100:2 -o my-cluster.yml\n"
                  "  stepcast calibrate --runs mine.csv -o mine.yml"},
    {"shard", "stepcast shard tables.csv --cluster dgx-h100:1 --batch 4096"},
    {"coll", "stepcast coll all_reduce --cluster dgx-h100:2 --min 1M --max 1G"},
    {"list", "stepcast list models"},
    {"show", "stepcast show llama3-70b --layers\n"
             "  stepcast show --strategy --model megatron-22b --cluster "
             "dgx-a100-80g --tp 8"},
    {"explain", "stepcast explain MFU interval"},
    {"completion", "eval \"$(stepcast completion bash)\""},
};

static bool in_list(const char *list, const char *name)
{
    const char *at = list;
    size_t n = strlen(name);
    while ((at = strstr(at, name)) != NULL) {
        if (at[-1] == ' ' && at[n] == ' ') return true;
        at += n;
    }
    return false;
}

static void grouped(const char *command, sc_text *t)
{
    for (size_t i = 0; i < SC_COUNT(groups); i++) {
        const sc_key *keys = cli_help_keys(command, 0);
        if (strcmp(groups[i].command, command) != 0) continue;
        sc_text_add(t, "\n%s\n", groups[i].title);
        for (uint32_t n = 0; keys; keys = cli_help_keys(command, ++n))
            for (const sc_key *k = keys; k->name; k++)
                if (k->flag && k->group &&
                    strcmp(k->group, groups[i].title) == 0)
                    sc_schema_help_row(k, t);
    }
}

/* Whether a command has groups; whether it has the one of `key`. */
static bool has_group(const char *command, const sc_key *key)
{
    for (size_t i = 0; i < SC_COUNT(groups); i++)
        if (strcmp(groups[i].command, command) == 0 &&
            (!key || (key->group && strcmp(groups[i].title, key->group) == 0)))
            return true;
    return false;
}

static void rest(const char *command, sc_text *t)
{
    bool show = strcmp(command, "show") == 0;
    bool titled = false, first = show || strcmp(command, "compare") == 0;
    const sc_key *keys = cli_help_keys(command, 0);
    for (uint32_t i = 0; keys && !(first && i);
         keys = cli_help_keys(command, ++i))
        for (const sc_key *k = keys; k->name; k++) {
            if (!k->flag || has_group(command, k)) continue;
            if (!titled)
                sc_text_add(t, "\n%s\n",
                            has_group(command, NULL) ? "more options"
                                                     : "options");
            titled = true;
            sc_schema_help_row(k, t);
        }
    if (show)
        sc_text_add(t, "\n--strategy and --graph take the options of "
                       "`stepcast predict` too\n");
    else if (first)
        sc_text_add(t, "\nOptions of `stepcast predict` replace those of both "
                       "jobs.\n");
}

/* Some common options have no effect on commands that use neither random
 * numbers nor threads. */
static void common(const char *command, sc_text *t)
{
    bool plain = in_list(" list show explain completion coll ", command);
    sc_text_add(t, "\noptions of all commands\n");
    for (const sc_key *k = cli_common_keys; k->name; k++)
        if (k->flag && !(plain && in_list(" jobs seed ", k->name)))
            sc_schema_help_row(k, t);
}

void cli_help_page(const cli_command *cmd, sc_text *t)
{
    sc_text_add(t, "stepcast %s: %s\n\n%s", cmd->name, cmd->help,
                cli_help_usage(cmd->name));
    for (size_t i = 0; i < SC_COUNT(examples); i++)
        if (strcmp(examples[i].command, cmd->name) == 0)
            sc_text_add(t, "\nexamples\n  %s\n", examples[i].text);
    if (strcmp(cmd->name, "predict") == 0)
        sc_text_add(
            t, "\nOptions that are not given are inferred; the report lists "
               "choices and reasons.\n");
    grouped(cmd->name, t);
    rest(cmd->name, t);
    common(cmd->name, t);
    sc_text_add(t, "\nAn option without a value is switched off by "
                   "--no-NAME.  [...] is the default.\n");
}
