# SPDX-License-Identifier: Apache-2.0
# refuse.awk symbols.txt PREPROCESSED-mpi.h - functions for everything of MPI
# that could meet a communicator, group or request of ours and that
# symbols.txt does not name: they refuse.
FNR == NR {
    sub(/#.*/, "")
    if (NF) how[$1] = $2
    next
}
{ text = text " " $0 }

# The name of a parameter: the last word before brackets.
function name_of(param) {
    gsub(/\[[^]]*\]/, "", param)
    sub(/[ \t]+$/, "", param)
    sub(/^.*[^A-Za-z0-9_]/, "", param)
    return param
}

function balanced(s, at,    i, depth, c) {
    for (i = at; i <= length(s); i++) {
        c = substr(s, i, 1)
        if (c == "(") depth++
        if (c == ")" && --depth == 0) return i
    }
    return 0
}

function declaration(d,    head, at, name, end, params, type) {
    while ((at = index(d, "__attribute__"))) {
        end = balanced(d, at)
        if (!end) return
        d = substr(d, 1, at - 1) substr(d, end + 1)
    }
    gsub(/[ \t]+/, " ", d)
    if (!match(d, /MPIX?_[A-Za-z0-9_]+ ?\(/)) return
    if (d ~ /typedef|[{}]/) return
    at = RSTART
    if (at > 1 && substr(d, at - 1, 1) ~ /[A-Za-z0-9_]/) return
    name = substr(d, at, RLENGTH - 1)
    sub(/ $/, "", name)
    head = substr(d, 1, at - 1)
    gsub(/extern/, "", head)
    type = head
    gsub(/^ +| +$/, "", type)
    end = balanced(d, at)
    if (!end) return
    params = substr(d, at + RLENGTH, end - at - RLENGTH)
    if (how[name] == "own" || how[name] == "pass" || done[name]++) return
    emit(name, type, params)
}

# By value: MPI_Comm, MPI_Group, MPI_Request, MPI_Message.
function emit(name, type, params,    n, p, i, args, test, what, comm) {
    n = split(params, p, ",")
    comm = "MPI_COMM_WORLD"
    test = how[name] == "refuse" ? "mp.ready" : ""
    for (i = 1; i <= n; i++) {
        gsub(/^ +| +$/, "", p[i])
        if (p[i] == "void" || p[i] == "") continue
        what = name_of(p[i])
        args = args (args == "" ? "" : ", ") what
        if (p[i] ~ /^MPI_Comm [A-Za-z0-9_]+$/) {
            if (comm == "MPI_COMM_WORLD") comm = what
            test = test (test == "" ? "" : " || ") "mp_ours(" what ")"
        } else if (p[i] ~ /^MPI_Group [A-Za-z0-9_]+$/) {
            test = test (test == "" ? "" : " || ") "mp_group_of(" what ")"
        } else if (p[i] ~ /^(const )?MPI_Request [A-Za-z0-9_]+$/) {
            test = test (test == "" ? "" : " || ") "handle_is_request(" what ")"
        }
    }
    if (test == "") return
    print ""
    print type " " name "(" params ");"
    print type " " name "(" params ")"
    print "{"
    print "    if (" test ")"
    if (type == "int")
        print "        return mp_refuse(" comm ", \"" name "\");"
    else
        print "        live_die(mp.l, \"" name " has no emulated form\");"
    print "    return P" name "(" args ");"
    print "}"
}

END {
    print "/* Made by refuse.awk from the library's header. */"
    print "#include \"mpi/handle.h\""
    n = split(text, all, ";")
    for (d = 1; d <= n; d++) declaration(all[d])
}
