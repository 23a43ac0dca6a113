/* SPDX-License-Identifier: Apache-2.0 */
/* version.h - the version of NCCL that the library claims to be. */
#ifndef NCCL_VERSION_H
#define NCCL_VERSION_H

/* 22705 for 2.27.5 */
int version_get(void);

#endif
