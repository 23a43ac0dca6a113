# SPDX-License-Identifier: Apache-2.0
# rules.sh - shared by the scripts that check the rules of the code.  They
# source it with $tools set to this folder.
set -u
tools=$(cd "$tools" && pwd)
LC_ALL=C
export LC_ALL

# C files and headers below the folders that exist among those given.
code_files() {
    for folder; do
        [ ! -d "$folder" ] || find "$folder" -name '*.[ch]' -type f
    done | sort
}

# The same files as FILE:LINE:TEXT, without comments; with `literals=0` before
# the folders, text in quotes is removed too.
stripped() {
    literals=1
    case $1 in literals=*) literals=${1#*=}; shift ;; esac
    files=$(code_files "$@")
    # no file name here has blanks
    [ -z "$files" ] || awk -v literals="$literals" -f "$tools/strip.awk" $files
}

# verdict WHY: reads findings from standard input, and fails if there are any.
verdict() {
    findings=$(cat)
    [ -n "$findings" ] || return 0
    printf '%s\n\n%s\n' "$findings" "$1"
    return 1
}

skip() {
    echo "skipped: $1"
    exit 77
}
