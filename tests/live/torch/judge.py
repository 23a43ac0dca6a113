#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge.py REAL EMULATED - exit code 0 if, for each hook, the emulated losses
lie within the spread of the real ones: their mean within two standard
deviations, each within four."""

import math
import sys


def read(path):
    of = {}
    for line in open(path):
        hook, loss = line.split()
        of.setdefault(hook, []).append(float(loss))
    return of


def moments(v):
    mean = sum(v) / len(v)
    return mean, math.sqrt(sum((x - mean) ** 2 for x in v) / (len(v) - 1))


real, emulated = read(sys.argv[1]), read(sys.argv[2])
bad = set(real) != set(emulated) or len(real) != 3
for hook in sorted(real):
    (m, s), (em, es) = moments(real[hook]), moments(emulated.get(hook, [9e9] * 2))
    far = max(abs(x - m) for x in emulated.get(hook, [9e9]))
    ok = abs(em - m) <= 2 * s and far <= 4 * s
    print(
        "%-9s real %.4f +- %.4f, emulated %.4f +- %.4f, farthest %.4f: %s"
        % (hook, m, s, em, es, far, "ok" if ok else "no")
    )
    bad = bad or not ok
sys.exit(1 if bad else 0)
