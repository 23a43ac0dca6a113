/* SPDX-License-Identifier: Apache-2.0 */
/* Fitted forms of kernels: any text is read or refused; whatever is read gives
 * every shape a finite price that is above zero. */
#include "cost/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const sc_form_device dev = {
    .units = 132, .flops = 1e15, .bandwidth = 3e12};

static void check(const sc_form *f, sc_form_kind kind)
{
    static const double sizes[] = {1, 100, 8192, 1e7};
    for (size_t i = 0; i < 4; i++) {
        double x = sizes[i];
        sc_form_use use = {.kind = kind, .on = dev};
        if (sc_form_is_attention(kind))
            use.attention = (sc_form_attention){.queries = x,
                                                .keys = x,
                                                .heads = 8,
                                                .size = 128,
                                                .values = 64,
                                                .band = 512,
                                                .causal = true,
                                                .exponentials = 1,
                                                .bytes = x};
        else if (sc_form_is_cast(kind))
            use.bytes = x;
        else if (sc_form_is_rows(kind))
            use.rows = (sc_form_rows){
                .width = 1000, .bytes = x, .again = x, .waste = 1, .odd = true};
        else if (kind == SC_FORM_CONV)
            use.conv = (sc_form_conv){x, x, 9, 1e-9 * x};
        else
            use.product = (sc_form_product){
                .m = x, .n = 4096, .k = x, .batch = 2, .bytes = x, .split = 8};
        sc_form_place(&use);
        double t =
            sc_form_physical(&f->c, &use) * sc_form_factor(&f->table, use.at);
        if (!(t > 0 && isfinite(t))) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    const sc_forms *forms = NULL;
    sc_arena_init(&a, (size_t)64 << 20);
    sc_err_init(&err);
    sc_status s =
        sc_forms_read((const char *)data, size, "fuzz.yml", &a, &forms, &err);
    if ((s == SC_OK) != (err.n == 0) || (s == SC_OK) != (forms != NULL))
        abort();
    for (int fit = 0; forms && fit < (int)SC_N_FIT_CLASSES; fit++)
        for (int kind = 0; kind < (int)SC_N_FORMS; kind++)
            if (forms->at[fit][kind])
                check(forms->at[fit][kind], (sc_form_kind)kind);
    for (uint32_t i = 0; forms && i < forms->n_own; i++)
        check(forms->own[i].form, forms->own[i].kind);
    sc_arena_free(&a);
    return 0;
}
