/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - what a file of --config says about a space. */
#include "search/search.h"

#include <string.h>

static const sc_key *key_of(const char *name)
{
    for (const sc_key *k = sc_job_keys; k->name; k++)
        if (strcmp(k->name, name) == 0) return k;
    return NULL;
}

/* A word, or a list of words. */
static sc_status check_words(const sc_node *value, const char *hint,
                             sc_err *err)
{
    bool seq = value->kind == SC_N_SEQ;
    for (const sc_node *w = seq ? value->child : value; w;
         w = seq ? w->next : NULL)
        if (w->kind != SC_N_SCALAR)
            return sc_error(err, SC_EINPUT, SC_C_TYPE, w->pos, hint,
                            "the value is not a word");
    if (!seq || value->n > 0) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_MISSING, value->pos, hint,
                    "the list is empty");
}

static bool is_axis(const sc_key *k, const sc_node *n)
{
    if (!k || k->type == SC_T_LIST) return false;
    if (n->kind == SC_N_SEQ) return true;
    return n->kind == SC_N_SCALAR && sc_search_is_list(k, n->text);
}

static sc_status take(const sc_node *n, sc_search_config *out, bool *taken,
                      sc_err *err)
{
    const sc_key *k = key_of(n->key);
    *taken = true;
    if (strcmp(n->key, "where") == 0) {
        out->where = n;
        return check_words(n, "for example where: [tp * cp <= 8, pp > 1]", err);
    }
    /* a list of words is the option of that name */
    if (strcmp(n->key, "machine") == 0 && n->kind == SC_N_MAP) {
        out->machine = n;
        return SC_OK;
    }
    if (k && k->offset == offsetof(sc_job, cluster) && n->kind == SC_N_SEQ) {
        out->clusters = n;
        return check_words(n, "for example cluster: [dgx-h100:4, dgx-h200:4]",
                           err);
    }
    *taken = is_axis(k, n);
    if (!*taken) return SC_OK;
    if (out->n == SC_SEARCH_AXES)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, n->pos, NULL,
                        "there are more than %d axes", SC_SEARCH_AXES);
    out->axis[out->n].key = k;
    out->axis[out->n++].value = n;
    return check_words(n, "write values such as [1, 2, 4], or 1..8", err);
}

sc_status sc_search_config_take(sc_node *root, sc_search_config *out,
                                sc_err *err)
{
    *out = (sc_search_config){0};
    if (root->kind != SC_N_MAP) return SC_OK;
    sc_node **from = &root->child;
    while (*from) {
        bool taken;
        SC_TRY(take(*from, out, &taken, err));
        sc_node *n = *from;
        if (!taken) {
            from = &n->next;
            continue;
        }
        *from = n->next;
        n->next = NULL;
        root->n--;
    }
    return SC_OK;
}
