/* SPDX-License-Identifier: Apache-2.0 */
/* help.c - usage lines and option tables of the commands. */
#include "cli/emulate.h"
#include "cli/predict.h"
#include "cli/simulate.h"

#include <string.h>

typedef struct page {
    const char *command, *usage;
    const sc_key *keys[3];
    const char *const *words; /* words that may follow the command */
} page;

static const char *const kinds[] = {"models",   "devices",    "clusters",
                                    "software", "parameters", "failures",
                                    NULL};
static const char *const shells[] = {"bash", "zsh", "fish", NULL};

static const sc_key no_keys[] = {{0}};

static const page pages[] = {
    {"predict",
     "usage: stepcast predict --model M --cluster C [options]\n"
     "       stepcast predict --megatron train.sh --cluster C [options]\n",
     {sc_job_keys, cli_predict_keys, NULL},
     NULL},
    {"compare",
     "usage: stepcast compare A B [options of predict]\n"
     "       A and B: results of `predict --json`, jobs (job.yml), or other "
     "files that\n       predict reads with the options given here\n",
     {no_keys, sc_job_keys, cli_predict_keys},
     NULL},
    {"search",
     "usage: stepcast search --model M --cluster C [options of predict, each "
     "with one value or several]\n",
     {sc_job_keys, cli_search_keys, NULL},
     NULL},
    {"query",
     "usage: stepcast query FILE [--top N] [-o FILE.csv|FILE.sqlite]\n"
     "       stepcast query FILE --sql \"SELECT ... FROM points\"\n",
     {cli_query_keys, NULL, NULL},
     NULL},
    {"simulate",
     "usage: stepcast simulate --workload PREFIX --system FILE --network N "
     "[options]\n",
     {cli_simulate_keys, NULL, NULL},
     NULL},
    {"replay",
     "usage: stepcast replay TRACE... [options]\n"
     "       TRACE: a trace of PyTorch's profiler (.json, .json.gz, "
     ".json.zst), "
     "one for each\n       rank, or a report of Nsight Systems (.sqlite) of "
     "all ranks of a node;\n       beside them, execution traces of the same "
     "ranks\n",
     {cli_replay_keys, NULL, NULL},
     NULL},
    {"emulate",
     "usage: stepcast emulate --cluster C --world-size N [options] -- CMD...\n"
     "       stepcast emulate --plan --model M --cluster C [options of "
     "predict]\n"
     "       stepcast emulate --plan --peers PREFIX [options]\n",
     {sc_emu_keys, cli_emulate_keys, NULL},
     NULL},
    {"validate",
     "usage: stepcast validate FILE.csv... [options]\n",
     {cli_validate_keys, NULL, NULL},
     NULL},
    {"calibrate",
     "usage: stepcast calibrate --truth DIR [options]\n"
     "       stepcast calibrate --nccl-tests LOG... --cluster C [-o FILE]\n"
     "       stepcast calibrate --runs TABLE.csv [-o FILE]\n"
     "       stepcast calibrate --network TABLE [-o FILE]\n"
     "       stepcast calibrate --kernels TABLE... [--alone] [--into DIR]\n"
     "       stepcast calibrate --kernel-levels TABLE... [-o FILE]\n",
     {cli_calibrate_keys, NULL, NULL},
     NULL},
    {"coll",
     "usage: stepcast coll COLLECTIVE --cluster C [options]\n",
     {cli_coll_keys, NULL, NULL},
     sc_priced_coll_names},
    {"shard",
     "usage: stepcast shard TABLES.csv|TABLES.yml --cluster C --batch N "
     "[options]\n"
     "       stepcast shard --indices FILE\n",
     {cli_shard_keys, NULL, NULL},
     NULL},
    {"list",
     "usage: stepcast list "
     "models|devices|clusters|software|parameters|failures\n",
     {cli_list_keys, NULL, NULL},
     kinds},
    {"show",
     "usage: stepcast show NAME [--layers]\n"
     "       stepcast show --strategy|--graph --model M --cluster C ...\n",
     {cli_show_keys, sc_job_keys, cli_predict_keys},
     NULL},
    {"explain",
     "usage: stepcast explain [WORD|FIELD|ERROR|PARAMETER|OPTION ...]\n",
     {cli_explain_keys, NULL, NULL},
     NULL},
    {"completion",
     "usage: stepcast completion bash|zsh|fish\n"
     "       eval \"$(stepcast completion bash)\"\n",
     {NULL, NULL, NULL},
     shells},
};

static const page *find(const char *command)
{
    for (size_t i = 0; i < SC_COUNT(pages); i++)
        if (strcmp(pages[i].command, command) == 0) return &pages[i];
    return NULL;
}

const char *cli_help_usage(const char *command)
{
    const page *p = find(command);
    return p ? p->usage : "";
}

const char *const *cli_help_words(const char *command)
{
    const page *p = find(command);
    return p ? p->words : NULL;
}

const sc_key *cli_help_keys(const char *command, uint32_t i)
{
    const page *p = find(command);
    return p && i < 3 ? p->keys[i] : NULL;
}
