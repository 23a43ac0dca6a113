/* SPDX-License-Identifier: Apache-2.0 */
/* software_fitted.c - keys of profiles whose values are parameters of the fit. */
#include "plan/internal.h"
#include "plan/plan.h"

#include <string.h>

static const char word[] = "fitted";

bool software_key_fitted(const sc_node *key)
{
    return key->kind == SC_N_SCALAR && strcmp(key->text, word) == 0;
}

static const sc_key *find_key(const char *name)
{
    for (const sc_key *k = sc_software_keys; k->name; k++)
        if (strcmp(k->name, name) == 0 && k->type == SC_T_QUANTITY) return k;
    return NULL;
}

static bool is_read_off(const sc_software *sw, const char *key)
{
    for (const char *const *w = sw->read_off; w && *w; w++)
        if (strcmp(*w, key) == 0) return true;
    return false;
}

/* Words that are no keys are errors where the profile is read. */
sc_status software_check_read_off(const sc_node *profile, const sc_software *sw,
                                  sc_err *err)
{
    for (const char *const *w = sw->read_off; w && *w; w++) {
        const sc_key *k = sc_software_keys;
        while (k->name && strcmp(k->name, *w) != 0) k++;
        if (!k->name)
            return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_NAME, profile->pos,
                            NULL, "profile '%s': read_off has no key '%.40s'",
                            profile->key, *w);
    }
    return SC_OK;
}

sc_status sc_software_unread(const sc_software *sw, sc_arena *a,
                             const sc_software **out, sc_err *err)
{
    sc_software *own = SC_NEW(a, sc_software), *plain = SC_NEW(a, sc_software);
    if (!own || !plain) return sc_error_nomem(err);
    SC_TRY(sc_schema_defaults(sc_software_keys, plain, a, err));
    *own = *sw;
    own->unread = true;
    for (const sc_key *k = sc_software_keys; k->name; k++) {
        const sc_software *from = sw;
        if (!is_read_off(sw, k->name)) continue;
        while (from && is_read_off(from, k->name)) from = from->base;
        sc_schema_copy(k, from ? from : plain, own);
    }
    *out = own;
    return SC_OK;
}

static void forget(sc_software *sw, uint32_t offset)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < sw->n_fitted; i++) {
        if (sw->fitted_offset[i] == offset) continue;
        sw->fitted_offset[n] = sw->fitted_offset[i];
        sw->fitted[n++] = sw->fitted[i];
    }
    sw->n_fitted = n;
}

sc_status software_list_fitted(const sc_node *profile, sc_software *inout,
                               sc_arena *a, sc_err *err)
{
    for (const sc_node *c = profile->child; c; c = c->next) {
        const sc_key *k = find_key(c->key);
        bool is = software_key_fitted(c);
        if (k) forget(inout, (uint32_t)k->offset);
        if (!is) continue;
        const char *name = sc_sprintf(a, "%s.%s", profile->key, c->key);
        if (!name) return sc_error_nomem(err);
        int p = k ? sc_param_find(name) : -1;
        if (p < 0)
            return sc_error(err, SC_EINPUT, SC_C_REFERENCE, c->pos,
                            "write its value; `stepcast list parameters` shows "
                            "those of the fit",
                            "no parameter of the fit is '%.80s'", name);
        if (inout->n_fitted == SC_FITTED_KEYS)
            return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, c->pos, NULL,
                            "more than %d keys are fitted", SC_FITTED_KEYS);
        inout->fitted_offset[inout->n_fitted] = (uint32_t)k->offset;
        inout->fitted[inout->n_fitted++] = p;
    }
    return SC_OK;
}

int sc_software_fitted(const sc_software *sw, size_t offset)
{
    for (uint32_t i = 0; i < sw->n_fitted; i++)
        if (sw->fitted_offset[i] == offset) return sw->fitted[i];
    return -1;
}

double sc_software_value(const sc_software *sw, size_t offset,
                         const sc_cost *cost)
{
    int p = sc_software_fitted(sw, offset);
    if (p >= 0) return cost->p[p];
    return *(const double *)(const void *)((const char *)sw + offset);
}
