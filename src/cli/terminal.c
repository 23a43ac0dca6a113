/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.c - finds out the columns and colours of a terminal. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 80, WIDTH_LEAST = 40, WIDTH_MOST = 1000 };

uint32_t cli_width(int fd)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    long n = columns ? strtol(columns, NULL, 10) : 0;
    if (n <= 0 && isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0)
        n = size.ws_col;
    if (n <= 0) return WIDTH;
    if (n < WIDTH_LEAST) return WIDTH_LEAST;
    return n > WIDTH_MOST ? WIDTH_MOST : (uint32_t)n;
}

bool cli_colour(int fd)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    bool dumb = !term || !*term || strcmp(term, "dumb") == 0;
    return isatty(fd) && !dumb && !(no && *no);
}

void cli_text_init(const cli *c, bool to_stderr, sc_text *t)
{
    int fd = to_stderr ? STDERR_FILENO : STDOUT_FILENO;
    sc_text_init(t);
    if (c->output || c->answer) return;
    if (c->host && c->host->ranks) return; /* mpirun's terminal is no one's */
    t->width = cli_width(fd);
    t->colour = cli_colour(fd);
}

#define PROGRESS_AFTER 2.0 /* seconds */
#define PROGRESS_EVERY 0.2

double cli_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_due(struct cli_told *x)
{
    double now = cli_now_s();
    if (now - x->begun < PROGRESS_AFTER || now - x->last < PROGRESS_EVERY)
        return false;
    x->last = now;
    return true;
}

static void tell(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    if (!is_due(ctx)) return;
    if (total)
        fprintf(stderr, "\r\033[K%s: %llu of %llu (%.0f %%)", what,
                (unsigned long long)done, (unsigned long long)total,
                100.0 * (double)done / (double)total);
    else
        fprintf(stderr, "\r\033[K%s: %llu", what, (unsigned long long)done);
}

const sc_progress *cli_progress(cli *c)
{
    if (c->quiet || c->notes || !isatty(STDERR_FILENO)) return NULL;
    c->told.begun = cli_now_s();
    c->told.last = 0;
    c->told.progress = (sc_progress){tell, &c->told};
    return &c->told.progress;
}

bool cli_progress_due(cli *c)
{
    return c->told.progress.tell && is_due(&c->told);
}

void cli_progress_say(const cli *c, const char *text)
{
    if (c->told.last > 0) fprintf(stderr, "\r\033[K%.78s", text);
}

void cli_progress_end(const cli *c)
{
    if (c->told.last > 0) fprintf(stderr, "\r\033[K");
}
