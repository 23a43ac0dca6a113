/* SPDX-License-Identifier: Apache-2.0 */
/* show_lists.c - tables of the catalogue, with the source of each value. */
#include "cli/catalogue.h"

enum { NARROW = 16, WIDE = 32 }; /* columns of keys */

static void value_text(const char *key, int width, const char *text,
                       const sc_source *from, sc_text *out)
{
    bool known = from && from->text;
    sc_text_add(out, "  %-*s %-16s %s%s%s\n", width, key, text,
                known ? from->text : "", known && from->date ? ", " : "",
                known && from->date ? from->date : "");
}

void show_values(const sc_value *v, uint32_t n, sc_text *out)
{
    for (uint32_t i = 0; i < n; i++)
        value_text(v[i].key, NARROW, v[i].text, &v[i].source, out);
}

void show_failures(const sc_failures *f, sc_text *out)
{
    sc_text_add(out, "%s  %s\n", f->name, f->title);
    show_values(f->values, f->n_values, out);
    sc_text_add(out, "failures of one component, each million hours\n");
    for (uint32_t i = 0; i < f->n; i++) {
        const sc_failure *x = &f->failure[i];
        sc_text t;
        sc_text_init(&t);
        sc_text_add(&t, "%s: %.3g", sc_component_names[x->of], 3.6e9 * x->rate);
        value_text(x->name, WIDE, t.buf, x->source, out);
        sc_text_free(&t);
    }
}

void show_prices(const sc_prices *p, sc_text *out)
{
    sc_text_add(out, "%s  %s\n", p->name, p->title);
    show_values(p->values, p->n_values, out);
    sc_text_add(out, "hosts with their devices and adapters\n");
    for (uint32_t i = 0; i < p->n_hosts; i++) {
        char usd[32];
        sc_unit_print_short(p->host[i].usd, SC_U_USD, usd, sizeof usd);
        value_text(p->host[i].device, NARROW, usd, p->host[i].source, out);
    }
}
