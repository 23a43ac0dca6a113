# SPDX-License-Identifier: Apache-2.0
# common.sh - sourced by the tests beside it, with the program as $1.
set -u
LC_ALL=C
export LC_ALL
bin=$(cd "$(dirname "$1")" && pwd) || exit 1
if [ ! -e "$bin/lib/stepcast/libstepcast-torch.so" ] ||
    [ ! -e "$bin/lib/stepcast/libnccl.so.2" ]; then
    echo "skipped: the preloaded libraries are not built"
    exit 77
fi
PATH=$bin:$PATH
work=$(mktemp -d) || exit 1
# What is left behind is found by a word in its arguments.
mark=stepcast-live-$$
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir "$work/tmp"
echo "$mark" >"$work/mark"
TMPDIR=$work/tmp
export TMPDIR mark
cd "$work" || exit 1
failures=0

fail() {
    echo "$test: $*"
    sed 's/^/    /' "$work/err"
    failures=$((failures + 1))
}

# Programs of ours that still run: sleeps are named by the mark.
left() { # the mark is read from a file: grep is not to find itself
    grep -lasF -f "$work/mark" /proc/[0-9]*/cmdline |
        sed 's,^/proc/,,; s,/.*,,' | grep -vx $$
}

# emulate EXIT OPTIONS... -- CMD...: runs it, expects the exit code, no
# process and no file left.
emulate() {
    want=$1
    shift
    stepcast emulate --cluster dgx-h100:2 --world-size 16 --grace 500ms "$@" \
        >"$work/out" 2>"$work/err" </dev/null
    code=$?
    [ "$code" -eq "$want" ] || fail "exit code $code, not $want"
    [ -z "$(left)" ] || fail "left behind: $(left)"
    [ -z "$(ls -A "$work/tmp")" ] || fail "files left: $(ls -A "$work/tmp")"
}

says() { # TEXT: a line of stderr has it
    grep -qF -e "$1" "$work/err" || fail "does not say \"$1\""
}

holds() { # TEXT: the document has it
    grep -qF -e "$1" "$work/out" || fail "the document lacks $1"
}

# A sleep that says whose it is.
snooze='exec -a "$mark" sleep 600'
