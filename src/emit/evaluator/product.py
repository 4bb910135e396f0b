"""The job @JOB@: layout parameters in; legality, memory and times out. Made by parc.

    import @NAME@
    out = @NAME@.evaluate(tp=[1, 2, 4, 8])      # what is not given has its default
    out["status"], out["step_time"]              # status 0 is legal, else STATUS[status]

Columns may be numbers, sequences, arrays or numpy arrays of doubles. With numpy the results are numpy arrays, else
arrays of the module `array`. Calls release the interpreter's lock and may run on many threads at once.
"""

import array
import ctypes
import json
import os

try:
    import numpy
except ImportError:
    numpy = None

_library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib@NAME@.so"))
_evaluate = _library.parc_@NAME@_evaluate
_evaluate.argtypes = [ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
_evaluate.restype = ctypes.c_int32

SCHEMA = json.loads(ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(_library, "parc_@NAME@_schema"))).decode())
INPUTS = [c["name"] for c in SCHEMA["inputs"]]
OUTPUTS = [c["name"] for c in SCHEMA["outputs"]]
STATUS = ["legal"] + SCHEMA["status"]
DEFAULTS = {c["name"]: c["default"] for c in SCHEMA["inputs"]}


def _doubles(values, n):
    """A buffer of n doubles and its address."""
    if numpy is not None:
        column = numpy.require(numpy.broadcast_to(values, (n,)), numpy.float64, ["C", "A", "W", "O"])
        return column, column.ctypes.data
    column = array.array("d", values if hasattr(values, "__len__") else [values] * n)
    if len(column) != n:
        raise ValueError(f"a column of {len(column)} values among columns of {n}")
    return column, column.buffer_info()[0]


def evaluate(**columns):
    """Every output as a column, by name."""
    for name in columns:
        if name not in DEFAULTS:
            raise TypeError(f"no column {name!r}; there are {', '.join(INPUTS)}")
    n = max([len(v) for v in columns.values() if hasattr(v, "__len__")], default=1)
    ins = [_doubles(columns.get(name, DEFAULTS[name]), n) for name in INPUTS]
    outs = [_doubles(numpy.zeros(n) if numpy is not None else array.array("d", bytes(8 * n)), n) for _ in OUTPUTS]
    addresses = lambda list: (ctypes.c_void_p * len(list))(*[address for _, address in list])
    _evaluate(n, addresses(ins), addresses(outs))
    return {name: column for name, (column, _) in zip(OUTPUTS, outs)}
