# SPDX-License-Identifier: Apache-2.0
"""Start-up of Python under `stepcast emulate`: PyTorch's process groups become
those of the emulated world. The program's own sitecustomize runs, too."""

import importlib.util
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [x for x in sys.path if os.path.abspath(x or ".") != _here]

if os.environ.get("STEPCAST_EMULATE"):
    sys.path.insert(0, _here)
    try:
        import stepcast_torch

        stepcast_torch.install(os.path.dirname(_here))
    finally:
        sys.path.remove(_here)

_own = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # noqa: F401
except ImportError as e:
    if e.name != "sitecustomize":
        raise
    if _own is not None:
        sys.modules["sitecustomize"] = _own
