/* SPDX-License-Identifier: Apache-2.0 */
/* How a program is linked: ELF files built here byte by byte, cut at every
 * length, with tables that point elsewhere; first lines of scripts. */
#include "emu/emu_executable.h"
#include "unit.h"

#include <elf.h>
#include <string.h>

typedef struct file {
    Elf64_Ehdr head;
    Elf64_Phdr load, interp, dynamic;
} file;

static sc_arena arena;
static sc_err err;

static int set_up(void **state)
{
    (void)state;
    sc_arena_init(&arena, 0);
    sc_err_init(&err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sc_arena_free(&arena);
    return 0;
}

static file usual(void)
{
    file f = {.head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3,
                                   ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                       .e_type = ET_EXEC,
                       .e_machine = EM_X86_64,
                       .e_phoff = offsetof(file, load),
                       .e_phentsize = sizeof(Elf64_Phdr),
                       .e_phnum = 3},
              .load = {.p_type = PT_LOAD, .p_filesz = sizeof(file)},
              .interp = {.p_type = PT_INTERP},
              .dynamic = {.p_type = PT_DYNAMIC}};
    return f;
}

static sc_status read_bytes(const void *data, size_t len, sc_executable *out)
{
    sc_err_init(&err);
    return sc_executable_read(data, len, "a.out", &arena, out, &err);
}

static void linked_dynamically(void **state)
{
    (void)state;
    file f = usual();
    sc_executable p;
    assert_int_equal(read_bytes(&f, sizeof f, &p), SC_OK);
    assert_int_equal(p.kind, SC_EXECUTABLE_DYNAMIC);
    assert_null(p.interpreter);
}

static void linked_statically(void **state)
{
    (void)state;
    file f = usual();
    sc_executable p;
    f.interp.p_type = PT_NULL;
    assert_int_equal(read_bytes(&f, sizeof f, &p), SC_OK);
    assert_int_equal(p.kind, SC_EXECUTABLE_STATIC);
    f.head.e_phnum = 0;
    assert_int_equal(read_bytes(&f, sizeof f, &p), SC_OK);
    assert_int_equal(p.kind, SC_EXECUTABLE_STATIC);
}

/* Shorter files are errors that say where they end; the output is left alone. */
static void cut(void **state)
{
    (void)state;
    file f = usual();
    for (size_t n = 0; n < sizeof f; n++) {
        sc_executable p = {.argument = "kept"};
        sc_status s = read_bytes(&f, n, &p);
        if (n < SELFMAG) {
            assert_int_equal(s, SC_OK);
            assert_int_equal(p.kind, SC_EXECUTABLE_OTHER);
            continue;
        }
        assert_int_equal(s, SC_EINPUT);
        assert_int_equal(err.d[0].code, SC_C_SYNTAX);
        assert_int_equal(err.d[0].line, 0);
        assert_true(err.d[0].col > 0);
        assert_string_equal(p.argument, "kept");
    }
}

static void refused(file f, sc_code code, const char *what)
{
    sc_executable p;
    assert_int_equal(read_bytes(&f, sizeof f, &p), SC_EINPUT);
    assert_int_equal(err.d[0].code, code);
    assert_non_null(strstr(err.d[0].msg, what));
}

static void tables_elsewhere(void **state)
{
    (void)state;
    file f = usual();
    f.head.e_ident[EI_CLASS] = ELFCLASS32;
    refused(f, SC_C_UNSUPPORTED, "64-bit");
    f = usual();
    f.head.e_ident[EI_DATA] = ELFDATA2MSB;
    refused(f, SC_C_UNSUPPORTED, "little-endian");
    f = usual();
    f.head.e_phoff = UINT64_MAX - 8;
    refused(f, SC_C_SYNTAX, "program headers");
    f = usual();
    f.head.e_phentsize = 8;
    refused(f, SC_C_SYNTAX, "program headers");
}

static void script(const char *line, const char *interpreter,
                   const char *argument)
{
    sc_executable p;
    assert_int_equal(read_bytes(line, strlen(line), &p), SC_OK);
    if (!interpreter) {
        assert_int_equal(p.kind, SC_EXECUTABLE_OTHER);
        assert_null(p.interpreter);
        return;
    }
    assert_int_equal(p.kind, SC_EXECUTABLE_SCRIPT);
    assert_string_equal(p.interpreter, interpreter);
    if (argument)
        assert_string_equal(p.argument, argument);
    else
        assert_null(p.argument);
}

static void scripts(void **state)
{
    (void)state;
    script("#!/bin/sh\necho\n", "/bin/sh", NULL);
    script("#!/bin/sh", "/bin/sh", NULL);
    script("#! /usr/bin/env python3 \nimport torch", "/usr/bin/env", "python3");
    script("#!/usr/bin/env -S python3 -u\r\n", "/usr/bin/env", "-S python3 -u");
    script("#!", NULL, NULL);
    script("#! \n/bin/sh", NULL, NULL);
    script("echo hello", NULL, NULL);
    script("", NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(linked_dynamically, set_up, tear_down),
        cmocka_unit_test_setup_teardown(linked_statically, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tables_elsewhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(scripts, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
