# SPDX-License-Identifier: Apache-2.0
"""files.py FOLDER - facts on which predictions from the recordings rely: both ranks
recorded the same steps and collectives, on one clock; a collective runs after the call
that enqueues it; the marks of steps agree with steps.csv."""

import csv
import gzip
import json
import os
import sys

bad = []


def check(ok, what):
    if not ok:
        bad.append(what)
        print(what)


class Trace:
    """Intervals of one file, in milliseconds."""

    def __init__(self, path):
        with gzip.open(path, "rt", encoding="utf-8") as f:
            events = json.load(f)["traceEvents"]
        events = [e for e in events if e.get("ph") == "X" and e["pid"] != "Spans"]
        self.steps = self.named(events, "ProfilerStep#")
        self.calls = self.named(events, "c10d::allreduce_")
        self.runs = self.named(events, "gloo:all_reduce")
        main = {e["tid"] for e in events if e["name"].startswith("ProfilerStep#")}
        workers = {e["tid"] for e in events if e["name"] == "gloo:all_reduce"}
        check(len(main) == 1, f"{path}: steps on several threads")
        check(not main & workers, f"{path}: the main thread runs collectives")

    @staticmethod
    def named(events, name):
        found = [(e["ts"] / 1e3, (e["ts"] + e["dur"]) / 1e3, e) for e in events
                 if e["name"].startswith(name)]
        return sorted(found, key=lambda x: x[:2])

    def within(self, step, events):
        return [e for e in events if step[0] <= e[0] < step[1]]


def sizes(runs):
    return [e["args"]["Input Dims"] for _, _, e in runs]


def check_pair(name, traces):
    marks = [[e["name"] for _, _, e in t.steps] for t in traces]
    check(marks[0] == marks[1] and len(marks[0]) == 4, f"{name}: steps {marks}")
    for k, steps in enumerate(zip(*(t.steps for t in traces))):
        where = f"{name}, step {k}"
        calls = [t.within(s, t.calls) for t, s in zip(traces, steps)]
        runs = [t.within(s, t.runs) for t, s in zip(traces, steps)]
        check(len(runs[0]) > 1, f"{where}: fewer than two collectives")
        check(sizes(runs[0]) == sizes(runs[1]), f"{where}: ranks differ in collectives")
        for call, run in zip(calls, runs):
            check([[s] for s in sizes(run)] == [s[:1] for s in sizes(call)],
                  f"{where}: the calls are not those of the collectives")
            check(all(c[0] <= r[0] and r[1] < steps[0][1] + 100
                      for c, r in zip(call, run)), f"{where}: order of call and run")
        for a, b in zip(*runs):
            check(a[0] < b[1] and b[0] < a[1],
                  f"{where}: a collective ends on one rank before it begins on the other")


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "steps.csv"), newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    listed = {r["file"] for r in rows}
    there = {f for f in os.listdir(folder) if f.endswith(".json.gz")}
    check(listed == there, f"files that are only listed, or only there: {listed ^ there}")
    check(len(rows) >= 16, "fewer than 16 files")
    for r in rows:
        t = Trace(os.path.join(folder, r["file"]))
        mean = (t.steps[-1][1] - t.steps[0][0]) / len(t.steps)
        low, high = float(r["profiled_q1_ms"]), float(r["profiled_q3_ms"])
        check(0.97 * low <= mean <= 1.03 * high,
              f"{r['file']}: {mean:.1f} ms per step, steps.csv {low} to {high}")
        if r["rank"] == "0":
            other = Trace(os.path.join(folder, r["file"].replace("rank0", "rank1")))
            check_pair(r["file"], [t, other])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
