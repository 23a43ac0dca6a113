#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh STEPCAST REFERENCE [RUN...] - compares step and CPU time with Proteus.
#
# REFERENCE is the folder with Proteus's recorded runs (RUN/run.json, topo/).
# The strategies of examples/proteus run with --compat proteus on the recorded
# description of a node.  Kernels are priced by the recorded table if it has all
# of the model's operators ("table"), otherwise by our models ("models"); only
# the CPU times are then comparable.  gpt15b runs as gpt2.  CPU is user + system
# of the whole program, mean of REPEATS; Proteus's time is the recorded wall time
# of its whole run.
set -u
export LC_ALL=C
repeats=${REPEATS:-10}
if [ $# -lt 2 ]; then
    echo "usage: run.sh STEPCAST REFERENCE [RUN...]" >&2
    exit 2
fi
program=$(realpath "$1") reference=$(realpath "$2") || exit 1
shift 2
cd "$(dirname "$0")/../../examples/proteus" || exit 1
[ $# -gt 0 ] || set -- *.yml
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# number FILE KEY - a number at the top of a JSON document
number() {
    sed -n "s/^ *\"$2\": *\\([-+.0-9eE]*\\),*\$/\\1/p" "$1" | head -n 1
}

# machine RUN - its cluster file
machine() {
    size=${1##*_n}
    case $1 in
    *1080*) part='device: gtx-1080-ti' topo=1080_1ib ;;
    *titanxp*) part='device: titan-xp' topo=titanxp ;;
    *) part='node: dgx1-v100' topo=dgx1_v100_1ib ;;
    esac
    case $part in device*) echo 'fabric: pcie-tree' ;; esac
    printf '%s\ndevices_per_node: %s\nnodes: %s\ntopology: %s\n' "$part" \
        "${size##*g}" "${size%%g*}" "$reference/topo/$topo/topo-n${size##*g}.xml"
}

model() {
    case $1 in
    resnet50*) echo resnet50 ;;
    vgg19*) echo vgg19 ;;
    inception*) echo inception-v3-224 ;;
    dlrm*) echo dlrm ;;
    *) echo gpt2 ;;
    esac
}

# predict WORD... - false if there is no step; a job that does not fit has one
predict() {
    "$program" "$@" >"$work/out" 2>&1
    grep -q '"step_time_s": [0-9]' "$work/out"
}

# cpu WORD... - milliseconds of "$@", its mean
cpu() {
    { time -p sh -c 'i=0
        while [ $((i += 1)) -le '"$repeats"' ]; do
            "$@" >/dev/null 2>&1
        done' - "$@"; } 2>&1 |
        awk -v n="$repeats" '/^(user|sys)/ { t += $2 }
                             END { printf "%.1f", 1000 * t / n }'
}

failed=0
printf '%-32s %-6s %9s %9s %6s %8s %9s %7s\n' run prices 'step, ms' Proteus \
    ratio 'CPU, ms' 'theirs, s' ratio
for run; do
    run=${run%.yml}
    recorded=$reference/$run
    machine "$run" >"$work/cluster.yml"
    sed '/^model:/d; /^cluster:/d' "$run.yml" >"$work/strategy.yml"
    common="predict --compat proteus --quiet --json --model $(model "$run") \
--cluster $work/cluster.yml --strategy $work/strategy.yml"
    prices=table
    command="$common --op-times $recorded/opcost.json"
    # shellcheck disable=SC2086 # words
    if ! predict $command; then
        prices=models command=$common
        if ! predict $command; then
            printf '%-32s failed: %s\n' "$run" "$(head -c 200 "$work/out")"
            failed=1
            continue
        fi
    fi
    # shellcheck disable=SC2086
    awk -v run="$run" -v prices="$prices" \
        -v step="$(number "$work/out" step_time_s)" \
        -v iter="$(number "$recorded/run.json" iter_ms)" \
        -v ms="$(cpu "$program" $command)" \
        -v wall="$(number "$recorded/run.json" total_wall_s)" 'BEGIN {
            printf "%-32s %-6s %9.2f %9.2f %6.3f %8.1f %9.2f %7.0f\n", run,
                prices, 1000 * step, iter, 1000 * step / iter, ms, wall,
                1000 * wall / ms
        }'
done
exit $failed
