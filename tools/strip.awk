# SPDX-License-Identifier: Apache-2.0
# strip.awk - prints C files as FILE:LINE:TEXT without comments; with
# -v literals=0 strings and character constants are emptied too.
BEGIN { if (literals == "") literals = 1 }
FNR == 1 { comment = 0 }
{
    rest = $0
    text = ""
    while (rest != "") {
        if (comment) {
            end = index(rest, "*/")
            if (!end) break
            rest = substr(rest, end + 2)
            comment = 0
            text = text " "
            continue
        }
        if (!match(rest, /\/\*|\/\/|["']/)) {
            text = text rest
            break
        }
        mark = substr(rest, RSTART, RLENGTH)
        text = text substr(rest, 1, RSTART - 1)
        rest = substr(rest, RSTART + RLENGTH)
        if (mark == "//") break
        if (mark == "/*") {
            comment = 1
            continue
        }
        n = 1 # a literal: up to its closing quote
        while (n <= length(rest) && substr(rest, n, 1) != mark)
            n += substr(rest, n, 1) == "\\" ? 2 : 1
        text = text mark (literals ? substr(rest, 1, n - 1) : "") mark
        rest = substr(rest, n + 1)
    }
    print FILENAME ":" FNR ":" text
}
