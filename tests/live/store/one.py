# SPDX-License-Identifier: Apache-2.0
# world 512
# ranks 3
"""PyTorch's own client of the store, as rank 3 of a world of 512."""
import os
import signal
import sys
from datetime import timedelta

try:
    import torch.distributed as dist
    from torch.distributed import distributed_c10d as c10d
except ImportError:
    print("skipped: no PyTorch")
    sys.exit(77)

PORT = int(sys.argv[1])
WORLD = 512


def client(seconds=20):
    return dist.TCPStore("127.0.0.1", PORT, WORLD, False,
                         timedelta(seconds=seconds))


store = client()  # adds 1 to "init/"
store.set("a", "one")
assert store.get("a") == b"one"
assert store.add("n", 5) == 5
assert store.add("n", -7) == -2
assert store.get("n") == b"-2"
assert store.compare_set("a", "two", "x") == b"one"
assert store.compare_set("a", "one", "x") == b"x"
assert store.compare_set("fresh", "", "y") == b"y"
assert store.num_keys() == 4, store.num_keys()  # with "init/"
assert store.delete_key("fresh")
assert not store.delete_key("fresh")
store.wait(["a", "n"], timedelta(seconds=20))

# large values, in many pieces
large = "x" * (3 << 20)
store.set("large", large)
assert store.get("large") == large.encode()

# a time-out, and the client goes on
try:
    store.wait(["abort"], timedelta(milliseconds=100))
    sys.exit("a key that nobody sets was there")
except RuntimeError:
    pass
store.set("abort", "late")
assert store.get("a") == b"x"

# what torch.distributed does before and between groups
assert store.add("count", 1) == WORLD
c10d.get_world_size = lambda group=None: WORLD
outer = dist.PrefixStore("/worker/attempt_0", store)
default = dist.PrefixStore("default_pg", outer)
for count in range(20):
    c10d._group_count = count
    c10d._store_based_barrier(3, default, timedelta(seconds=20))
group = dist.PrefixStore("7", default)
assert len(group.get("SEQ_NUM_STORE_KEY")) == 8
assert len(group.get("0")) == 128  # an ncclUniqueId
group.set("3", "address")
for rank in (0, 1, 2, 4, 511):
    assert group.get(str(rank)) == b"address"

# a client that dies, also while it waits, does not hurt
for _ in range(3):
    child = os.fork()
    if child == 0:
        other = client()
        other.set("alive", "yes")
        signal.setitimer(signal.ITIMER_REAL, 0.2)  # in the middle of it
        other.get("error")
    os.waitpid(child, 0)
assert store.get("alive") == b"yes"
many = [client() for _ in range(40)]
for i, c in enumerate(many):
    c.set("many%d" % i, str(i))
assert all(store.get("many%d" % i) == str(i).encode() for i in range(40))
print("done")
