/* SPDX-License-Identifier: Apache-2.0 */
/* base.h - layer 0 of stepcast: memory, errors, units, people's files. */
#ifndef SC_BASE_H
#define SC_BASE_H

#include <stepcast/base/arena.h>  /* sc_arena, sc_alloc */
#include <stepcast/base/doc.h>    /* YAML and JSON with positions */
#include <stepcast/base/err.h>    /* sc_status, sc_err, SC_TRY */
#include <stepcast/base/index.h>  /* numbers by hashes */
#include <stepcast/base/json.h>   /* JSON writer */
#include <stepcast/base/schema.h> /* option and file tables */
#include <stepcast/base/units.h>  /* sc_time, quantities with units */
#include <stepcast/base/util.h>   /* files, hashes, CSV */

#endif
