/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of nvidia-smi topo -m: any text is read or refused; in what is read
 * every link leads to a node and carries something. */
#include "fuzz_topo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return read_topo(sc_topo_read_matrix, data, size);
}
