# SPDX-License-Identifier: Apache-2.0
"""PyTorch's process groups in an emulated world.

Nothing is imported until the program imports torch.distributed itself; then
"gloo" becomes the emulated world's (groups, operations), and the steps of
optimizers are marked (steps)."""

import importlib
import importlib.machinery
import sys

_hooks = {
    "torch.distributed.distributed_c10d": ".groups",
    "torch.optim.optimizer": ".steps",
}


class _Finder:
    """Runs a hook after its module."""

    def find_spec(self, name, path=None, target=None):
        if name not in _hooks:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            hook = importlib.import_module(_hooks[name], __name__)
            hook.install(module)

        spec.loader.exec_module = exec_module
        return spec


folder = None


def install(libraries):
    """`libraries`: the folder of libstepcast-torch.so."""
    global folder
    folder = libraries
    sys.meta_path.insert(0, _Finder())
