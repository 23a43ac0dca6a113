/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fortran.c - the libraries for Fortran call the entries of this library.
 *
 * mpi_send_() of Open MPI's libmpi_mpifh converts its arguments and calls
 * PMPI_Send(). The word through which it calls (its global offset table, System
 * V gABI) is replaced by the entry of MPI_F_Send, if the interposer has a form
 * of its own for Fortran, or else of MPI_Send. mpi_f08 calls libmpi_mpifh, too.
 * MPICH's libmpichfort calls MPI_Send(), as C programs do, but PMPI_Send() for
 * mpi_f08.
 */
#include "front.h"

#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct object {
    uintptr_t base;
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Rela) * table[2]; /* calls, and addresses */
    size_t len[2];               /* bytes */
    uintptr_t relro, relro_end;  /* read-only after relocation */
} object;

/* The loader has made addresses of them already, or not (vDSO, musl). */
static uintptr_t address(const object *o, ElfW(Addr) at)
{
    return at < o->base ? o->base + at : at;
}

static void read_dynamic(object *o, const ElfW(Dyn) * d)
{
    for (; d->d_tag != DT_NULL; d++) {
        uintptr_t at = address(o, d->d_un.d_ptr);
        switch (d->d_tag) {
        case DT_SYMTAB: o->symbols = (const ElfW(Sym) *)at; break;
        case DT_STRTAB: o->names = (const char *)at; break;
        case DT_JMPREL: o->table[0] = (const ElfW(Rela) *)at; break;
        case DT_PLTRELSZ: o->len[0] = d->d_un.d_val; break;
        case DT_RELA: o->table[1] = (const ElfW(Rela) *)at; break;
        case DT_RELASZ: o->len[1] = d->d_un.d_val; break;
        default: break;
        }
    }
}

static void *instead_of(const char *name, bool forms)
{
    char form[128];
    if (strncmp(name, "PMPI", 4) != 0) return NULL;
    snprintf(form, sizeof form, "MPI_F_%s", name + strlen("PMPI_"));
    uint32_t i = forms ? front_find(form) : UINT32_MAX;
    if (i == UINT32_MAX) i = front_find(name + 1);
    return i == UINT32_MAX ? NULL : front_entry[i];
}

static void set(const object *o, uintptr_t at, const void *to)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *first = (void *)(at & ~(page - 1));
    bool sealed = at >= o->relro && at < o->relro_end;
    if (sealed && mprotect(first, page, PROT_READ | PROT_WRITE) != 0)
        front_die("MPI for Fortran: its calls cannot be replaced");
    memcpy((void *)at, &to, sizeof to);
    if (sealed) mprotect(first, page, PROT_READ);
}

static int replace(struct dl_phdr_info *info, size_t size, void *unused)
{
    object o = {.base = info->dlpi_addr};
    (void)size;
    (void)unused;
    bool forms = strstr(info->dlpi_name, "/libmpi_mpifh");
    if (!forms && !strstr(info->dlpi_name, "/libmpichfort")) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_DYNAMIC)
            read_dynamic(&o, (const ElfW(Dyn) *)(o.base + p->p_vaddr));
        if (p->p_type == PT_GNU_RELRO) {
            o.relro = o.base + p->p_vaddr;
            o.relro_end = o.relro + p->p_memsz;
        }
    }
    for (int t = 0; t < 2; t++)
        for (size_t k = 0; k < o.len[t] / sizeof **o.table; k++) {
            const ElfW(Rela) *r = &o.table[t][k];
            unsigned long kind = ELF64_R_TYPE(r->r_info);
            if (kind != R_X86_64_JUMP_SLOT && kind != R_X86_64_GLOB_DAT)
                continue;
            const ElfW(Sym) *s = &o.symbols[ELF64_R_SYM(r->r_info)];
            const void *to = instead_of(o.names + s->st_name, forms);
            if (to) set(&o, o.base + r->r_offset, to);
        }
    return 0;
}

void front_fortran(void)
{
    dl_iterate_phdr(replace, NULL);
}
