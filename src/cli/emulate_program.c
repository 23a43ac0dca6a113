/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulate_program.c - finds the program to start, and the interposers for the
 * libraries that it uses.
 */
#define _XOPEN_SOURCE 700 /* realpath() */
#include "cli/emulate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_PROGRAM ((size_t)1 << 30)
#define SCRIPTS     4 /* a script's interpreter may itself be a script */

const char *const cli_emulate_libs[] = {
    [EMULATE_NCCL] = "libnccl.so.2",
    [EMULATE_TORCH] = "libstepcast-torch.so",
    [EMULATE_MPI] = "libstepcast-mpi.so",
    [EMULATE_CLOCK] = "libstepcast-clock.so",
    NULL};

/* Programs that start ranks by themselves, up to a point in the name:
 * mpirun.openmpi. */
static const char *const launchers[] = {
    "mpirun",  "mpiexec", "orterun",  "srun",       "prun",
    "prterun", "aprun",   "torchrun", "accelerate", NULL};
/* Modules of Python that do. */
static const char *const modules[] = {"torch.distributed.run",
                                      "torch.distributed.launch",
                                      "accelerate.commands.launch", NULL};
/* Those whose processes get other variables than the ranks need. */
static const char *const refused[] = {"deepspeed", "horovodrun", NULL};

#define BIT(lib) (1u << (lib))

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- the file ------------------------------------------------------------ */

static bool executable(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
           access(path, X_OK) == 0;
}

/* Finds a program like execvp(); NULL: not found. */
static const char *look_up(cli *c, const char *name)
{
    const char *path = getenv("PATH");
    if (strchr(name, '/')) return executable(name) ? name : NULL;
    for (const char *at = path ? path : "/usr/bin:/bin"; *at;) {
        size_t n = strcspn(at, ":");
        const char *file = n ? sc_sprintf(c->arena, "%.*s/%s", (int)n, at, name)
                             : sc_sprintf(c->arena, "./%s", name);
        if (file && executable(file)) return file;
        at += n + (at[n] == ':');
    }
    return NULL;
}

static sc_status not_found(cli *c, const char *name)
{
    struct stat st;
    bool there = strchr(name, '/') && stat(name, &st) == 0;
    if (there && S_ISDIR(st.st_mode))
        return sc_error(c->err, SC_EINPUT, SC_C_REFERENCE, sc_pos_file(name),
                        "write the program and its arguments after --",
                        "a folder is not a program");
    if (there)
        return sc_error(c->err, SC_EINPUT, SC_C_REFERENCE, sc_pos_file(name),
                        "chmod +x it, or name its interpreter: -- python3 "
                        "train.py",
                        "the file is not executable");
    bool here = !strchr(name, '/') && stat(name, &st) == 0;
    const char *hint =
        here ? sc_sprintf(c->arena, "write ./%s for the one in this folder",
                          name)
             : "write the program and its arguments after --";
    return sc_error(c->err, SC_EINPUT, SC_C_REFERENCE, sc_pos_file(name), hint,
                    "no such program");
}

static sc_status read_program(cli *c, const char *path, sc_executable *out)
{
    char *data = NULL;
    size_t len = 0;
    sc_arena files; /* freed afterwards */
    sc_arena_init(&files, 2 * MAX_PROGRAM);
    sc_status s = sc_file_read(path, MAX_PROGRAM, &files, &data, &len, c->err);
    if (s == SC_OK)
        s = sc_executable_read(data, len, path, c->arena, out, c->err);
    sc_arena_free(&files);
    return s;
}

/* "#!/usr/bin/env -S python3 -u" runs python3. */
static const char *behind_env(cli *c, const sc_executable *p)
{
    const char *at = p->argument ? p->argument : "";
    if (strcmp(base_name(p->interpreter), "env") != 0) return p->interpreter;
    while (*at == '-' || strchr(at, '=')) {
        size_t n = strcspn(at, " \t");
        const char *eq = strchr(at, '=');
        if (*at != '-' && (!eq || eq > at + n)) break;
        at += n + strspn(at + n, " \t");
    }
    return sc_strndup(c->arena, at, strcspn(at, " \t"));
}

/* Follows interpreters to the file that the system loads. */
static sc_status resolve(cli *c, emulate_program *p)
{
    const char *path = p->path;
    for (int i = 0; i <= SCRIPTS; i++) {
        SC_TRY(read_program(c, path, &p->file));
        if (p->file.kind != SC_EXECUTABLE_SCRIPT) break;
        const char *name = behind_env(c, &p->file);
        if (!name) return sc_error_nomem(c->err);
        const char *next = look_up(c, name);
        if (!next)
            return sc_error(c->err, SC_EINPUT, SC_C_REFERENCE,
                            (sc_pos){path, 1, 1}, NULL,
                            "its interpreter \"%.80s\" does not exist", name);
        path = next;
    }
    if (p->file.kind == SC_EXECUTABLE_DYNAMIC) return SC_OK;
    if (p->file.kind == SC_EXECUTABLE_STATIC)
        return sc_error(c->err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_file(path),
                        "link it dynamically (without -static)",
                        "a statically linked program loads no libraries that "
                        "could be interposed");
    return sc_error(c->err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_file(path),
                    "a script begins with #! and its interpreter",
                    "neither a program nor a script");
}

/* ---- its libraries ------------------------------------------------------- */

/* All interposers step aside until the process calls their library, so none
 * has to be chosen. */
static void choose(const sc_emu_config *e, emulate_program *p)
{
    static const struct {
        uint32_t libs;
        const char *why;
    } of[] = {[SC_EMU_API_AUTO] = {BIT(EMULATE_NCCL) | BIT(EMULATE_TORCH) |
                                       BIT(EMULATE_MPI),
                                   "the libraries that the program called"},
              [SC_EMU_API_NCCL] = {BIT(EMULATE_NCCL), "--api nccl"},
              [SC_EMU_API_MPI] = {BIT(EMULATE_MPI), "--api mpi"},
              [SC_EMU_API_GLOO] = {BIT(EMULATE_TORCH), "--api gloo"},
              [SC_EMU_API_OPENMPI] = {BIT(EMULATE_MPI), "--api openmpi"},
              [SC_EMU_API_MPICH] = {BIT(EMULATE_MPI), "--api mpich"}};

    p->libs = of[e->api].libs;
    p->why = of[e->api].why;
    if (e->clock == SC_EMU_VIRTUAL) p->libs |= BIT(EMULATE_CLOCK);
}

/* ---- our libraries ------------------------------------------------------- */

/* When installed, or beside a build. */
sc_status cli_emulate_lib_dir(cli *c, emulate_program *p)
{
    static const char *const places[] = {"../lib/stepcast", "lib/stepcast"};
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return sc_error(c->err, SC_EIO, SC_C_IO, sc_pos_file("/proc/self/exe"),
                        NULL, "can't find the program's own file: %s",
                        sc_errno_text(errno));
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    if (slash) *slash = '\0';
    p->lib_dir = NULL;
    for (size_t i = 0; i < SC_COUNT(places) && !p->lib_dir; i++) {
        const char *at = sc_sprintf(c->arena, "%s/%s", self, places[i]);
        if (!at) return sc_error_nomem(c->err);
        char *real = realpath(at, NULL);
        if (real) p->lib_dir = sc_strdup(c->arena, real);
        free(real);
    }
    if (p->lib_dir) return SC_OK;
    return sc_error(
        c->err, SC_EINPUT, SC_C_MISSING, sc_pos_file(self),
        "build all targets, or install stepcast as a whole",
        "the folder lib/stepcast with the libraries to preload is missing");
}

/* A library that this stepcast was built without; --api auto does without
 * it. */
static sc_status not_built(cli *c, const char *file)
{
    return sc_error(c->err, SC_EINPUT, SC_C_MISSING, sc_pos_file(file),
                    "build all targets; that for MPI needs the headers of an "
                    "MPI library (libopenmpi-dev, libmpich-dev)",
                    "the library to preload is not built");
}

sc_status cli_emulate_preload(cli *c, const sc_emu_config *e,
                              const char *folder, emulate_program *p)
{
    const char *list = "";
    for (int i = 0; i < EMULATE_N_LIBS; i++) {
        if (!(p->libs & BIT(i))) continue;
        const char *file =
            sc_sprintf(c->arena, "%s/%s", p->lib_dir, cli_emulate_libs[i]);
        if (!file) return sc_error_nomem(c->err);
        if (access(file, R_OK) != 0) {
            if (e->api != SC_EMU_API_AUTO || i == EMULATE_CLOCK)
                return not_built(c, file);
            p->libs &= ~BIT(i);
            continue;
        }
        list = sc_sprintf(c->arena, "%s%s%s/%s", list, *list ? ":" : "", folder,
                          cli_emulate_libs[i]);
        if (!list) return sc_error_nomem(c->err);
    }
    const char *theirs = getenv("LD_PRELOAD");
    if (theirs && *theirs) list = sc_sprintf(c->arena, "%s:%s", list, theirs);
    p->preload = list;
    if (p->libs & BIT(EMULATE_TORCH)) {
        p->python = sc_sprintf(c->arena, "%s/python", folder);
        if (!p->python) return sc_error_nomem(c->err);
    }
    return list ? SC_OK : sc_error_nomem(c->err);
}

/* The system ignores preloads for privileged programs. */
static sc_status privileged(cli *c, const emulate_program *p)
{
    struct stat st;
    if (stat(p->path, &st) != 0 || !(st.st_mode & (S_ISUID | S_ISGID)))
        return SC_OK;
    return sc_error(c->err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_file(p->path),
                    NULL,
                    "the system preloads nothing into set-user-ID "
                    "programs");
}

static sc_status no_launcher(cli *c, const emulate_program *p)
{
    for (size_t i = 0; refused[i]; i++)
        if (strcmp(refused[i], p->name) == 0)
            return sc_error(
                c->err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(p->argv[0]),
                "write after -- the program that it would start",
                "%s starts ranks by itself, as `stepcast emulate` does",
                p->name);
    return SC_OK;
}

static bool is_launcher(const emulate_program *p)
{
    for (size_t i = 0; launchers[i]; i++) {
        size_t n = strlen(launchers[i]);
        if (strncmp(p->name, launchers[i], n) == 0 &&
            (!p->name[n] || p->name[n] == '.'))
            return true;
    }
    for (char *const *w = p->argv; w[0] && w[1]; w++)
        for (size_t i = 0; strcmp(w[0], "-m") == 0 && modules[i]; i++)
            if (strcmp(w[1], modules[i]) == 0) return true;
    return false;
}

sc_status cli_emulate_program(cli *c, const sc_emu_config *e, char *const *argv,
                              emulate_program *out)
{
    emulate_program p = {.argv = argv, .name = base_name(argv[0])};
    SC_TRY(no_launcher(c, &p));
    p.path = look_up(c, argv[0]);
    if (!p.path) return not_found(c, argv[0]);
    SC_TRY(privileged(c, &p));
    SC_TRY(resolve(c, &p));
    p.launcher = is_launcher(&p);
    choose(e, &p);
    *out = p;
    return SC_OK;
}
