# SPDX-License-Identifier: Apache-2.0
"""checkout - loads Calculon from a checkout; it needs numpy and psutil."""
import importlib
import os
import sys


def die(text):
    sys.exit("%s: %s" % (os.path.basename(sys.argv[0]), text))


def load(checkout):
    """Its modules llm and calculon."""
    if not os.path.isdir(os.path.join(checkout, "calculon", "llm")):
        die(checkout + " is not a checkout of Calculon")
    sys.path.insert(0, checkout)
    try:
        return (importlib.import_module("calculon.llm"),
                importlib.import_module("calculon"))
    except ModuleNotFoundError as error:
        return die("%s; Calculon needs it" % error)
