# SPDX-License-Identifier: Apache-2.0
"""What the studies share: Chakra traces as JSON, runs of `stepcast simulate`,
tables of results, and their copies in the pages.

    run [--fast] [--out DIR]   simulate, check what must hold, write result.csv
                               and plot.svg (beside the script without --out)
                               and the table between the page's markers
    run --check                the page and the plot are those of result.csv,
                               and what must hold holds there

STEPCAST names the program (build/release/stepcast of this repository).
"""
import argparse
import concurrent.futures
import csv
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- table: result.csv -->", "<!-- end of table -->"


def program():
    path = Path(os.environ.get("STEPCAST", ROOT / "build/release/stepcast"))
    if not path.is_file():
        sys.exit(f"no program at {path}: build it (cmake --preset release) "
                 "or set STEPCAST")
    return str(path.resolve())


def stepcast(*args):
    """Runs a command with --json and returns its document, also if what it
    predicts does not fit (exit code 1, `fits` is false)."""
    done = subprocess.run([program(), *map(str, args), "--json", "--quiet"],
                          capture_output=True, text=True)
    if done.returncode != 0 and '"fits": false' not in done.stdout:
        sys.exit(f"stepcast {' '.join(map(str, args))}\n{done.stderr}"
                 f"exit code {done.returncode}")
    return json.loads(done.stdout)


def search(*args):
    """The best configuration: its choices and what is predicted for it; None if
    nothing fits.  One thread, as studies run several side by side."""
    done = subprocess.run([program(), "search", *map(str, args), "--cp", "1",
                           "--top", "1", "--jobs", "1", "--json", "--quiet"],
                          capture_output=True, text=True)
    doc = json.loads(done.stdout) if done.stdout else {}
    if done.returncode not in (0, 1) or "best" not in doc:
        sys.exit(f"stepcast search {' '.join(map(str, args))}\n{done.stderr}"
                 f"{done.stdout}exit code {done.returncode}")
    return doc["best"][0] if doc["best"] else None


# ---- traces -----------------------------------------------------------------

class Trace:
    """Nodes of one rank; each call returns the id that others wait for."""

    def __init__(self):
        self.nodes = []

    def add(self, kind, name, after, **attributes):
        node = {"id": len(self.nodes) + 1, "name": name, "type": kind,
                "data_deps": sorted(set(after)), **attributes}
        self.nodes.append(node)
        return node["id"]

    def compute(self, name, flop, size, after):
        """A kernel, timed by the roofline of the system file."""
        return self.add("COMP_NODE", name, after, num_ops=max(int(flop), 1),
                        tensor_size=int(size), is_cpu_op=False)

    def host(self, name, seconds, after):
        """Work of the host, of this duration."""
        return self.add("COMP_NODE", name, after, is_cpu_op=True,
                        duration_micros=round(seconds * 1e6))

    def collective(self, name, kind, size, after, dims=None):
        """Over all ranks, over those along dimensions of the network (`dims`
        has a truth value for each), or over the communicator "tp" or "dp" that
        write_groups() names."""
        if isinstance(dims, str):
            more = {"pg_name": dims}
        else:
            more = {} if dims is None else {"involved_dim": [bool(d) for d in dims]}
        return self.add("COMM_COLL_NODE", name, after, is_cpu_op=False,
                        comm_type=KINDS.index(kind), comm_size=int(size), **more)

    def load(self, name, size, after):
        return self.add("MEM_LOAD_NODE", name, after, tensor_size=int(size))

    def store(self, name, size, after):
        return self.add("MEM_STORE_NODE", name, after, tensor_size=int(size))

    def write(self, prefix, ranks):
        """All ranks do the same: one file under the names of all."""
        first = Path(f"{prefix}.0.json")
        first.write_text(self.text())
        for rank in range(1, ranks):
            Path(f"{prefix}.{rank}.json").symlink_to(first.name)

    def write_groups(self, prefix, ranks, tp):
        """Communicators "tp" of `tp` neighbours and "dp" of the ranks that
        have the same place in theirs; returns the file of groups."""
        groups = {}
        for rank in range(ranks):
            text = self.text()
            for kind, number, members in (
                    ("tp", rank // tp, range(rank // tp * tp, rank // tp * tp + tp)),
                    ("dp", ranks // tp + rank % tp, range(rank % tp, ranks, tp))):
                groups[str(number + 1)] = list(members)
                text = text.replace(f'"{kind}"', f'"{number + 1}"')
            Path(f"{prefix}.{rank}.json").write_text(text)
        path = Path(f"{prefix}.groups")
        path.write_text(json.dumps(groups))
        return path

    def text(self):
        nodes = ",\n".join(json.dumps(n, separators=(",", ":")) for n in self.nodes)
        return f"[\n{nodes}\n]\n"


# The numbers of Chakra's CollectiveCommType.
KINDS = ["all_reduce", "reduce", "all_gather", "gather", "scatter",
         "broadcast", "all_to_all", "reduce_scatter"]


# ---- runs -------------------------------------------------------------------

GIB = 2 ** 30


def network(path, topology, counts, gb_per_s, latency_ns):
    """GB/s of 1e9 bytes that an NPU sends into each dimension, as published
    tables give them; the file wants GB of 2^30 bytes of one link.  On a ring
    that is the link to one neighbour: ring algorithms go one way."""
    link = [b * 1e9 / GIB / (n - 1 if t == "FullyConnected" else 1)
            for t, n, b in zip(topology, counts, gb_per_s)]
    lines = {"topology": topology, "npus_count": counts,
             "bandwidth": [round(x, 6) for x in link], "latency": latency_ns}
    path.write_text("".join(f"{k}: [ {', '.join(map(str, v))} ]\n"
                            for k, v in lines.items()))


def simulate(folder, prefix, system, **options):
    """One run; `options` are those of the command, files by their path."""
    args = ["simulate", "--workload", prefix, "--system", system]
    for key, value in options.items():
        args += ["--" + key.replace("_", "-")] + ([] if value is True else [value])
    doc = stepcast(*args)
    (folder / f"{prefix.name}.{system.stem}.out.json").write_text(json.dumps(doc))
    return doc


def emulate(record, command, **options):
    """A live program as one real rank; its traces go into the folder `record`.
    Returns the result.  Options as in simulate().  If this machine cannot do
    that, the study ends with exit code 77."""
    args = [program(), "emulate", "--record", str(record), "--json", "--quiet"]
    for key, value in options.items():
        args += ["--" + key.replace("_", "-"), str(value)]
    done = subprocess.run(args + ["--", *map(str, command)], text=True,
                          capture_output=True, env={**os.environ,
                                                    "OMP_NUM_THREADS": "1"})
    if "is not built" in done.stderr:
        skip("this build of stepcast cannot emulate MPI programs")
    if done.returncode != 0:
        sys.exit(f"{' '.join(args)}\n{done.stderr}exit code {done.returncode}")
    return json.loads(done.stdout)


def skip(why):
    print(f"skipped: {why}", file=sys.stderr)
    os._exit(77)  # also from a thread of share()


def share(jobs):
    """Runs functions without arguments side by side; results in order."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [f.result() for f in [pool.submit(j) for j in jobs]]


# ---- results ----------------------------------------------------------------

def check(claims):
    """Each claim is (text, whether it holds)."""
    failed = [text for text, holds in claims if not holds]
    for text in failed:
        print(f"does not hold: {text}", file=sys.stderr)
    if failed:
        sys.exit(1)


def write_csv(path, rows):
    with open(path, "w", newline="", encoding="ascii") as f:
        table = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def read_csv(path):
    with open(path, newline="", encoding="ascii") as f:
        return list(csv.DictReader(f))


def markdown(rows):
    head = list(rows[0])
    words = [h for h in head if not is_number(rows[0][h])]
    lines = [head, [":--" if h in words else "--:" for h in head]]
    lines += [[str(r[h]) for h in head] for r in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def is_number(text):
    """Also "-": no value."""
    if text == "-":
        return True
    try:
        float(text)
        return True
    except ValueError:
        return False


def page_with(page, rows):
    head, rest = page.split(BEGIN + "\n")
    tail = rest.split(END)[1]
    return f"{head}{BEGIN}\n{markdown(rows)}{END}{tail}"


def by_name(rows):
    """Rows by their first column, the others as numbers where they are some
    ("-": not a number)."""
    def cell(v):
        if v == "-":
            return math.nan
        return float(v) if is_number(v) else v
    return {next(iter(r.values())):
            {k: cell(v) for k, v in list(r.items())[1:]} for r in rows}


def main(script, study, claims, draw):
    """`study(folder, fast)` gives the rows, `claims(by_name(rows))` what must
    hold of them, `draw(rows)` the text of a plot."""
    home = Path(script).resolve().parent
    p = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    p.add_argument("--fast", action="store_true", help="a smaller form")
    p.add_argument("--check", action="store_true",
                   help="compare page and plot with result.csv, run nothing")
    p.add_argument("--out", type=Path, help="folder of the results and inputs")
    a = p.parse_args()
    page = home / "README.md"
    if a.check:
        rows = read_csv(home / "result.csv")
        check(claims(by_name(rows)) + [
            (f"{page} has the table of result.csv",
             page.read_text() == page_with(page.read_text(), rows)),
            (f"{home / 'plot.svg'} is drawn from result.csv",
             (home / "plot.svg").read_text() == draw(rows))])
        return
    if a.fast and not a.out:
        sys.exit("--fast needs --out: result.csv is of the full form")
    out = a.out or home
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if a.out:
            folder = out / "inputs"
            folder.mkdir(exist_ok=True)
            for old in folder.iterdir():
                shutil.rmtree(old) if old.is_dir() else old.unlink()
        write_csv(out / "result.csv", study(folder, a.fast))
    rows = read_csv(out / "result.csv")
    (out / "plot.svg").write_text(draw(rows))
    if not a.out:
        page.write_text(page_with(page.read_text(), rows))
    print(markdown(rows), end="")
    check(claims(by_name(rows)))
