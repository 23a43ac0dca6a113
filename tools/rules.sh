# SPDX-License-Identifier: Apache-2.0
# rules.sh - shared by the scripts that keep the rules; sourced, with $tools set
# to this folder.
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
# the folders also without what stands in quotes.
stripped() {
    literals=1
    case $1 in literals=*) literals=${1#*=}; shift ;; esac
    files=$(code_files "$@")
    # no file name here has blanks
    [ -z "$files" ] || awk -v literals="$literals" -f "$tools/strip.awk" $files
}

# verdict WHY: findings on standard input; none is success.
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
