/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulate_folder.c - the folder that the launcher and the ranks share
 * (interpose/common/live.h lists its files).
 */
#define _XOPEN_SOURCE 700 /* realpath() */
#include "cli/emulate.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static sc_status failed(cli *c, const char *path, const char *what)
{
    return sc_error(c->err, SC_EIO, SC_C_IO, sc_pos_file(path),
                    "TMPDIR names another folder for it", "%s: %s", what,
                    sc_errno_text(errno));
}

/* The program may change its working directory. */
static const char *absolute(cli *c, const char *path)
{
    char *real = realpath(path, NULL);
    char *out = sc_strdup(c->arena, real ? real : path);
    free(real);
    return out;
}

/* The path after the colon of "table:FILE,ranks=16", or a plug-in's. */
static const char *delay_model(cli *c, const char *text)
{
    const char *colon = strchr(text, ':');
    if (!text[0]) return text;
    if (!colon) return strchr(text, '/') ? absolute(c, text) : text;
    const char *rest = strstr(colon, SC_EMU_TABLE_RANKS);
    if (!rest) rest = text + strlen(text);
    const char *file =
        sc_strndup(c->arena, colon + 1, (size_t)(rest - colon) - 1);
    if (file) file = absolute(c, file);
    if (!file) return NULL;
    return sc_sprintf(c->arena, "%.*s%s%s", (int)(colon - text) + 1, text, file,
                      rest);
}

/* "dir/prefix" of traces: the folder must exist, and the prefix must not be
 * a file. */
static const char *prefix(cli *c, const char *text)
{
    const char *slash = strrchr(text, '/');
    if (strcmp(text, "mirror") == 0 || strncmp(text, "scout:", 6) == 0)
        return text;
    const char *dir =
        slash ? sc_strndup(c->arena, text, (size_t)(slash - text) + 1) : ".";
    dir = dir ? absolute(c, dir) : NULL;
    return dir ? sc_sprintf(c->arena, "%s/%s", dir, slash ? slash + 1 : text)
               : NULL;
}

static sc_status options_file(emulate_run *r)
{
    cli *c = r->c;
    sc_emu_options o = *r->e;
    struct stat st;
    if (o.cluster && stat(o.cluster, &st) == 0)
        o.cluster = absolute(c, o.cluster);
    if (o.delay_model) o.delay_model = delay_model(c, o.delay_model);
    if (o.profile) o.profile = absolute(c, o.profile);
    if (o.peers) o.peers = prefix(c, o.peers);
    sc_opt_set set = {sc_emu_keys, &o, r->set->given};
    sc_text t;
    sc_text_init(&t);
    cli_dump_lines(&set, NULL, &t);
    sc_text_add(&t, "seed: %lld\n", (long long)c->seed);
    const char *path = sc_sprintf(c->arena, "%s/emulate.yml", r->folder);
    sc_status s = !path || t.failed ? sc_error_nomem(c->err)
                                    : sc_file_write(path, t.buf, t.len, c->err);
    sc_text_free(&t);
    return s;
}

static bool splits(const char *path)
{
    return path[strcspn(path, " :")] != '\0';
}

/* The loader splits its list at spaces and colons: libraries in a folder with
 * such a name are reached through a link. */
static sc_status preload(emulate_run *r)
{
    cli *c = r->c;
    emulate_program *p = &r->program;
    const char *dir = p->lib_dir;
    if (splits(dir)) {
        dir = sc_sprintf(c->arena, "%s/lib", r->folder);
        if (!dir) return sc_error_nomem(c->err);
        if (splits(dir))
            return sc_error(c->err, SC_EINPUT, SC_C_CONFLICT,
                            sc_pos_file(r->folder),
                            "set TMPDIR to a folder without spaces and colons",
                            "libraries can't be preloaded from \"%.200s\", "
                            "because of its name, nor from here",
                            p->lib_dir);
        if (symlink(p->lib_dir, dir) != 0)
            return failed(c, dir, "can't make a link");
    }
    return cli_emulate_preload(c, &r->config, dir, p);
}

sc_status cli_emulate_folder(emulate_run *r)
{
    cli *c = r->c;
    const char *tmp = getenv("TMPDIR");
    if (!tmp || !*tmp) tmp = "/tmp";
    tmp = absolute(c, tmp);
    char *path = tmp ? sc_sprintf(c->arena, "%s/stepcast-XXXXXX", tmp) : NULL;
    if (!path) return sc_error_nomem(c->err);
    if (!mkdtemp(path)) return failed(c, path, "can't make the run's folder");
    r->folder = path;
    SC_TRY(preload(r));
    if (r->config.scouts && !r->scout.active)
        SC_TRY(cli_emulate_scouts_write(r));
    return options_file(r);
}

void cli_emulate_folder_remove(const emulate_run *r)
{
    char path[4096];
    DIR *d = r->folder ? opendir(r->folder) : NULL;
    if (!d) return;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        snprintf(path, sizeof path, "%s/%s", r->folder, e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            unlink(path);
    }
    closedir(d);
    if (rmdir(r->folder) != 0)
        cli_note(r->c, "note: %s could not be removed: %s\n", r->folder,
                 sc_errno_text(errno));
}
