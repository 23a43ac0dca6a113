/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executable.c - an executable's program headers (System V gABI, chapter 5), or
 * the first line of a script.
 */
#include "emu/emu_executable.h"

#include <elf.h>
#include <string.h>

#define MAX_LINE 255 /* of "#!", as Linux reads it */

typedef struct image {
    const unsigned char *data;
    size_t len;
    const char *file;
    Elf64_Ehdr head;
    sc_arena *a;
    sc_err *err;
} image;

static sc_status broken(const image *m, uint64_t at, const char *what)
{
    return sc_error(m->err, SC_EINPUT, SC_C_SYNTAX, sc_pos_byte(m->file, at),
                    "is the file complete?", "%s", what);
}

static bool inside(const image *m, uint64_t at, uint64_t n)
{
    return at <= m->len && n <= m->len - at;
}

static sc_status segment(const image *m, uint32_t i, Elf64_Phdr *out)
{
    uint64_t at = m->head.e_phoff + (uint64_t)i * sizeof *out;
    if (m->head.e_phoff > m->len || !inside(m, at, sizeof *out))
        return broken(m, m->head.e_phoff,
                      "the program headers lie outside the file");
    memcpy(out, m->data + at, sizeof *out);
    return SC_OK;
}

static sc_status read_elf(image *m, sc_executable *out)
{
    Elf64_Phdr p;
    if (m->len < sizeof m->head)
        return broken(m, m->len, "the file ends within its header");
    memcpy(&m->head, m->data, sizeof m->head);
    if (m->head.e_ident[EI_CLASS] != ELFCLASS64 ||
        m->head.e_ident[EI_DATA] != ELFDATA2LSB)
        return sc_error(m->err, SC_EINPUT, SC_C_UNSUPPORTED,
                        sc_pos_file(m->file), NULL,
                        "not a 64-bit little-endian program");
    if (m->head.e_phentsize != sizeof p && m->head.e_phnum)
        return broken(m, offsetof(Elf64_Ehdr, e_phentsize),
                      "program headers of an unknown size");
    out->kind = SC_EXECUTABLE_STATIC;
    for (uint32_t i = 0; i < m->head.e_phnum; i++) {
        SC_TRY(segment(m, i, &p));
        if (p.p_type == PT_INTERP) out->kind = SC_EXECUTABLE_DYNAMIC;
    }
    return SC_OK;
}

static sc_status read_script(const image *m, sc_executable *out)
{
    static const char blanks[] = " \t";
    const char *text = (const char *)m->data + 2;
    size_t room = m->len - 2 < MAX_LINE ? m->len - 2 : MAX_LINE;
    char *line = sc_strndup(m->a, text, room);
    if (!line) return sc_error_nomem(m->err);
    line[strcspn(line, "\r\n")] = '\0';
    line += strspn(line, blanks);
    size_t n = strcspn(line, blanks);
    if (n == 0) return SC_OK; /* the system refuses it */
    out->kind = SC_EXECUTABLE_SCRIPT;
    out->interpreter = sc_strndup(m->a, line, n);
    if (!out->interpreter) return sc_error_nomem(m->err);
    line += n + strspn(line + n, blanks);
    size_t end = strlen(line);
    while (end > 0 && strchr(blanks, line[end - 1])) end--;
    if (end == 0) return SC_OK;
    out->argument = sc_strndup(m->a, line, end);
    return out->argument ? SC_OK : sc_error_nomem(m->err);
}

sc_status sc_executable_read(const void *data, size_t len, const char *file,
                             sc_arena *a, sc_executable *out, sc_err *err)
{
    image m = {.data = data, .len = len, .file = file, .a = a, .err = err};
    sc_executable p = {.kind = SC_EXECUTABLE_OTHER};
    if (len >= SELFMAG && memcmp(data, ELFMAG, SELFMAG) == 0)
        SC_TRY(read_elf(&m, &p));
    else if (len >= 2 && memcmp(data, "#!", 2) == 0)
        SC_TRY(read_script(&m, &p));
    *out = p;
    return SC_OK;
}
