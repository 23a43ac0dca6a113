# SPDX-License-Identifier: Apache-2.0
# Writes a C file with every *.yml file below ROOT as a byte array, and the
# table src/base/embedded.h declares, sorted by path relative to ROOT.
#
#   cmake -DROOT=<data directory> -DOUT=<embedded.c> -P embed.cmake

if(NOT DEFINED ROOT OR NOT DEFINED OUT)
  message(FATAL_ERROR "embed.cmake needs -DROOT=<dir> and -DOUT=<file>")
endif()

file(GLOB_RECURSE paths RELATIVE "${ROOT}" "${ROOT}/*.yml")
list(SORT paths COMPARE STRING)

set(arrays "")
set(rows "")
set(n 0)
foreach(path IN LISTS paths)
  file(READ "${ROOT}/${path}" hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," hex "${hex}")
  string(APPEND arrays "static const unsigned char f${n}[] = {${hex}0};\n")
  string(APPEND rows
    "    {\"${path}\", (const char *)f${n}, sizeof f${n} - 1},\n")
  math(EXPR n "${n} + 1")
endforeach()
if(n EQUAL 0)
  set(rows "    {\"\", \"\", 0},\n") # C has no empty arrays
endif()

file(WRITE "${OUT}"
"/* SPDX-License-Identifier: Apache-2.0 */
/* Written by cmake/embed.cmake. */
#include \"base/embedded.h\"

${arrays}
const sc_embedded sc_embedded_table[] = {
${rows}};
const uint32_t sc_embedded_count = ${n};
")
