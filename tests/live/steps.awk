# SPDX-License-Identifier: Apache-2.0
# steps.awk OWN RESULT - the steps that stepcast found in a run are those of the
# program.  OWN has how long each of the program's steps took, in ms; RESULT is
# what emulate --json printed.
#
# Nothing is said about how long steps take, so that a busy machine changes
# nothing: both saw the same run by the same clock, and between two beginnings
# of the program's steps lies exactly one of those that were found.
function inside(shift, low, high, j, d) {
    low = -1e30
    high = 1e30
    for (j = 0; j < found; j++) {
        d = own[j + shift] - begin[j]
        if (j + shift >= 0 && d > low) low = d
        d = own[j + shift + 1] - begin[j]
        if (j + shift + 1 <= n && d < high) high = d
    }
    return low <= high + own[n] / n / 2 # what is read in between takes time
}
FILENAME == ARGV[1] {
    own[n + 1] = own[n] + $1
    n++
    next
}
/"steps": \[/ { listed = 1 }
listed && /"begin_s":/ { begin[found++] = 1000 * $2 }
END {
    ok = n > 0 && found <= n && found >= n - missing
    for (shift = -1; ok && shift <= n - found; shift++)
        if (inside(shift)) fits = 1
    print what ": " found " steps of the program's " n \
        (fits ? ", one in each" : ", others than its own")
    exit !fits
}
