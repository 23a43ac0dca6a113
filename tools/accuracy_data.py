# SPDX-License-Identifier: Apache-2.0
"""What accuracy-table and accuracy-page read: fits, tables, `validate`."""
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FIT = os.path.join(ROOT, "data/fit")
TABLES = os.path.join(ROOT, "data/validation")


def die(text):
    sys.exit(os.path.basename(sys.argv[0]) + ": " + text)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def validated(program, files, *options):
    """What `validate --json` says about tables; None if it refuses them."""
    run = subprocess.run([program, "validate", "--json", *options, *files],
                         capture_output=True, text=True, check=False)
    try:
        told = json.loads(run.stdout)
    except ValueError:
        die("validate failed: " + run.stderr)
    return told if "rows" in told else None


def fitted_tables():
    """The tables of runs that the fit has."""
    found = re.search(r"^# Fitted on (.*?);", read(os.path.join(FIT, "step.yml")),
                      re.M)
    return [os.path.join(TABLES, name) for name in found.group(1).split(", ")]


def fitted_rows(program):
    """What validate says about the tables of the fit. A test that runs several
    of these tools has it in the file STEPCAST_VALIDATED."""
    path = os.environ.get("STEPCAST_VALIDATED")
    told = json.loads(read(path)) if path else validated(program, fitted_tables())
    if not told or "rows" not in told:
        die("validate refuses the tables of the fit")
    return told


def numbers(text):
    """{rows: 56, bias: 0.1} as a dict."""
    found = re.findall(r"(\w+): ([-0-9.e+]+)", text)
    return {key: float(value) for key, value in found}


def held_out():
    """Errors of each family by a fit that lacks it."""
    text = read(os.path.join(FIT, "held-out.yml")).split("\nfamilies:\n")[1]
    found = re.findall(r"^  (\S+): \{(.*)\}$", text, re.M)
    return {name: numbers(value) for name, value in found}


def fitted(name):
    """The parameters of a file of data/fit: name, and its numbers."""
    text = read(os.path.join(FIT, name)).split("\nparameters:\n")[1]
    found = re.findall(r"^  (\S+):\n((?:    .*\n?)+)", text, re.M)
    return {key: numbers(body) for key, body in found}


def forms():
    """The forms of data/fit/kernels.yml: class, kind and numbers of each."""
    path = os.path.join(FIT, "kernels.yml")
    if not os.path.exists(path):
        return []
    found = []
    for text in read(path).split("\n  - class: ")[1:]:
        form = numbers(text.split("    log:")[0])
        form["class"] = text.split("\n")[0]
        form["kind"] = re.search(r"^    kind: (\S+)", text, re.M).group(1)
        form["corrections"] = len(re.findall(
            r"-?\d+", text.split("    log: >-")[1])) if "log: >-" in text else 0
        found.append(form)
    return found


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else float("nan")
