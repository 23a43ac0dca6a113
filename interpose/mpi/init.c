/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - initialization, finalization, time, and errors. */
#include "common/scouts.h"
#include "mpi/mp.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

mp_all mp = {.eager = 65536};

void mp_lock(void)
{
    pthread_mutex_lock(&mp.lock);
}

void mp_unlock(void)
{
    pthread_mutex_unlock(&mp.lock);
}

void *mp_alloc(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (!p) live_die(mp.l, "out of memory: %zu bytes for a message", n);
    return p;
}

int mp_fail(const mp_comm *c, int code, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    live_warn(mp.l, "%s", text);
    return PMPI_Comm_call_errhandler(c ? c->handle : MPI_COMM_WORLD, code) ==
                   MPI_SUCCESS
               ? code
               : MPI_ERR_OTHER;
}

int mp_refuse(MPI_Comm c, const char *name)
{
    const mp_comm *m = mp_find(c);
    return mp_fail(m, MPI_ERR_UNSUPPORTED_OPERATION,
                   "%s is not emulated (see docs/emulate/mpi.md); only "
                   "communicators of one rank may call it",
                   name);
}

static void start(void)
{
    live_scouts_camp(); /* copies need not initialize the library again */
    live *l = live_get();
    if (!l || mp.ready) return;
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mp.lock, &a);
    pthread_mutexattr_destroy(&a);
    mp.l = l;
    const char *eager = getenv("STEPCAST_MPI_EAGER");
    if (eager) {
        char *end;
        unsigned long long v = strtoull(eager, &end, 10);
        if (end == eager || *end)
            live_die(l, "STEPCAST_MPI_EAGER=%s is not a number of bytes",
                     eager);
        mp.eager = (size_t)v;
    }
    live_enter(l);
#ifdef OPEN_MPI
    live_uses(l, SC_EMU_API_OPENMPI);
#else
    live_uses(l, SC_EMU_API_MPICH);
#endif
    live_set_progress(l, true); /* neither library has threads for that */
    mp_types_start();
    mp_comm_start();
    mp.ready = true;
    live_leave(l);
}

/* Through these variables mpirun and the real library find each other. */
static const char *const joins[] = {"PMI_",           "PMIX_",
                                    "PMI2_",          "OMPI_MCA_ess",
                                    "OMPI_MCA_orte_", "OMPI_MCA_pmix"};

static bool is_join(const char *entry)
{
    for (size_t i = 0; i < SC_COUNT(joins); i++)
        if (strncmp(entry, joins[i], strlen(joins[i])) == 0) return true;
    return false;
}

/* The real library is a world of one, even if its own mpirun has started this
 * process. */
static void alone(void)
{
    char name[256];
    if (!live_get()) return; /* which has read the rank */
    for (size_t i = 0; environ[i];) {
        int n = snprintf(name, sizeof name, "%.*s",
                         (int)strcspn(environ[i], "="), environ[i]);
        if (is_join(environ[i]) && n > 0 && (size_t)n < sizeof name)
            unsetenv(name);
        else
            i++;
    }
#ifdef OPEN_MPI
    /* or it would start a daemon to look after it */
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    /* A world of one needs no network, and one of their libraries measures the clock
     * for half a second of a processor. */
    setenv("OMPI_MCA_pml", "ob1", 0);
    setenv("OMPI_MCA_btl", "self", 0);
#endif
}

int MPI_Init(int *argc, char ***argv)
{
    alone();
    int code = PMPI_Init(argc, argv);
    if (code == MPI_SUCCESS) start();
    return code;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    alone();
    int code = PMPI_Init_thread(argc, argv, required, provided);
    if (code == MPI_SUCCESS) start();
    return code;
}

int MPI_Finalize(void)
{
    if (mp.ready) {
        live_enter(mp.l);
        mp_leftovers();
        mp.ready = false;
        live_leave(mp.l);
    }
    return PMPI_Finalize();
}

int MPI_Abort(MPI_Comm comm, int errorcode)
{
    if (mp.ready)
        live_warn(mp.l, "rank %u called MPI_Abort with code %d",
                  live_rank(mp.l), errorcode);
    return PMPI_Abort(comm, errorcode);
}

double MPI_Wtime(void)
{
    if (!mp.ready || live_config(mp.l)->clock == SC_EMU_REAL)
        return PMPI_Wtime();
    return (double)live_now(mp.l) * 1e-12;
}

double MPI_Wtick(void)
{
    return mp.ready && live_config(mp.l)->clock == SC_EMU_VIRTUAL
               ? 1e-9
               : PMPI_Wtick();
}
