/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_replay.c - runs a fuzz target once over each file of a corpus, in
 * builds without libFuzzer.  Arguments are files or folders (not nested).
 * An empty corpus is an error: a test that runs nothing proves nothing.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st) != 0) {
        perror(path);
        if (f) fclose(f);
        return -1;
    }
    /* exactly the size, so that a sanitizer sees the first byte beyond */
    size_t size = (size_t)st.st_size;
    uint8_t *data = malloc(size ? size : 1);
    int ok = data && fread(data, 1, size, f) == size;
    fclose(f);
    if (ok) {
        /* named before it runs: a crash leaves the name in the log */
        printf("%s\n", path);
        fflush(stdout);
        LLVMFuzzerTestOneInput(data, size);
    } else {
        fprintf(stderr, "%s: can't read\n", path);
    }
    free(data);
    return ok ? 1 : -1;
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int replay(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) return replay_file(path);

    struct dirent **entries;
    int n = scandir(path, &entries, visible, alphasort);
    int done = 0;
    for (int i = 0; i < n; i++) {
        char file[4096];
        int len =
            snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        int rc = len < (int)sizeof file ? replay_file(file) : -1;
        done = rc < 0 || done < 0 ? -1 : done + rc;
        free(entries[i]);
    }
    if (n >= 0) free(entries);
    return n < 0 ? -1 : done;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int n = replay(argv[i]);
        if (n < 0) return 1;
        total += n;
    }
    if (total == 0) {
        fprintf(stderr, "no input to replay\n");
        return 1;
    }
    printf("%d inputs\n", total);
    return 0;
}
