/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executable.c - an executable's dynamic section (System V gABI, chapter 5), or
 * the first line of a script.
 */
#include "emu/emu_executable.h"

#include <elf.h>
#include <string.h>

#define MAX_NEEDED 4096
#define MAX_LINE   255 /* of "#!", as Linux reads it */

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

/* The file offset of an address of the program. */
static sc_status file_offset(const image *m, uint64_t address, uint64_t *out)
{
    Elf64_Phdr p;
    for (uint32_t i = 0; i < m->head.e_phnum; i++) {
        SC_TRY(segment(m, i, &p));
        if (p.p_type != PT_LOAD || address < p.p_vaddr ||
            address - p.p_vaddr >= p.p_filesz)
            continue;
        if (p.p_offset > m->len)
            return broken(m, m->head.e_phoff,
                          "a segment lies outside the file");
        *out = p.p_offset + (address - p.p_vaddr);
        return SC_OK;
    }
    return broken(m, m->head.e_phoff, "its names are in no segment");
}

/* The entries of a dynamic section, up to its end. */
static sc_status entry(const image *m, const Elf64_Phdr *dynamic, uint64_t i,
                       Elf64_Dyn *out)
{
    uint64_t at = dynamic->p_offset + i * sizeof *out;
    *out = (Elf64_Dyn){.d_tag = DT_NULL};
    if (i >= dynamic->p_filesz / sizeof *out) return SC_OK;
    if (dynamic->p_offset > m->len || !inside(m, at, sizeof *out))
        return broken(m, dynamic->p_offset,
                      "the dynamic section lies outside the file");
    memcpy(out, m->data + at, sizeof *out);
    return SC_OK;
}

static sc_status name_at(const image *m, uint64_t names, uint64_t offset,
                         sc_executable *out)
{
    if (offset > m->len || !inside(m, names, offset + 1))
        return broken(m, names, "a library's name lies outside the file");
    const unsigned char *at = m->data + names + offset;
    size_t room = m->len - (size_t)(names + offset);
    if (!memchr(at, 0, room))
        return broken(m, names + offset, "a library's name does not end");
    const char *name = sc_strdup(m->a, (const char *)at);
    if (!name) return sc_error_nomem(m->err);
    out->needed[out->n_needed++] = name;
    return SC_OK;
}

static sc_status needed(const image *m, const Elf64_Phdr *dynamic,
                        sc_executable *out)
{
    Elf64_Dyn d;
    uint64_t names = 0;
    uint32_t n = 0;
    bool found = false;
    for (uint64_t i = 0;; i++) {
        SC_TRY(entry(m, dynamic, i, &d));
        if (d.d_tag == DT_NULL) break;
        n += d.d_tag == DT_NEEDED;
        if (d.d_tag != DT_STRTAB) continue;
        SC_TRY(file_offset(m, d.d_un.d_ptr, &names));
        found = true;
    }
    if (n == 0) return SC_OK;
    if (!found || n > MAX_NEEDED)
        return broken(m, dynamic->p_offset, "no table of names");
    out->needed = SC_NEW_N(m->a, const char *, n);
    if (!out->needed) return sc_error_nomem(m->err);
    out->n_needed = 0; /* the last of several dynamic sections counts */
    for (uint64_t i = 0;; i++) {
        SC_TRY(entry(m, dynamic, i, &d));
        if (d.d_tag == DT_NULL) return SC_OK;
        if (d.d_tag == DT_NEEDED) SC_TRY(name_at(m, names, d.d_un.d_val, out));
    }
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
        if (p.p_type == PT_DYNAMIC) SC_TRY(needed(m, &p, out));
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

bool sc_executable_needs(const sc_executable *p, const char *soname)
{
    for (uint32_t i = 0; i < p->n_needed; i++)
        if (strcmp(p->needed[i], soname) == 0) return true;
    return false;
}
