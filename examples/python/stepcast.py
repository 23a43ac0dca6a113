# SPDX-License-Identifier: Apache-2.0
"""stepcast from Python: one file, nothing but the standard library.

    import stepcast

    r = stepcast.predict(model="llama3-70b", cluster="dgx-h100:16", tp=8)
    print(r["step_time_s"], r["mfu"], r["fits"])

Options are those of the commands, with "_" for "-": `stepcast predict --help`.
A value is a text, a number, True or False, or a list where an option may be
given several times.  Answers are the commands' JSON as a dict; what is wrong
is an Error with code, file, line, column and hint.

The library is libstepcast.so.0 where the system finds it, beside which this
file is installed, or what STEPCAST_LIBRARY names.
"""

import ctypes
import json
import os
import pathlib


class Error(Exception):
    """What is wrong with a question; the first error's parts are attributes.

    code     "unknown-name": stable; `stepcast explain CODE` explains it
    file     file, or option with its value ("--tp 7"); None
    line, column   from 1; 0: not known
    message, hint  what is wrong, what to write instead (or None)
    errors   all errors, each a dict of these
    """

    def __init__(self, text, errors):
        super().__init__(text)
        self.errors = errors
        first = errors[0] if errors else {}
        self.code = first.get("code")
        self.file = first.get("file")
        self.line = first.get("line", 0)
        self.column = first.get("column", 0)
        self.message = first.get("message", text)
        self.hint = first.get("hint")


def predict(**options):
    """One training step: time, memory, costs (schema stepcast.result/1).

    A step that does not fit into memory is an answer too: "fits" is False.
    """
    return ask("predict", **options)


def simulate(**options):
    """Execution traces on a machine (schema stepcast.simulate/1)."""
    return ask("simulate", **options)


def replay(*traces, **options):
    """Measured traces run again (schema stepcast.replay/1)."""
    return ask("replay", *traces, **options)


def coll(collective, **options):
    """A collective operation over message sizes (schema stepcast.coll/1)."""
    return ask("coll", collective, **options)


def show(name, **options):
    """An entry of the catalogue, or a file of one (schema stepcast.show/1)."""
    return ask("show", name, **options)


def names(kind):
    """What the catalogue has: "models", "devices", "clusters", "software"."""
    return ask("list", kind, names=True)


def catalogue(kind):
    """The same with their figures (schema stepcast.list/1), in "rows"."""
    return ask("list", kind)


def frame(rows):
    """Rows (a list of dicts, or an answer that has "rows") as a
    pandas.DataFrame; where pandas is not installed, the list itself."""
    if isinstance(rows, dict):
        rows = rows["rows"]
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)


def version():
    """Version of the library, as a text."""
    return _lib.stepcast_version().decode()


def ask(command, *words, **options):
    """The answer of any command that the library has."""
    errors = _lib.stepcast_errors_new()
    job = _lib.stepcast_job_new(command.encode())
    try:
        if not job or not errors:
            raise Error(f"no command {command!r}", [])
        for name, value in options.items():
            many = isinstance(value, (list, tuple))
            if many and name.replace("_", "-") not in repeated(command):
                raise TypeError(f"{name} has one value: ask once for each")
            for one in value if many else [value]:
                _set(job, name.replace("_", "-"), one, errors)
        for word in words:
            _check(_lib.stepcast_job_add(job, _text(word), errors), errors)
        return _run(job, errors)
    finally:
        _lib.stepcast_job_free(job)
        _lib.stepcast_errors_free(errors)


def repeated(command):
    """Names of the options of a command that may be given several times."""
    found, i, o = set(), 0, _COption(ctypes.sizeof(_COption))
    text = ctypes.create_string_buffer(64)
    while _lib.stepcast_job_option(command.encode(), i, ctypes.byref(o), text,
                                   len(text)) == 0:
        if o.repeated:
            found.add(o.name.decode())
        i += 1
    return found


# ---- the library ------------------------------------------------------------


class _CError(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("code", ctypes.c_char_p),
        ("file", ctypes.c_char_p),
        ("line", ctypes.c_uint32),
        ("column", ctypes.c_uint32),
        ("message", ctypes.c_char_p),
        ("hint", ctypes.c_char_p),
    ]


class _COption(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("value", ctypes.c_char_p),
        ("unit", ctypes.c_char_p),
        ("initial", ctypes.c_char_p),
        ("help", ctypes.c_char_p),
        ("repeated", ctypes.c_int),
    ]


def _text(value):
    if isinstance(value, bool):
        value = "true" if value else "false"
    return os.fsencode(value if hasattr(value, "__fspath__") else str(value))


def _set(job, name, value, errors):
    if value is not None:
        status = _lib.stepcast_job_set(job, name.encode(), _text(value), errors)
        _check(status, errors)


def _check(status, errors):
    if status <= 1:  # STEPCAST_OK, STEPCAST_NO
        return
    found = []
    for i in range(_lib.stepcast_errors_count(errors)):
        e = _CError(ctypes.sizeof(_CError))
        _lib.stepcast_errors_get(errors, i, ctypes.byref(e))
        parts = {name: getattr(e, name) for name, _ in e._fields_[1:]}
        found.append({name: part.decode(errors="replace")
                      if isinstance(part, bytes) else part
                      for name, part in parts.items()})
    text = _lib.stepcast_errors_text(errors).decode(errors="replace").rstrip()
    raise Error(text or f"status {status}", found)


def _run(job, errors):
    document = ctypes.c_void_p()
    _check(_lib.stepcast_job_run(job, ctypes.byref(document), errors), errors)
    try:
        return json.loads(_lib.stepcast_document_json(document))
    finally:
        _lib.stepcast_document_free(document)


def _load():
    name = "libstepcast.so.0"
    here = pathlib.Path(__file__).resolve()
    beside = [file for up in here.parents for place in ("lib", "lib64", "lib/*")
              for file in up.glob(f"{place}/{name}")]
    tried = []
    for file in [os.environ.get("STEPCAST_LIBRARY"), *beside, name]:
        try:
            if file:
                return ctypes.CDLL(str(file))
        except OSError as e:
            tried.append(str(e))
    raise ImportError("; ".join(tried) + " (set STEPCAST_LIBRARY)")


_lib = _load()
for _name, _result, *_arguments in [
    ("version", ctypes.c_char_p),
    ("errors_new", ctypes.c_void_p),
    ("errors_free", None, ctypes.c_void_p),
    ("errors_count", ctypes.c_uint32, ctypes.c_void_p),
    ("errors_get", ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32,
     ctypes.c_void_p),
    ("errors_text", ctypes.c_char_p, ctypes.c_void_p),
    ("job_new", ctypes.c_void_p, ctypes.c_char_p),
    ("job_free", None, ctypes.c_void_p),
    ("job_set", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p,
     ctypes.c_char_p, ctypes.c_void_p),
    ("job_add", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p,
     ctypes.c_void_p),
    ("job_option", ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32,
     ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t),
    ("job_run", ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
     ctypes.c_void_p),
    ("document_json", ctypes.c_char_p, ctypes.c_void_p),
    ("document_free", None, ctypes.c_void_p),
]:
    _function = getattr(_lib, "stepcast_" + _name)
    _function.restype, _function.argtypes = _result, _arguments
