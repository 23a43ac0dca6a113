/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.h - cmocka after the headers it relies on, in the order it needs.
 */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#endif
