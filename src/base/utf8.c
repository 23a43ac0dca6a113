/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c - checks that text is valid UTF-8. */
#include "base/utf8.h"

#include <string.h>

static bool is_tail(unsigned char c)
{
    return (c & 0xC0) == 0x80;
}

size_t utf8_length(const char *s, size_t len)
{
    const unsigned char *p = (const unsigned char *)s;
    if (len == 0) return 0;
    if (p[0] < 0x80) return 1;
    if (p[0] < 0xC2 || len < 2 || !is_tail(p[1])) return 0;
    if (p[0] < 0xE0) return 2;
    if (len < 3 || !is_tail(p[2])) return 0;
    if (p[0] < 0xF0) {
        bool overlong = p[0] == 0xE0 && p[1] < 0xA0;
        bool surrogate = p[0] == 0xED && p[1] > 0x9F;
        return overlong || surrogate ? 0 : 3;
    }
    if (len < 4 || !is_tail(p[3])) return 0;
    bool low = p[0] == 0xF0 && p[1] < 0x90;
    bool high = p[0] > 0xF4 || (p[0] == 0xF4 && p[1] > 0x8F);
    return low || high ? 0 : 4;
}

/* The number of bytes before the first that is not valid. */
static size_t valid_span(const char *text, size_t len)
{
    size_t i = 0, n = 1;
    while (i < len && n > 0) {
        uint64_t eight; /* text is mostly ASCII, so eight bytes are checked at
                           once */
        while (len - i >= sizeof eight) {
            memcpy(&eight, text + i, sizeof eight);
            if ((eight & 0x8080808080808080u) != 0) break;
            i += sizeof eight;
        }
        n = utf8_length(text + i, len - i);
        i += n;
    }
    return i;
}

size_t utf8_copy(const char **p, size_t len, char *out)
{
    bool control = (unsigned char)**p < ' ' || **p == 0x7F;
    size_t n = control ? 0 : utf8_length(*p, len);
    if (n)
        memcpy(out, *p, n);
    else
        *out = '?';
    *p += n ? n : 1;
    return n ? n : 1;
}

bool utf8_is_valid(const char *text, size_t len)
{
    return valid_span(text, len) == len;
}

sc_status utf8_check(const char *text, size_t len, const char *file,
                     sc_err *err)
{
    const char *nul = len == 0 ? NULL : memchr(text, '\0', len);
    size_t i = valid_span(text, nul == NULL ? len : (size_t)(nul - text));
    if (i == len) return SC_OK;
    sc_pos pos = utf8_position(text, len, i, file);
    if (text[i] == '\0')
        return sc_error(err, SC_EINPUT, SC_C_SYNTAX, pos, "is it a text file?",
                        "a NUL byte");
    return sc_error(err, SC_EINPUT, SC_C_SYNTAX, pos, "text must be UTF-8",
                    "byte 0x%02X is not valid UTF-8", (unsigned char)text[i]);
}

sc_pos utf8_position(const char *text, size_t len, size_t offset,
                     const char *file)
{
    if (offset > len) offset = len;
    sc_pos pos = {file, 1, 1};
    size_t start = 0;
    for (size_t i = 0; i < offset; i++)
        if (text[i] == '\n') {
            pos.line++;
            start = i + 1;
        }
    for (size_t i = start; i < offset; i++)
        if (!is_tail((unsigned char)text[i])) pos.col++;
    return pos;
}
