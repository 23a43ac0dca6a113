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
    [EMULATE_GLOO] = "libstepcast-gloo.so",
    [EMULATE_OPENMPI] = "libstepcast-openmpi.so",
    [EMULATE_MPICH] = "libstepcast-mpich.so",
    [EMULATE_CLOCK] = "libstepcast-clock.so",
    NULL};

/* The libraries that a program needs show what it uses. */
static const struct {
    const char *soname;
    emulate_lib lib;
} known[] = {{"libmpi.so.40", EMULATE_OPENMPI},
             {"libmpich.so.12", EMULATE_MPICH},
             {"libmpi.so.12", EMULATE_MPICH},
             {"libnccl.so.2", EMULATE_NCCL},
             {"libgloo.so.0", EMULATE_GLOO}};

/* Launchers set the variables that stepcast sets. (Not torchrun:
 * interpose/common/env.c.) */
static const char *const launchers[] = {"mpirun",     "mpiexec",    "orterun",
                                        "srun",       "prun",       "deepspeed",
                                        "horovodrun", "accelerate", NULL};

#define BIT(lib) (1u << (lib))

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
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
static sc_status resolve(cli *c, emulate_program *p, const char **runs)
{
    const char *path = p->path;
    for (int i = 0; i <= SCRIPTS; i++) {
        SC_TRY(read_program(c, path, &p->file));
        *runs = base_name(path);
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

static const char *asked_for(cli *c, const emulate_program *p, const char *lib)
{
    return sc_sprintf(c->arena, "%s loads %s", p->name, lib);
}

static uint32_t linked(const sc_executable *p, const char **soname)
{
    uint32_t libs = 0;
    for (size_t i = 0; i < SC_COUNT(known); i++)
        if (sc_executable_needs(p, known[i].soname)) {
            if (!libs) *soname = known[i].soname;
            libs |= BIT(known[i].lib);
        }
    return libs;
}

/* A program that loads MPI at run time (Python) uses the installed MPI. */
static sc_status which_mpi(cli *c, const sc_emu_config *e, emulate_program *p)
{
    static const char *const dirs[] = {"/usr/lib/x86_64-linux-gnu",
                                       "/usr/lib64", "/usr/local/lib",
                                       "/usr/lib"};
    bool has[2] = {false, false};
    (void)e;
    for (size_t i = 0; i < SC_COUNT(dirs); i++)
        for (size_t k = 0; k < 2; k++) {
            const char *file =
                sc_sprintf(c->arena, "%s/%s", dirs[i], known[k].soname);
            if (!file) return sc_error_nomem(c->err);
            has[k] = has[k] || access(file, R_OK) == 0;
        }
    if (has[0] == has[1])
        return sc_error(
            c->err, SC_EINPUT, SC_C_MISSING, sc_pos_file("--api mpi"),
            "choose one; a program that is linked with libmpi.so.40 or "
            "libmpich.so.12 needs no --api",
            has[0] ? "both Open MPI and MPICH are installed, and %s is linked "
                     "with neither"
                   : "%s loads no MPI library, and none is installed",
            p->name);
    p->libs = BIT(known[has[0] ? 0 : 1].lib);
    p->why = sc_sprintf(c->arena, "--api mpi: %s is installed",
                        has[0] ? "Open MPI" : "MPICH");
    return p->why ? SC_OK : sc_error_nomem(c->err);
}

static sc_status choose(cli *c, const sc_emu_config *e, const char *runs,
                        emulate_program *p)
{
    const char *soname = NULL;
    uint32_t libs = linked(&p->file, &soname);
    uint32_t mpi = libs & (BIT(EMULATE_OPENMPI) | BIT(EMULATE_MPICH));
    if (e->api == SC_EMU_API_MPI && !mpi) return which_mpi(c, e, p);
    if (e->api == SC_EMU_API_MPI) {
        p->libs = mpi;
        p->why = asked_for(c, p,
                           mpi & BIT(EMULATE_OPENMPI) ? "libmpi.so.40"
                                                      : "libmpich.so.12");
    } else if (e->api == SC_EMU_API_NCCL || e->api == SC_EMU_API_GLOO) {
        bool nccl = e->api == SC_EMU_API_NCCL;
        p->libs = BIT(nccl ? EMULATE_NCCL : EMULATE_GLOO);
        p->why = nccl ? "--api nccl" : "--api gloo";
    } else if (libs) {
        p->libs = libs;
        p->why = asked_for(c, p, soname);
    } else {
        p->libs = BIT(EMULATE_GLOO) | BIT(EMULATE_NCCL);
        p->why = sc_sprintf(
            c->arena,
            starts(runs, "python")
                ? "%s is run by Python; if it uses MPI, give --api mpi"
                : "%s loads no collective library itself; if it starts a "
                  "program that uses MPI, give --api mpi",
            p->name);
    }
    return p->why ? SC_OK : sc_error_nomem(c->err);
}

/* ---- our libraries ------------------------------------------------------- */

/* The folder of the interposers: when installed, or beside a build. */
static sc_status folder(cli *c, const char **out)
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
    *out = NULL;
    for (size_t i = 0; i < SC_COUNT(places) && !*out; i++) {
        const char *at = sc_sprintf(c->arena, "%s/%s", self, places[i]);
        if (!at) return sc_error_nomem(c->err);
        char *real = realpath(at, NULL);
        if (real) *out = sc_strdup(c->arena, real);
        free(real);
    }
    if (*out) return SC_OK;
    return sc_error(
        c->err, SC_EINPUT, SC_C_MISSING, sc_pos_file(self),
        "build all targets, or install stepcast as a whole",
        "the folder lib/stepcast with the libraries to preload is missing");
}

static sc_status preloads(cli *c, emulate_program *p)
{
    const char *dir = NULL, *list = "";
    SC_TRY(folder(c, &dir));
    for (int i = 0; i < EMULATE_N_LIBS; i++) {
        if (!(p->libs & BIT(i))) continue;
        const char *file =
            sc_sprintf(c->arena, "%s/%s", dir, cli_emulate_libs[i]);
        if (!file) return sc_error_nomem(c->err);
        if (access(file, R_OK) != 0)
            return sc_error(c->err, SC_EINPUT, SC_C_MISSING, sc_pos_file(file),
                            "build all targets; those for MPI need its headers "
                            "(libopenmpi-dev, libmpich-dev) when stepcast is "
                            "configured",
                            "the library that %s needs is not built", p->name);
        list = sc_sprintf(c->arena, "%s%s%s", list, *list ? ":" : "", file);
        if (!list) return sc_error_nomem(c->err);
    }
    const char *theirs = getenv("LD_PRELOAD");
    if (theirs && *theirs) list = sc_sprintf(c->arena, "%s:%s", list, theirs);
    p->preload = list;
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
    for (size_t i = 0; launchers[i]; i++)
        if (strcmp(launchers[i], p->name) == 0)
            return sc_error(
                c->err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(p->argv[0]),
                "write after -- the program that it would start",
                "%s starts ranks by itself, as `stepcast emulate` does",
                p->name);
    return SC_OK;
}

sc_status cli_emulate_program(cli *c, const sc_emu_config *e, char *const *argv,
                              emulate_program *out)
{
    emulate_program p = {.argv = argv, .name = base_name(argv[0])};
    const char *runs = "";
    SC_TRY(no_launcher(c, &p));
    p.path = look_up(c, argv[0]);
    if (!p.path) return not_found(c, argv[0]);
    SC_TRY(privileged(c, &p));
    SC_TRY(resolve(c, &p, &runs));
    SC_TRY(choose(c, e, runs, &p));
    if (e->clock == SC_EMU_VIRTUAL) p.libs |= BIT(EMULATE_CLOCK);
    SC_TRY(preloads(c, &p));
    *out = p;
    return SC_OK;
}
