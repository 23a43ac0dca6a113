# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's own DistributedTest as one rank of RANK, WORLD_SIZE.

distributed_test.py list            names of all tests
distributed_test.py run FOLDER NAME...  runs them one after the other in one
    process group; FOLDER/RANK gets a line `NAME ok|failed|skipped|stuck`
    for each

The ranks keep in step by files in FOLDER, not by the process group that is
tested. After a test with different outcomes on the ranks the run ends, because
they may no longer agree on what comes next.
"""
import os
import signal
import sys
import time
import types
import unittest

LIMIT = 120  # seconds of one test

os.environ.setdefault("BACKEND", "gloo")
os.environ.setdefault("WORLD_SIZE", "2")
os.environ["INIT_METHOD"] = "env://"
command, names = sys.argv[1], sys.argv[2:]
sys.argv[1:] = []
if command == "run":
    folder = os.environ["TEMP_DIR"] = names.pop(0)
else:
    os.environ["TEMP_DIR"] = "/tmp"

# Debian has no package of it, and only the base class of tests is used.
stand_in = types.ModuleType("expecttest")
stand_in.TestCase = unittest.TestCase
stand_in.ACCEPT = False
sys.modules.setdefault("expecttest", stand_in)

import torch.distributed as dist
from torch.testing._internal import common_utils
from torch.testing._internal.distributed import distributed_test as theirs


class Case(theirs.DistributedTest._DistTestBase, common_utils.TestCase):
    @property
    def rank(self):
        return int(os.environ["RANK"])

    @property
    def world_size(self):
        return os.environ["WORLD_SIZE"]

    @property
    def init_method(self):
        return "env://"

    @property
    def file_name(self):
        return os.path.join(folder, "store")


def together(what, outcome):
    """Waits until all ranks have come here; whether their outcomes agree."""
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    paths = [os.path.join(folder, f"{what}.{r}") for r in range(world)]
    with open(paths[rank] + ".new", "w") as f:
        f.write(outcome)
    os.rename(paths[rank] + ".new", paths[rank])
    until = time.monotonic() + LIMIT
    while not all(map(os.path.exists, paths)):
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return len({open(p).read() for p in paths}) == 1


def run(name):
    try:
        case = Case(name)
        case.setUp()
        try:
            getattr(case, name)()
        finally:
            case.tearDown()
    except (unittest.SkipTest, SystemExit) as e:
        return "skipped", str(e)
    except BaseException as e:
        import traceback

        traceback.print_exc()
        return "failed", repr(e)
    return "ok", ""


def ends(name):
    """Whether it leaves another default group; such a test has to be the last."""
    return name == "test_barrier_timeout_global"


def main():
    if command == "list":
        print("\n".join(sorted(unittest.TestLoader().getTestCaseNames(Case), key=ends)))
        return
    rank = os.environ["RANK"]
    log = open(os.path.join(folder, rank), "a")

    def write(name, how):
        print(name, how, file=log, flush=True)

    def stuck(*_):
        write(current, "stuck")
        os._exit(3)

    signal.signal(signal.SIGALRM, stuck)
    dist.init_process_group(
        "gloo", init_method="env://", timeout=theirs.timedelta(seconds=20)
    )
    os.makedirs(os.path.join(folder, "barrier"), exist_ok=True)
    os.makedirs(os.path.join(folder, "test_dir"), exist_ok=True)
    for i, name in enumerate(names):
        current = name
        signal.alarm(LIMIT)
        print("test", name, file=sys.stderr, flush=True)
        how, why = run(name)
        write(name, how)
        if how == "failed":
            print(name, why, file=sys.stderr, flush=True)
            signal.alarm(5)
        if not together(f"after{i}", how):
            os._exit(4)
        signal.alarm(0)
    os._exit(0)


main()
