# SPDX-License-Identifier: Apache-2.0
# refuse.awk symbols.txt PREPROCESSED-mpi.h - functions for everything of MPI
# that could meet a communicator, group or request of ours and that
# symbols.txt does not name: they refuse. Forms of our own functions with large
# counts (MPI 4, "_c") call these, if the counts fit.
FNR == NR {
    sub(/#.*/, "")
    for (i = 2; i <= NF; i++) how[$i] = $1
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

function declaration(d,    head, at, name, base, end, params, type) {
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
    base = name
    # (arrays of neighbourhoods have another length)
    if (name !~ /eighbor/ && sub(/_c$/, "", base) && how[base] == "own")
        narrow(name, base, params)
    else
        emit(name, type, params)
}

# Arrays have an element for each member. Those of a root mean nothing on other
# ranks, and those of a buffer that is MPI_IN_PLACE nothing at all.
function narrow(name, base, params,    n, p, i, args, ints, what, comm, root, has, unused, ends) {
    n = split(params, p, ",")
    for (i = 1; i <= n; i++) {
        gsub(/^ +| +$/, "", p[i])
        what = name_of(p[i])
        if (p[i] ~ /^MPI_Comm [A-Za-z0-9_]+$/) comm = what
        if (what == "root") root = 1
        has[what] = 1
    }
    for (i = 1; i <= n; i++) {
        what = name_of(p[i])
        args = args (args == "" ? "" : ", ") what
        ints = ints (ints == "" ? "" : ", ")
        if (p[i] ~ /^MPI_Count [A-Za-z0-9_]+$/) {
            ints = ints "mp_int(" what ", &fits)"
        } else if (p[i] ~ /^const MPI_(Count|Aint) [A-Za-z0-9_]+ ?\[/) {
            unused = root ? "root != (int)c->me" : "false"
            if (what ~ /^s/ && has["sendbuf"] && !root)
                unused = "sendbuf == MPI_IN_PLACE"
            ends = ends "    int *int_" what " = mp_ints(" unused " ? NULL : " what ", c->n, &fits);\n"
            ints = ints "int_" what
        } else {
            ints = ints what
        }
    }
    print ""
    print "int " name "(" params ");"
    print "int " name "(" params ")"
    print "{"
    print "    bool fits = true;"
    if (comm != "") {
        print "    mp_comm *c = mp_ours(" comm ");"
        print "    if (!c) return P" name "(" args ");"
    }
    printf "%s", ends
    print "    int code = MPI_SUCCESS;"
    checks(p, n)
    print "    if (!fits)"
    if (comm != "")
        print "        code = mp_fail(c, MPI_ERR_COUNT, \"" name ": a number does not fit an int\");"
    else
        print "        code = P" name "(" args ");"
    print "    else"
    print "        code = " base "(" ints ");"
    for (i = 1; i <= n; i++)
        if (index(ends, "int_" name_of(p[i]) " ")) print "    free(int_" name_of(p[i]) ");"
    print "    return code;"
    print "}"
}

function checks(p, n,    i) {
    for (i = 1; i <= n; i++)
        if (p[i] ~ /^MPI_Count [A-Za-z0-9_]+$/) print "    mp_int(" name_of(p[i]) ", &fits);"
}

# By value: MPI_Comm, MPI_Group, MPI_Request, and MPI_File where ranks share a
# file pointer.
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
        } else if (p[i] ~ /^MPI_File [A-Za-z0-9_]+$/ && name ~ /_(shared|ordered)/) {
            test = "mp_file_comm(" what ")"
            comm = test "->handle"
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
    print "#include <stdlib.h>"
    n = split(text, all, ";")
    for (d = 1; d <= n; d++) declaration(all[d])
}
