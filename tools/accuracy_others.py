# SPDX-License-Identifier: Apache-2.0
"""Sections of accuracy-page about kernels, collectives, memory, power and
parameters."""
import csv
import json
import math
import os
import re
import subprocess

import accuracy_svg as svg
from accuracy_data import FIT, ROOT, fitted, forms, mean, read, validated
from accuracy_steps import bold_if, percent, table

MIB = 1 << 20
# Targets in percent.
KERNEL_TARGETS = {"gemm": 4, "gemm-fp8": 6, "gemm-fp8-block": 6, "gemm-fp4": 6,
                  "attention": 8, "grouped": 10}
COLLECTIVE_TARGETS = {"network.csv": 4, "network-extra.csv": 8}
MEMORY_TARGET, FITS_TARGET, POWER_TARGET = 5, 96, 8


def above(value, target):
    return target is not None and round(100 * value, 1) > target


# ---- kernels


def kernels():
    found = forms()
    if not found:
        return [], {}
    classes = list(dict.fromkeys(f["class"] for f in found))
    kinds = list(dict.fromkeys(f["kind"] for f in found))
    cells = {(f["kind"], f["class"]): f["error"] for f in found if "error" in f}
    lines = []
    for kind in kinds:
        goal = KERNEL_TARGETS.get(kind)
        mine = [f for f in found if f["kind"] == kind]
        line = [kind, "%d" % sum(f["rows"] for f in mine),
                "" if goal is None else str(goal)]
        for name in classes:
            one = [f for f in mine if f["class"] == name]
            line.append(bold_if(above(one[0]["error"], goal), "%.1f (%d)" % (
                100 * one[0]["error"], one[0]["rows"])) if one else "")
        lines.append(line)
    text = ["## Kernels", "",
            "Mean errors in percent, and numbers of measured kernels, of the forms in "
            "`data/fit/kernels.yml`:", "each shape is predicted by a form that was "
            "fitted without it (five folds by shape). Forms are", "fitted to tables of "
            "kernels alone, and training steps do not change them.", ""]
    text += table(["kind", "kernels", "target"] + classes, lines)
    text += ["![Errors of kernels by kind and class of device]"
             "(accuracy-kernels.svg)", ""]
    return text, {"accuracy-kernels.svg": svg.grid(
        kinds, classes, cells, "Errors of kernels by kind and class of device")}


def table_files(folder):
    """Tables of kernels below ../shared/data, by collection."""
    out = []
    for place, _, names in sorted(os.walk(folder, followlinks=True)):
        if "label" in place or "opgraph" in place:
            continue  # whole networks
        out += [os.path.join(place, n) for n in sorted(names)
                if n.endswith((".csv", ".csv.gz"))]
    return out


def shared_kernels(program, shared):
    """Errors of the built-in forms on whole tables, by what they measure."""
    lines = []
    data = os.path.join(shared, "data")
    for name in ("aiconfigurator", "neusight", "vidur"):
        found = {}
        for path in table_files(os.path.join(data, name)):
            told = validated(program, [path])
            for g in told["groups"] if told else []:
                if g["device"] and g["mape"] is not None:
                    key = (g["family"], g.get("dtype") or "")
                    found.setdefault(key, {}).setdefault(
                        g["device"], []).append((g["rows"] - g["skipped"], g))
        lines += [shared_line(name, key, devices)
                  for key, devices in sorted(found.items())]
    if not lines:
        return []
    return ["### Whole tables", "",
            "Errors of the built-in forms on tables that are not in the repository, "
            "in percent by device, all", "rows; bias over all devices. Most of these "
            "kernels are rows of the forms. `to 1 MiB` and", "`above 1 MiB` are sizes "
            "of collectives.", ""] + table(
                ["table", "what", "type", "rows", "error", "bias", "by device"],
                lines)


def shared_line(name, key, devices):
    def sums(groups, figure):
        whole = sum(n for n, _ in groups)
        return sum(n * g[figure] for n, g in groups) / whole

    every = [g for groups in devices.values() for g in groups]
    cells = ", ".join("%s %.1f" % (d, 100 * sums(groups, "mape"))
                      for d, groups in sorted(devices.items()))
    what = key[0].removesuffix(" " + key[1]) if key[1] else key[0]
    return [name, what, key[1], "%d" % sum(n for n, _ in every),
            percent(sums(every, "mape")), percent(sums(every, "bias"), "%+.1f"),
            cells]


# ---- collectives


def size_of(cells):
    for key in ("size_bytes", "bytes"):
        if cells.get(key):
            return float(cells[key])
    return None


def collective_rows(path, told):
    """Compared rows with the size and place of their lines in the table."""
    with open(path, encoding="utf-8") as f:
        lines = list(csv.DictReader(f))
    rows = []
    for row in told["rows"]:
        at = int(row["id"].rsplit(":", 1)[1]) - 2
        if not row["counted"] or not row.get("error") or at >= len(lines):
            continue
        cells = lines[at]
        size, nodes = size_of(cells), cells.get("nodes") or "1"
        if size:
            rows.append(dict(row, size=size, several=nodes not in ("1", "1.0"),
                             what=cells["collective"]))
    return rows


def over_groups(rows, figure):
    found = {}
    for r in rows:
        found.setdefault((r["family"], r["device"], r["model"]), []).append(
            figure(r))
    return mean(mean(v) for v in found.values()), len(found)


def collective_lines(name, rows):
    lines = []
    for several in (False, True):
        for large in (True, False):
            for what in ["all"] + sorted({r["what"] for r in rows}):
                mine = [r for r in rows if r["several"] == several
                        and (r["size"] > MIB) == large
                        and what in ("all", r["what"])]
                if not mine:
                    continue
                error, n = over_groups(mine, lambda r: abs(r["error"]))
                offset, _ = over_groups(mine, lambda r: r["error"])
                goal = COLLECTIVE_TARGETS.get(name) if large else None
                goal = goal if what == "all" else None
                lines.append([
                    name, "several nodes" if several else "one node",
                    "above 1 MiB" if large else "to 1 MiB", what, str(n),
                    str(len(mine)), bold_if(above(error, goal), percent(error)),
                    "" if goal is None else str(goal),
                    percent(offset, "%+.1f")])
    return lines


def network_tables():
    found = re.search(r"^# Fitted on (.*?), \d+ rows",
                      read(os.path.join(FIT, "network.yml")), re.M)
    return "`%s`" % found.group(1) if found else "none of them"


def collectives(tables):
    """tables: (path, what validate says) of tables of collectives."""
    lines, one, several = [], [], []
    for path, told in tables:
        rows = collective_rows(path, told)
        lines += collective_lines(os.path.basename(path), rows)
        for r in rows:
            (several if r["several"] else one).append(
                (r["size"], math.log(1 + r["error"])))
    if not lines:
        return [], {}
    text = ["## Collectives", "",
            "Errors in percent of the time of collectives: means over groups (device, "
            "ranks, nodes, NIC) of a", "group's mean. The fit of the network has "
            "the rows of %s." % network_tables(), ""]
    text += table(["table", "place", "size", "collective", "groups", "rows", "error",
                   "target", "bias"], lines)
    text += ["![Residuals of collectives by size](accuracy-collectives.svg)", ""]
    return text, {"accuracy-collectives.svg": svg.sizes(
        [("one node", one), ("several nodes", several)])}


# ---- memory, power


def memory(tables):
    """Errors of peaks by family; configurations that ran or ran out."""
    pairs, lines, fits = {}, [], []
    for _, told in tables:
        for r in told["rows"]:
            if r.get("measured_memory_bytes") and r.get("predicted_memory_bytes"):
                pairs.setdefault(r["family"], []).append(
                    r["predicted_memory_bytes"] / r["measured_memory_bytes"] - 1)
            if r.get("outcome") and "fits" in r:
                fits.append((r["family"], r["outcome"] == "ran", r["fits"]))
    families = list(dict.fromkeys(list(pairs) + [f for f, _, _ in fits]))
    for family in families + (["all rows"] if families else []):
        every = family == "all rows"
        off = [v for f in pairs if every or f == family for v in pairs[f]]
        known = [(ran, fit) for f, ran, fit in fits if every or f == family]
        error, right = mean(map(abs, off)), mean(a == b for a, b in known)
        lines.append([family, str(len(off)),
                      bold_if(above(error, MEMORY_TARGET), percent(error)),
                      percent(mean(off), "%+.1f"),
                      percent(max(map(abs, off), default=math.nan)),
                      str(len(known) or ""),
                      bold_if(known and 100 * right < FITS_TARGET, percent(right)),
                      str(sum(a and not b for a, b in known)) if known else "",
                      str(sum(b and not a for a, b in known)) if known else ""])
    if not lines:
        return []
    return ["## Memory", "",
            "Errors of the largest memory of a device, in percent, over all rows with "
            "a measurement (target: mean", "of %d %%). Rows of which it is known "
            "whether they ran are compared with `fits` of the prediction" %
            MEMORY_TARGET, "(target: %d %% right); `refused` ran but were predicted "
            "not to fit, `accepted` the opposite." % FITS_TARGET, ""] + table(
                ["family", "rows", "error", "bias", "largest", "outcomes", "right",
                 "refused", "accepted"], lines)


def power(tables):
    lines, every = [], []
    for _, told in tables:
        every += [r["error"] for r in told["rows"]
                  if r["counted"] and r.get("error") is not None]
        for g in told["groups"]:
            if g["device"] and g["mape"] is not None:
                lines.append([g["family"], g["device"],
                              str(g["rows"] - g["skipped"]), percent(g["mape"]),
                              percent(g["bias"], "%+.1f")])
    if not lines:
        return []
    error = mean(map(abs, every))
    lines.append(["all rows", "", str(len(every)),
                  bold_if(above(error, POWER_TARGET), percent(error)),
                  percent(mean(every), "%+.1f")])
    return ["## Power", "",
            "Errors of the mean power of a node, in percent (target: %d %%)." %
            POWER_TARGET, ""] + table(["runs", "device", "rows", "error", "bias"],
                                      lines)


# ---- parameters

ORIGINS = {"fitted": "fitted", "fitted elsewhere": "fitted elsewhere",
           "assumed": "assumed", "source": "with a source"}


def constants(found):
    return sum(7 + f["corrections"] for f in found)


# Keys of profiles whose value is a fact of the program that its `source` states.
FACTS = ("etp", "prefetch", "tp_pieces", "weights", "gradients", "reduce",
         "optimizer", "bucket", "bucket_params")


def by_hand():
    """Numbers in data/software/profiles.yml that no fit changes, by evidence."""
    found, profile = {}, None
    with open(os.path.join(ROOT, "data", "software", "profiles.yml")) as file:
        for line in file:
            head = re.match(r"  ([\w.-]+):\s*$", line)
            number = re.match(r"    (\w+): *(\d[\d.]*)\S*\s*(?:# *(.*))?$", line)
            if head:
                profile = head[1]
            if not number or number[1] in FACTS or number[1] == "date":
                continue
            note = number[3] or ""
            kind = ("fitted by hand" if note.startswith("fitted")
                    else "with a reason beside it" if note else "without one")
            found.setdefault(number[1], {}).setdefault(kind, []).append(profile)
    kinds = ["with a reason beside it", "fitted by hand", "without one"]
    lines = [["`%s`" % key] + [str(len(by.get(kind, []))) for kind in kinds]
             + [", ".join("`%s`" % p for kind in kinds[1:]
                          for p in by.get(kind, []))]
             for key, by in sorted(found.items())]
    total = [sum(len(by.get(kind, [])) for by in found.values())
             for kind in kinds]
    return ["Numbers in `data/software/profiles.yml` that are no facts of a "
            "program's source count as", "parameters too. No fit changes them, "
            "so errors of families left out do not include theirs. %d of" % total[0],
            "them have a reason beside them in the file (bytes that a kernel moves, "
            "a report); %d have none" % (total[1] + total[2]),
            "or were set on measured rows:", ""] + table(
                ["key"] + kinds + ["profiles of the last two"],
                lines + [["all"] + [str(n) for n in total] + [""]])


def parameters(program):
    run = subprocess.run([program, "list", "parameters", "--json"],
                         capture_output=True, text=True, check=True)
    listed = json.loads(run.stdout)["rows"]
    files = {name: fitted(name) for name in ("network.yml", "step.yml",
                                             "graph.yml")
             if os.path.exists(os.path.join(FIT, name))}
    lines = [[ORIGINS.get(o, o), str(sum(p["origin"] == o for p in listed)),
              ", ".join("%s: %d" % (name, sum(p["name"] in values for p in listed
                                              if p["origin"] == o))
                        for name, values in files.items()
                        if any(p["name"] in values for p in listed
                               if p["origin"] == o))]
             for o in dict.fromkeys(p["origin"] for p in listed)]
    found = forms()
    text = ["## Parameters", "",
            "`stepcast show parameters` prints the value and the source of each; "
            "[parameters.md](parameters.md)", "explains the kinds of sources.", ""]
    text += table(["origin", "number", "in files of `data/fit`"], lines)
    if found:
        text += ["The forms of kernels have %d constants and corrections of their "
                 "own, fitted to %d measured" % (
                     constants(found), sum(f["rows"] for f in found)),
                 "kernels. Neighbouring corrections are tied to each other, so far "
                 "fewer are free.", ""]
    text += by_hand()
    text += ["The parameters of steps, and what the rows say about them: the "
             "distance of the value from its", "centre in widths of the prior, the "
             "standard error as a fraction of that width (1: the rows say",
             "nothing), and the effective number of rows. Fewer than 5 rows are bold.",
             ""]
    lines = []
    for name in ("step.yml", "graph.yml"):
        for key, p in files.get(name, {}).items():
            if p.get("prior_sd"):
                lines.append([
                    "`%s`" % key, "%.4g" % p["value"], "%.4g" % p["centre"],
                    "%+.1f" % (math.log(p["value"] / p["centre"])
                               / p["prior_sd"]),
                    "%.2f" % (p.get("standard_error", math.nan)
                              / p["prior_sd"]),
                    bold_if(p.get("effective_rows", 0) < 5,
                            "%.0f" % p.get("effective_rows", 0))])
    return text + table(["parameter", "value", "centre", "widths away",
                         "standard error / width", "rows"], lines)
