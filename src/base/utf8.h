/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.h - checks that text is valid UTF-8 (RFC 3629: shortest form, no
 * surrogates, up to U+10FFFF).
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/err.h"

/* The length of the valid sequence at the start of s[0..len); 0 if there is
 * none. A NUL byte is valid here. */
size_t utf8_length(const char *s, size_t len);

/* Copies the character at `*p`, which moves behind it, to `out`; a control
 * character or what is not UTF-8 becomes '?'.  `len`, over 0, is what is left.
 * Returns the bytes written, at most 4. */
size_t utf8_copy(const char **p, size_t len, char *out);

bool utf8_is_valid(const char *text, size_t len);

/* Refuses NUL bytes and invalid UTF-8, with the position of the first. */
sc_status utf8_check(const char *text, size_t len, const char *file,
                     sc_err *err);

/* Line and column of byte `offset`: columns count characters, from 1. */
sc_pos utf8_position(const char *text, size_t len, size_t offset,
                     const char *file);

#endif
