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
DEVICE_TARGET = 12
MEMORY_TARGET, FITS_TARGET, POWER_TARGET = 5, 96, 8
MEMORY_LEFT_TARGET, FITS_LEFT_TARGET = 8, 93


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


def left_out_devices(program, paths):
    """Errors on each device by fits of the network without its rows."""
    told = validated(program, paths, "--leave-out", "device")
    if not told:
        return []
    rows, inside = [], {}
    for path in paths:
        own = os.path.basename(path) + ":"
        rows += collective_rows(path, dict(told, rows=[
            r for r in told["rows"] if r["id"].startswith(own)]))
    for part in told["parts"]:
        inside[part["device"]] = part["coverage"]
    lines = []
    names = sorted({r["hw_device"] for r in rows})
    for name in names + ["all"]:
        line = [name]
        for several, large in ((False, True), (True, True), (False, False),
                               (True, False)):
            mine = [r for r in rows if name in ("all", r["hw_device"])
                    and r["several"] == several and (r["size"] > MIB) == large]
            if not mine:
                line += ["", ""]
                continue
            error, n = over_groups(mine, lambda r: abs(r["error"]))
            goal = DEVICE_TARGET if large else None
            line += [str(n), bold_if(above(error, goal), percent(error))]
        lines.append(line + [percent(inside.get(name, told["coverage"]), "%.0f")])
    return ["### Devices that are left out", "",
            "Errors in percent, means over groups as above, if the fit of the network "
            "has no row of the device", "(target: %d %% above 1 MiB; "
            "`validate --leave-out device`)." % DEVICE_TARGET, ""] + table(
                ["device", "groups", "one node, above 1 MiB", "groups",
                 "several nodes", "groups", "one node, to 1 MiB", "groups",
                 "several nodes", "in 80 %"], lines)


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


def memory_families(told):
    """Families with measured peaks, in order."""
    return list(dict.fromkeys(r["family"] for t in told for r in t["rows"]
                              if r.get("measured_memory_bytes")
                              and r.get("counted")))


def memory_left_out(program, tables, told):
    """Peaks and outcomes by what rows of other families, and of other models,
    have shown."""
    lines = []
    for family in memory_families(told):
        cells = [family]
        for what in ("family", "model"):
            of = validated(program, tables, "--leave-out", what, "--family",
                           family)
            error = of["memory"]["mape"] if of else math.nan
            right = of["fits"]["right"] if of and "fits" in of else None
            cells += [bold_if(above(error, MEMORY_LEFT_TARGET), percent(error)),
                      bold_if(right is not None
                              and 100 * right < FITS_LEFT_TARGET, percent(right))]
        lines.append(cells)
    if not lines:
        return []
    return ["### Memory left out", "",
            "The same if the numbers of profiles that measured memory has set, and "
            "the interval of memory, are", "those of the rows of other families, or "
            "of other models; a profile that no other row has gets those", "of its "
            "base (targets: mean of %d %%, %d %% right)." %
            (MEMORY_LEFT_TARGET, FITS_LEFT_TARGET), ""] + table(
                ["family", "without the family", "right", "without the model",
                 "right"], lines)


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


# Keys that name other profiles or rows are no numbers.
NUMBER = re.compile(r"    (\w+): *(fitted|\d[\d.]*\S*)\s*(?:# *(.*))?$")


def profile_numbers():
    """Numbers of data/software/profiles.yml that are no facts of FACTS: profile,
    key, text, note beside it, and whether it was read off rows."""
    found, profile, read_off = [], None, []
    with open(os.path.join(ROOT, "data", "software", "profiles.yml"),
              encoding="utf-8") as file:
        for line in file:
            head = re.match(r"  ([\w.-]+):\s*$", line)
            number = NUMBER.match(line.rstrip())
            if head:
                profile, read_off = head[1], []
            listed = re.match(r"    read_off: \[(.*)\]", line)
            if listed:
                read_off = listed[1].split(", ")
            if number and number[1] not in FACTS and number[1] != "date":
                found.append((profile, number[1], number[2], number[3] or "",
                              number[1] in read_off))
    return found


def evidence(name, key, text, note, read_off, values):
    """Kind of evidence, value and evidence of a number of a profile."""
    if text == "fitted":
        p = values.get("%s.%s" % (name, key), {})
        return "fitted", "%.4g" % p.get("value", math.nan), (
            "`%s.%s`: %.0f effective rows, standard error %.2f, width %.2g"
            % (name, key, p.get("effective_rows", 0),
               p.get("standard_error", math.nan), p.get("prior_sd", 0)))
    kind = ("read off rows" if read_off else "assumed"
            if note.startswith("assumed") else "source" if note else "none")
    return kind, text, note


def by_hand():
    """Numbers in data/software/profiles.yml with their evidence."""
    values = (fitted("program.yml")
              if os.path.exists(os.path.join(FIT, "program.yml")) else {})
    lines, count = [], {}
    for name, key, text, note, read_off in profile_numbers():
        kind, value, told = evidence(name, key, text, note, read_off, values)
        count[kind] = count.get(kind, 0) + 1
        lines.append(["`%s`" % name, "`%s`" % key, value,
                      "**none**" if kind == "none" else kind,
                      told.replace("|", "/")])
    kinds = ", ".join("%d %s" % (count[k], k) for k in
                      ("fitted", "read off rows", "assumed", "source", "none")
                      if k in count)
    return ["### Numbers of programs", "",
            "Numbers in `data/software/profiles.yml` that are more than facts of a "
            "program's source: %s." % kinds,
            "`fitted`: a parameter of `data/fit/program.yml`, refitted without the "
            "rows that are left out.", "`read off rows` (`read_off` of a profile): "
            "counted, but no fit changes it; if the family is left out,",
            "its rows are predicted with the value of the profile's base. `source`: "
            "bytes that kernels move, or a report.", ""] + table(
                ["profile", "key", "value", "evidence", "which"], lines)


def parameters(program):
    run = subprocess.run([program, "list", "parameters", "--json"],
                         capture_output=True, text=True, check=True)
    listed = json.loads(run.stdout)["rows"]
    files = {name: fitted(name) for name in ("network.yml", "step.yml",
                                             "program.yml", "graph.yml")
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
    for name in ("step.yml", "program.yml", "graph.yml"):
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
