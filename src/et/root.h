/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root.h - inside et/: the root of a JSON file of PyTorch.
 *
 * It is an object with some members and a list of nodes or of events, or, as
 * Chrome writes timelines, the list of events alone.
 */
#ifndef ET_ROOT_H
#define ET_ROOT_H

#include "base/scan.h"

typedef enum root_part {
    ROOT_OBJECT, /* its brace, which was consumed */
    ROOT_MEMBER, /* consumed; tokens are valid until more is read */
    ROOT_NODES,  /* a list, not consumed: `value` is only its bracket */
    ROOT_EVENTS, /* the same */
    ROOT_END,    /* the brace behind the last member, not consumed */
    ROOT_BROKEN  /* not JSON from s->at on */
} root_part;

/* The first part of a file; then, if that is an object, its members one by one.
 * SC_NO: the file ends before. */
sc_status root_begin(scan *s, root_part *part, scan_token *value);
sc_status root_next(scan *s, root_part *part, scan_token *key,
                    scan_token *value);

#endif
