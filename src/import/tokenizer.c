/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.c - vocabulary sizes of published tokenizers. */
#include "import/tokenizer.h"

#include "base/util.h"

#include <ctype.h>
#include <string.h>

/* Types whose size does not depend on a file. */
static const struct {
    const char *type;
    int64_t size;
} types[] = {
    {"GPT2BPETokenizer", 50257},
    {"Llama2Tokenizer", 32000},
    {"LLamaTokenizer", 32000},
};

/* Rows of the embedding in the published models, before padding. The first
 * entry whose parts all occur in the name is taken, so specific names come
 * first. */
static const struct {
    const char *part, *also; /* lower case; also: NULL */
    int64_t size;
    const char *name;
} models[] = {
    {"gpt-oss", NULL, 201088, "gpt-oss"},
    {"gpt2", NULL, 50257, "GPT-2 BPE"},
    {"gpt-neox", NULL, 50432, "GPT-NeoX"},
    {"pythia", NULL, 50432, "GPT-NeoX"},
    {"llama-4", NULL, 202048, "Llama 4"},
    {"llama4", NULL, 202048, "Llama 4"},
    {"llama-3", NULL, 128256, "Llama 3"},
    {"llama3", NULL, 128256, "Llama 3"},
    {"llama-2", NULL, 32000, "Llama 2"},
    {"llama2", NULL, 32000, "Llama 2"},
    {"nemo", "mistral", 131072, "Mistral NeMo"},
    {"mixtral", "8x22b", 32768, "Mixtral 8x22B"},
    {"mixtral", NULL, 32000, "Mixtral 8x7B"},
    {"mistral-7b-v0.3", NULL, 32768, "Mistral 7B v0.3"},
    {"mistral-7b", NULL, 32000, "Mistral 7B"},
    {"qwen2", NULL, 151936, "Qwen 2"},
    {"qwen3", NULL, 151936, "Qwen 3"},
    {"deepseek-v2", NULL, 102400, "DeepSeek-V2"},
    {"deepseek-v3", NULL, 129280, "DeepSeek-V3"},
    {"deepseek-r1", NULL, 129280, "DeepSeek-V3"},
    {"gemma-3", NULL, 262144, "Gemma 3"},
    {"gemma", NULL, 256000, "Gemma"},
};

static bool contains(const char *text, const char *part)
{
    size_t n = strlen(part);
    for (; *text; text++) {
        size_t i = 0;
        while (i < n && text[i] &&
               tolower((unsigned char)text[i]) == (unsigned char)part[i])
            i++;
        if (i == n) return true;
    }
    return false;
}

int64_t import_tokenizer(const char *type, const char *model, const char **what)
{
    *what = type ? type : "GPT2BPETokenizer, the default of pretrain_gpt.py";
    if (!type) return 50257;
    for (size_t i = 0; i < SC_COUNT(types); i++)
        if (strcmp(types[i].type, type) == 0) return types[i].size;
    for (size_t i = 0; i < SC_COUNT(models); i++) {
        if (!contains(model, models[i].part)) continue;
        if (models[i].also && !contains(model, models[i].also)) continue;
        *what = models[i].name;
        return models[i].size;
    }
    return 0;
}
