/* SPDX-License-Identifier: Apache-2.0 */
/* emu_executable.h - whether libraries can be preloaded into a program. */
#ifndef SC_EMU_EXECUTABLE_H
#define SC_EMU_EXECUTABLE_H

#include "base/base.h"

typedef enum sc_executable_kind {
    SC_EXECUTABLE_DYNAMIC, /* ELF with an interpreter: can be preloaded */
    SC_EXECUTABLE_STATIC,  /* ELF without an interpreter: cannot be preloaded */
    SC_EXECUTABLE_SCRIPT,  /* begins with #! */
    SC_EXECUTABLE_OTHER    /* not executable by the system */
} sc_executable_kind;

typedef struct sc_executable {
    sc_executable_kind kind;
    const char *interpreter; /* of a script: path; NULL */
    const char *argument;    /* of a script: the words after it; NULL: none */
} sc_executable;

/* Reads the bytes of an executable; strings live in the arena.  Errors:
 * SC_C_SYNTAX with the byte's offset, an ELF file whose tables lie outside;
 * SC_C_UNSUPPORTED, of another word size or byte order than x86-64's. */
sc_status sc_executable_read(const void *data, size_t len, const char *file,
                             sc_arena *a, sc_executable *out, sc_err *err);
#endif
