# SPDX-License-Identifier: Apache-2.0
# front.awk NM-OUTPUT - one entry for every function of MPI that an interposer
# has: a jump through a slot, which leads to front_lazy until it is filled.
$NF ~ /^MPIX?_[A-Za-z0-9_]+$/ && $(NF - 1) == "T" && !seen[$NF]++ {
    name[n++] = $NF
}

function line(text) {
    print "        \"" text "\\n\""
}

END {
    for (i = 1; i < n; i++) # by name, for the search
        for (k = i; k && name[k - 1] > name[k]; k--) {
            t = name[k]
            name[k] = name[k - 1]
            name[k - 1] = t
        }
    print "/* Made by front.awk from the interposers' symbols. */"
    print "#include \"front.h\""
    print ""
    print "const uint32_t front_n = " n ";"
    print "const char *const front_name[] = {"
    for (i = 0; i < n; i++) print "    \"" name[i] "\","
    print "};"
    print ""
    print "__asm__(\".text\\n\""
    for (i = 0; i < n; i++) {
        line(".globl " name[i])
        line(".type " name[i] ", @function")
        line(name[i] ": jmp *front_slot + " 8 * i "(%rip)")
        line(".size " name[i] ", . - " name[i])
        line("front_lazy_" i ": pushq $" i)
        line("jmp front_lazy")
    }
    line(".section .data.rel, \\\"aw\\\"")
    line(".balign 8")
    line(".hidden front_slot")
    line(".globl front_slot")
    line("front_slot:")
    for (i = 0; i < n; i++) line(".quad front_lazy_" i)
    line(".hidden front_entry")
    line(".globl front_entry")
    line("front_entry:")
    for (i = 0; i < n; i++) line(".quad " name[i])
    line(".text")
    print "        );"
}
