/* SPDX-License-Identifier: Apache-2.0 */
/* base.h - layer 0 of stepcast: memory, errors, units, people's files. */
#ifndef SC_BASE_H
#define SC_BASE_H

#include "base/arena.h"  /* sc_arena, sc_alloc */
#include "base/assert.h" /* sc_assert */
#include "base/bytes.h"  /* numbers as bytes */
#include "base/doc.h"    /* YAML and JSON with positions */
#include "base/err.h"    /* sc_status, sc_err, SC_TRY */
#include "base/json.h"   /* JSON writer */
#include "base/map.h"    /* the hash map */
#include "base/random.h" /* pseudo-random numbers */
#include "base/schema.h" /* option and file tables */
#include "base/stats.h"  /* quantiles */
#include "base/units.h"  /* sc_time, quantities with units */
#include "base/util.h"   /* files, hashes, CSV */

#endif
