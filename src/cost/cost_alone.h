/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_alone.h - the time of a single kernel from its shape.
 *
 * This is the duration that a profiler records: the kernel runs alone, at burst
 * clocks, without the host's launch.  `replay --device` predicts the kernels of
 * a trace with it.  Steps never depend on it: they are priced by
 * sc_cost_kernel(), whose levels are fitted on steps.
 *
 * A kind of kernel that data/fit/kernels-alone.yml has is priced by the form of
 * the device, or of the measured device that is most like it, times the device's
 * level of a profile (`calibrate --kernel-levels`).  Products on matrix units,
 * fused attention and casts use the forms of data/fit/kernels.yml.  No kernel
 * costs nothing.
 *
 *   trace                                    kernel
 *   linear, addmm, mm; bmm; both gradients   sc_kernel_product()
 *   convolution, both gradients              SC_K_CONV (cost.h)
 *   fused attention, forward and backward    SC_K_FLASH (cost.h)
 *   unfused attention                        products, softmax, dropout
 *   softmax, layer, RMS and batch norm,      sc_kernel_rows()
 *   transposition, dropout, rotary
 *   positions, gated activation
 *   element-wise, copies, sums, optimizers   sc_kernel_moves()
 *   embedding, both passes                   sc_kernel_gather()
 */
#ifndef SC_COST_ALONE_H
#define SC_COST_ALONE_H

#include "cost/cost.h"

/* Reads the built-in forms of single kernels into `inout->alone`; the text has
 * some 50,000 numbers, which only commands that need them read. */
sc_status sc_cost_alone(sc_arena *a, sc_cost *inout, sc_err *err);

/* The price of one kernel; `launches` of the kernel counts.  seconds > 0. */
sc_price sc_kernel_alone(const sc_cost *c, const sc_device *d,
                         const sc_kernel *k);

/* The shape by which a form of kernels alone prices it, and that form; false if
 * the kernel is of another kind. `form` has stated constants if no device was
 * measured. */
bool sc_alone_use_of(const sc_cost *c, const sc_device *d, const sc_kernel *k,
                     sc_form_use *use, const sc_form **form);

/* That form: of the device, or of the measured one that is most like it. */
const sc_form *sc_alone_form(const sc_cost *c, const sc_device *d,
                             sc_form_kind kind);

/* Kernels by the sizes of a trace. */
sc_kernel sc_kernel_product(sc_precision p, uint64_t batch, uint64_t m,
                            uint64_t n, uint64_t k);
/* `kind` is one whose comment in cost.h says "m rows of k values". */
sc_kernel sc_kernel_rows(sc_kernel_kind kind, sc_precision p, uint64_t rows,
                         uint64_t width, bool backward);
/* All bytes that it reads and writes. */
sc_kernel sc_kernel_moves(sc_kernel_kind kind, sc_precision p, double bytes);
/* The same for an element-wise kernel whose operands are not all in one order
 * without gaps, such as a copy with exchanged dims, a part of each row, or an
 * operand that is repeated: each of the result's elements is addressed alone. */
sc_kernel sc_kernel_scattered(sc_precision p, double bytes, uint64_t elements);
/* `lookups` rows of `width` values, of which `different` are not the same
 * (sc_lookup_different(), or counted), summed into `sums` rows. */
sc_kernel sc_kernel_gather(sc_precision p, uint64_t lookups, uint64_t different,
                           uint64_t width, uint64_t sums, bool backward);

/* Expected number of different rows among uniform lookups. */
uint64_t sc_lookup_different(double table_rows, double lookups);

#endif
