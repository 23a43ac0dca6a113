/* SPDX-License-Identifier: Apache-2.0 */
/* name.c - compares names without case, blanks and punctuation. */
#include "base/name.h"

#include <stddef.h>
#include <string.h>

char name_lower(char c)
{
    const char *upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *at = c == '\0' ? NULL : strchr(upper, c);
    if (at == NULL) return c;
    return "abcdefghijklmnopqrstuvwxyz"[at - upper];
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

void name_fold(const char *name, char out[NAME_FOLDED + 1])
{
    size_t n = 0;
    for (const char *at = name; *at != '\0' && n < NAME_FOLDED; at++) {
        char c = name_lower(*at);
        bool point = c == '.' && at > name && is_digit(at[-1]) &&
                     is_digit(at[1]); /* 1.3b is not 13b */
        if ((c >= 'a' && c <= 'z') || is_digit(c) || point) out[n++] = c;
    }
    out[n] = '\0';
}

bool name_is(const char *folded, const char *name)
{
    char other[NAME_FOLDED + 1];
    name_fold(name, other);
    return strcmp(folded, other) == 0;
}

bool name_slip(const char *word, const char *name)
{
    int count[256] = {0};
    bool same = strlen(word) == strlen(name);
    if (strncmp(name, word, strlen(word)) == 0) return true;
    for (const char *c = word; *c; c++) count[(unsigned char)*c]++;
    for (const char *c = name; *c; c++) count[(unsigned char)*c]--;
    for (int i = 0; i < 256; i++) same = same && count[i] == 0;
    return same;
}
