# SPDX-License-Identifier: Apache-2.0
"""Sections of accuracy-page about the times of training steps."""
import fnmatch
import math
import re
import textwrap

import accuracy_svg as svg
from accuracy_data import mean

# What a table names, patterns of its families, the kinds of models (None: all),
# and the targets in percent: in the fit, left out; tau and regret likewise.
TARGETS = [
    ("vTrain", ["vtrain-multi"], None, (5, 7), None, None),
    ("BLOOM", ["bloom-*"], None, (4, 8), None, None),
    ("papers", ["korthikanti-2022*", "megatron-sc21*"], None, (4, 5), None, None),
    ("LLM Foundry", ["llm-foundry"], None, (3.5, 7), None, None),
    ("torchtitan", ["torchtitan"], None, (4.5, 9), None, None),
    ("Megatron-Bridge, dense", ["megatron-bridge"], ["dense", "adapters"],
     (5, 6), None, None),
    ("Megatron-Bridge, experts", ["megatron-bridge"], ["experts"], (8, 11), None,
     None),
    ("NeMo, long sequences", ["nemo-longseq"], None, (4, 4), None, None),
    ("MLPerf GPT-3", ["mlperf-gpt3"], None, (3, 4), None, None),
    ("MLPerf Llama 2 LoRA", ["mlperf-llama2_70b_lora"], None, (6, 8), None, None),
    ("MLPerf BERT", ["mlperf-bert"], None, (9, 12), None, None),
    ("nanotron", ["nanotron*"], None, (10, 20), (0.85, 0.75), (2, 6)),
    ("MaxText, TPU", ["maxtext-recipes*"], None, (10, 20), None, None),
    ("FlagPerf", ["flagperf*"], None, (8, 15), None, None),
    ("JAX-Toolbox", ["jax-toolbox*"], None, (10, 18), None, None),
]
COVERED = (0.76, 0.84)         # of all rows, in their 80 % interval
FAMILY_COVERED = (0.60, 0.97)  # of each family with 10 rows or more
ANCHORED = {1: 5, 3: 4}        # own runs: mean over families, in percent

CAUSES = {
    "products": "matrix products", "expert_products": "products of experts",
    "attention": "attention", "memory_kernels": "memory-bound kernels",
    "casts": "casts", "exposed_tp": "exposed TP exchange",
    "exposed_ep": "exposed EP exchange", "exposed_cp": "exposed CP exchange",
    "exposed_dp": "exposed DP exchange", "exposed_pp": "pipeline transfers",
    "bubble": "pipeline bubble", "host": "host",
    "memory_offload": "copies to the host", "optimizer": "optimizer",
    "other": "fixed part of a step",
}
BINS = [(0, 0.01), (0.01, 0.05), (0.05, 0.15), (0.15, 0.4), (0.4, 1.01)]


def percent(value, form="%.1f"):
    return "" if value is None or value != value else form % (100 * value)


def bold_if(bad, text):
    return "**%s**" % text if bad and text else text


def counted(told):
    """Rows that are compared, each with its residual and fractions."""
    rows = []
    for row in told["rows"]:
        measured = row.get("median_s") or row["measured_s"]
        if not row["counted"] or not measured or not row["predicted_s"]:
            continue
        parts = row.get("breakdown_s", {})
        whole = sum(parts.values())
        rows.append(dict(
            row, compared_s=measured,
            residual=math.log(row["predicted_s"] / measured),
            off=row["predicted_s"] / measured - 1,
            inside=(row["low_s"] or math.inf) <= measured <= (row["high_s"] or 0),
            parts={k: v / whole for k, v in parts.items()} if whole else {}))
    return rows


def table(head, rows):
    return ["| %s |" % " | ".join(head), "|%s" % ("---|" * len(head))] + [
        "| %s |" % " | ".join(cells) for cells in rows] + [""]


def mean_off(rows):
    return mean(abs(r["off"]) for r in rows)


def bias(rows):
    return mean(r["off"] for r in rows)


def of_target(rows, target):
    _, patterns, kinds = target[:3]
    return [r for r in rows
            if any(fnmatch.fnmatch(r["family"], p) for p in patterns)
            and (not kinds or r["kind"] in kinds)]


# ---- steps by family


def groups_of(rows):
    """Label, rows and targets: first those with targets, then other families."""
    rest, out = rows, []
    for target in TARGETS:
        mine = of_target(rows, target)
        if mine:
            rest = [r for r in rest if r not in mine]
            out.append((target[0], mine, target[3:]))
    for family in dict.fromkeys(r["family"] for r in rest):
        out.append((family, [r for r in rest if r["family"] == family],
                    (None, None, None)))
    return out


def left_out_of(label, mine, rows, held, apart):
    """Error and fraction in the interval of rows that were left out: of whole
    families from the fit's file, of parts of a family from `apart`."""
    families = {r["family"] for r in mine}
    whole = len(mine) == sum(r["family"] in families for r in rows)
    if whole and families <= set(held):
        n = {f: held[f]["rows"] for f in families}
        return tuple(sum(n[f] * held[f][k] for f in families) / sum(n.values())
                     for k in ("error", "covered"))
    return apart.get(label, (None, None))


def parts_of_families(rows):
    """Left-out rows of the targets for parts of a family."""
    lines = []
    for target in TARGETS:
        mine = of_target(rows, target) if target[2] else []
        if mine:
            lines.append([target[0], str(len(mine)), percent(mean_off(mine)),
                          percent(mean(r["inside"] for r in mine), "%.0f")])
    return table(["part of a family", "rows", "left out", "in 80 %"],
                 lines) if lines else []


def read_parts(lines):
    """The same, read from the page: error and fraction by label."""
    found = re.findall(r"^\| ([^|]+) \| \d+ \| ([0-9.]+) \| (\d+) \|$",
                       "\n".join(lines), re.M)
    return {label: (float(error) / 100, float(inside) / 100)
            for label, error, inside in found}


def order_of(told, mine, key):
    """tau or regret, where all rows are of families that have it."""
    found = [(g["rows"], g[key]) for g in told["groups"]
             if g["device"] is None and g[key] is not None
             and g["family"] in {r["family"] for r in mine}]
    whole = sum(n for n, _ in found)
    return sum(n * v for n, v in found) / whole if whole else None


def family_line(told, rows, group, held, apart):
    label, mine, (goals, tau_goal, regret_goal) = group
    error = mean_off(mine)
    left, covered = left_out_of(label, mine, rows, held, apart)
    tau, regret = order_of(told, mine, "kendall_tau"), order_of(told, mine,
                                                                "regret")
    low, high = FAMILY_COVERED
    wrong = covered is not None and len(mine) >= 10 and not (
        low <= covered <= high)
    goal = goals or (None, None)

    def above(value, limit):
        return limit is not None and value is not None and (
            round(100 * value, 1) > limit)

    cells = [label, str(len(mine)), bold_if(above(error, goal[0]),
                                            percent(error)),
             "%g" % goal[0] if goals else "",
             bold_if(above(left, goal[1]), percent(left)),
             "%g" % goal[1] if goals else "", percent(bias(mine), "%+.1f"),
             bold_if(wrong, percent(covered, "%.0f")),
             bold_if(tau_goal and tau is not None and tau < tau_goal[0],
                     "" if tau is None else "%.2f" % tau),
             bold_if(above(regret, regret_goal and regret_goal[0]),
                     percent(regret))]
    return cells, (label, error, left, goal[0] and goal[0] / 100,
                   goal[1] and goal[1] / 100)


def over_families(held, figure):
    n = sum(h["rows"] for h in held.values())
    return sum(h["rows"] * h[figure] for h in held.values()) / n if n else None


def met(rows, held, apart):
    """Targets in the fit and left out: how many are met, of how many."""
    out = [[0, 0], [0, 0]]
    for label, mine, (goals, _, _) in groups_of(rows):
        values = (mean_off(mine), left_out_of(label, mine, rows, held, apart)[0])
        for k in (0, 1):
            if goals and values[k] is not None:
                out[k][0] += round(100 * values[k], 1) <= goals[k]
                out[k][1] += 1
    return out


def summary(rows, held, apart):
    """What a reader should know first."""
    (a, b), (c, d) = met(rows, held, apart)
    text = ["* %d configurations in the fit have a mean error of %s %%; %d of %d "
            "targets are met." % (len(rows), percent(mean_off(rows)), a, b),
            "* With their family left out it is %s %%, and %s %% are in their 80 %% "
            "interval; %d of %d targets are met." % (
                percent(over_families(held, "error")),
                percent(over_families(held, "covered"), "%.0f"), c, d)]
    causes = cause_names(rows)
    wrong = [(CAUSES.get(n, n), x) for n, (x, spread) in
             zip(causes, regression(rows, causes)) if abs(x) > 2 * spread]
    if wrong:
        text.append("* Parts of a step whose time is wrong by more than two "
                    "standard errors in the rows of the fit: %s." % ", ".join(
                        "%s %+.0f %%" % (n, 100 * x) for n, x in wrong))
    large_bias = []
    for key in (device_of, lambda r: r.get("precision"),
                lambda r: r.get("software")):
        found = {}
        for r in rows:
            found.setdefault(key(r), []).append(r)
        large_bias += ["%s %+.0f %% (%d rows)" % (name, 100 * bias(mine),
                                                  len(mine))
                       for name, mine in sorted(found.items(), key=str)
                       if len(mine) >= 5 and abs(bias(mine)) > 0.1]
    if large_bias:
        text.append("* Devices, precisions and programs of 5 rows or more with a "
                    "bias of more than 10 %%: %s." % ", ".join(large_bias))
    return [line for item in text for line in textwrap.wrap(
        item, 100, subsequent_indent="  ", break_on_hyphens=False)] + [""]


def steps(told, rows, held, apart):
    lines, shown = [], []
    for group in groups_of(rows):
        cells, picture = family_line(told, rows, group, held, apart)
        lines.append(cells)
        shown.append(picture)
    left, covered = (over_families(held, k) for k in ("error", "covered"))
    wrong = not COVERED[0] <= covered <= COVERED[1]
    lines.append(["all rows", str(len(rows)), percent(mean_off(rows)), "",
                  percent(left), "", percent(bias(rows), "%+.1f"),
                  bold_if(wrong, percent(covered, "%.0f")), "", ""])
    aims = "".join(" Aims of %s: tau %g, regret %g %%." % (t[0], t[4][0], t[5][0])
                   for t in TARGETS if t[4] and of_target(rows, t))
    text = ["## Steps by family", "",
            "Columns of errors are in percent; `target` is the largest error that "
            "was aimed at, for the column", "before it. `in 80 %` is the part of the "
            "left-out rows that are in the interval of the other",
            "families (aim: %.0f to %.0f %% of all rows, %.0f to %.0f %% of a family "
            "of 10 rows or more). What" % tuple(
                100 * v for v in COVERED + FAMILY_COVERED),
            "misses its target is bold. Parts of a family are left out with their "
            "whole family. `tau` and", "`regret` are those of `validate`.%s" % aims,
            ""]
    text += table(["runs", "rows", "error", "target", "left out", "target", "bias",
                   "in 80 %", "tau", "regret"], lines)
    text += ["![Mean errors of families](accuracy-families.svg)", ""]
    return text, {"accuracy-families.svg": svg.families(shown)}


# ---- residuals by cause


def solved(matrix, columns):
    """Solves matrix x = column for each column (Gauss-Jordan)."""
    n = len(matrix)
    a = [list(matrix[i]) + [c[i] for c in columns] for i in range(n)]
    for i in range(n):
        k = max(range(i, n), key=lambda r: abs(a[r][i]))
        a[i], a[k] = a[k], a[i]
        a[i] = [v / a[i][i] for v in a[i]]
        for r in range(n):
            if r != i and a[r][i]:
                a[r] = [v - a[r][i] * w for v, w in zip(a[r], a[i])]
    return [[a[i][n + k] for i in range(n)] for k in range(len(columns))]


PRIOR, SOFT = 0.3, 0.08  # of a cause's log error; of a row's, as in the fit


def regression(rows, causes):
    """Log error x of each cause's own time, and its standard error, so that
    residual = sum of fraction * x: robust least squares with a prior."""
    f = [[r["parts"].get(c, 0) for c in causes] for r in rows]
    e = [r["residual"] for r in rows]
    x, n = [0.0] * len(causes), range(len(causes))
    for _ in range(30):
        rest = [v - sum(p * q for p, q in zip(g, x)) for v, g in zip(e, f)]
        w = [1 / math.sqrt(1 + (v / SOFT) ** 2) for v in rest]
        noise = sum(a * v * v for a, v in zip(w, rest)) / max(1, sum(w))
        m = [[sum(a * g[i] * g[k] for a, g in zip(w, f))
              + (noise / PRIOR ** 2 if i == k else 0) for k in n] for i in n]
        right = [sum(a * g[i] * v for a, g, v in zip(w, f, e)) for i in n]
        unit = [[float(i == k) for i in n] for k in n]
        found = solved(m, [right] + unit)
        x = found[0]
    spread = [math.sqrt(noise * found[1 + i][i]) for i in n]
    return list(zip(x, spread))


def cause_names(rows):
    """Causes that any row has, those of the table first."""
    keys = dict.fromkeys(list(CAUSES) + [k for r in rows for k in r["parts"]])
    return [k for k in keys if any(r["parts"].get(k, 0) > 0.001 for r in rows)]


def regression_table(rows):
    causes = cause_names(rows)
    lines = []
    for cause, (x, spread) in zip(causes, regression(rows, causes)):
        f = [r["parts"].get(cause, 0) for r in rows]
        sure = abs(x) > 2 * spread
        lines.append((mean(f) * abs(x), [
            CAUSES.get(cause, cause), percent(mean(f)),
            str(sum(v >= 0.05 for v in f)),
            bold_if(sure, "%+.0f" % (100 * x)), "%.0f" % (100 * spread),
            "%+.2f" % (100 * mean(f) * x)]))
    lines.sort(key=lambda line: -line[0])
    return table(["cause", "mean fraction", "rows with 5 %", "error of its time",
                  "standard error", "part of the mean residual"],
                 [cells for _, cells in lines])


def bin_table(rows):
    lines = []
    for cause in cause_names(rows):
        cells = [CAUSES.get(cause, cause)]
        for low, high in BINS:
            mine = [r["residual"] for r in rows
                    if low <= r["parts"].get(cause, 0) < high]
            cells.append("%+.1f (%d)" % (100 * mean(mine), len(mine))
                         if mine else "")
        lines.append(cells)
    head = ["below 1 %"] + ["%.0f to %.0f %%" % (100 * a, 100 * b)
                            for a, b in BINS[1:-1]] + ["above 40 %"]
    return table(["fraction of the step"] + head, lines)


def mechanisms(rows):
    rows = [r for r in rows if r["parts"]]
    if not rows:
        return [], {}
    panels = []
    for cause in cause_names(rows):
        points = [(r["parts"][cause], r["residual"]) for r in rows
                  if r["parts"].get(cause, 0) >= 0.01]
        if len(points) >= 20:
            panels.append(("%s (%d)" % (CAUSES.get(cause, cause), len(points)),
                           points))
    text = ["## Residuals by mechanism", "",
            "The residual of a row is log(predicted / measured). The predicted step "
            "of each row is divided into", "causes (`breakdown_s` of `validate "
            "--json`). If the time of one cause were wrong by a factor of",
            "exp(x) everywhere, residuals would be x times its fraction of the step. "
            "The first table has the x", "of all causes that explain the residuals of "
            "the rows of the fit best (robust least squares with",
            "x = 0 +- %g as prior), in percent; more than two standard errors are bold. "
            "A positive error is" % PRIOR, "a time that is predicted too long.", ""]
    text += regression_table(rows)
    text += ["The second table has the mean residual in percent, and the number of "
             "rows, by the fraction of the", "step that a cause takes. Every row "
             "counts the same.", ""]
    text += bin_table(rows)
    text += ["![Residuals by the fraction of each cause]"
             "(accuracy-mechanisms.svg)", ""]
    return text, {"accuracy-mechanisms.svg": svg.mechanisms(panels)}


# ---- residuals by what a run is


NODES = {"1": 1, "2 to 4": 4, "5 to 16": 16, "17 to 64": 64,
         "more than 64": math.inf}


def nodes_of(row):
    return next(name for name, limit in NODES.items()
                if (row.get("nodes") or 1) <= limit)


def device_of(row):
    return row.get("catalogue_device") or row["device"]


def main_causes(rows):
    causes = cause_names(rows)
    ordered = sorted(causes, key=lambda c: -mean(
        r["parts"].get(c, 0) for r in rows))[:3]
    return ", ".join("%s %.0f" % (CAUSES.get(c, c), 100 * mean(
        r["parts"].get(c, 0) for r in rows)) for c in ordered)


def by(rows, name, key, keep=True):
    found = {}
    for r in rows:
        found.setdefault(str(key(r)), []).append(r)
    lines, strip = [], []
    order = NODES if key is nodes_of else sorted(
        found, key=lambda v: (-len(found[v]), v))
    for value in [v for v in order if v in found]:
        mine = found[value]
        lines.append([value, str(len(mine)), percent(mean_off(mine)),
                      percent(bias(mine), "%+.1f"),
                      percent(mean(r["inside"] for r in mine), "%.0f"),
                      main_causes(mine)])
        if keep and len(mine) >= 3:
            strip.append((value, [r["residual"] for r in mine]))
    head = [name, "rows", "error", "bias", "in 80 %",
            "largest parts of the step, %"]
    return table(head, lines), (name, strip)


def groups(rows):
    rows = [r for r in rows if r["parts"]]
    if not rows:
        return [], {}
    text = ["## Residuals by device, software, precision and nodes", "",
            "Rows of the fit; `in 80 %` is their part in the interval that "
            "`predict` prints.", ""]
    strips = []
    for name, key, keep in (
            ("kind of model", lambda r: r["kind"], True),
            ("precision", lambda r: r["precision"], True),
            ("nodes", nodes_of, True), ("device", device_of, True),
            ("software", lambda r: r["software"], False)):
        lines, strip = by(rows, name, key, keep)
        text += lines
        if keep:
            strips.append(strip)
    text += ["![Residuals by device, precision, nodes and kind]"
             "(accuracy-groups.svg)", ""]
    return text, {"accuracy-groups.svg": svg.strips(strips)}


def large(rows, limit=0.25):
    lines = [[r["id"], r["family"], device_of(r), "%.4g" % r["compared_s"],
              "%.4g" % r["predicted_s"], percent(r["off"], "%+.0f"),
              main_causes([r])]
             for r in sorted(rows, key=lambda r: -abs(r["residual"]))
             if abs(r["off"]) > limit]
    return ["## Large errors", "",
            "Rows with errors of more than a quarter. "
            "[validation.md](validation.md) has what is known about", "some of "
            "them.", ""] + table(
                ["row", "family", "device", "measured s", "predicted s", "error %",
                 "largest parts of the step, %"], lines)
