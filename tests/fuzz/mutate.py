"""Mutations that keep a file's structure, so that they reach past the first check."""

import copy
import json
import re
import struct

import numpy as np
import safetensors.numpy

from qwyc.files import container

INTEGERS = [
    0,
    1,
    -1,
    2,
    7,
    31,
    32,
    63,
    64,
    127,
    128,
    255,
    256,
    2**15,
    2**16,
    2**24 - 1,
    2**24,
    2**27,
]
INTEGERS += [2**31 - 1, 2**31, -(2**31), 2**32 - 1, 2**53, 2**62, 2**63 - 1, -(2**63), 10**30]
REALS = [0.0, -0.0, 1e-45, -1e308, 1e308, 1e39, float("inf"), float("-inf"), float("nan"), 0.5]
TEXTS = [
    "",
    "\0",
    "a",
    "\x1b[2J",
    "\ud800",
    "x" * 5000,
    "NaN",
    "1e999",
    "-1",
    "[]",
    "é",
    "10" * 200,
]
VALUES = [*INTEGERS, *REALS, *TEXTS, None, True, False, [], {}, [[]], [{}], {"a": 1}, [0] * 1000]


def mutated(target, content, rng):
    """One of many mutations of a file's content. `rng` is a random.Random."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        structured = STRUCTURED.get(target)
        if structured is not None and rng.random() < 0.85:
            try:
                content = structured(content, rng)
                continue
            except Exception:
                pass  # an earlier mutation has broken the structure
        content = _bytes(content, rng)
    return content


def _bytes(content, rng):
    """Flip, cut, repeat, or overwrite with an integer or a real."""
    if not content:
        return bytes([rng.randrange(256)])
    data, at = bytearray(content), rng.randrange(len(content))
    kind = rng.randrange(7)
    if kind == 0:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del data[at:]
    elif kind == 2:
        end = min(len(data), at + rng.choice((1, 4, 8, 64, 1000)))
        del data[at:end]
    elif kind == 3:
        end = min(len(data), at + rng.choice((1, 4, 8, 64, 1000)))
        data[at:at] = data[at:end] * rng.choice((1, 2, 50))
    elif kind == 4:
        data[at] = rng.randrange(256)
    else:
        at -= at % rng.choice((1, 2, 4, 8))
        code = rng.choice("bhiqBHIQfd")
        piece = _packed(code, rng, rng.choice("<<>"))
        data[at : at + len(piece)] = piece
    return bytes(data)


def _packed(code, rng, order):
    if code in "fd":
        value = rng.choice([x for x in REALS if code == "d" or not 1e38 < abs(x) < np.inf])
        return struct.pack(order + code, value)
    size = struct.calcsize("<" + code)
    value = rng.choice(INTEGERS) & ((1 << 8 * size) - 1)
    return value.to_bytes(size, "little" if order == "<" else "big")


def _places(value, found, path=()):
    """The paths of all values in a JSON document."""
    found.append(path)
    if isinstance(value, dict):
        for key, item in value.items():
            _places(item, found, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value[:50]):
            _places(item, found, (*path, i))
    return found


def _change(document, rng):
    """Replace, remove, repeat or swap values of a JSON document, in place."""
    places = _places(document, [])[1:]
    *parents, last = rng.choice(places)
    target = document
    for key in parents:
        target = target[key]
    kind = rng.randrange(6)
    if kind == 0:
        del target[last]
    elif kind == 1 and isinstance(target, list):
        target.insert(last, copy.deepcopy(target[last]))
    elif kind == 2 and isinstance(target[last], list) and target[last]:
        target[last] = target[last] * rng.choice((2, 3)) if len(target[last]) < 500 else []
    elif kind == 3 and isinstance(target[last], (int, float, str)):
        target[last] = _near(target[last], rng)
    else:
        value = rng.choice(VALUES)
        # Numbers are text in XGBoost's parameters.
        target[last] = str(value) if isinstance(target[last], str) and rng.random() < 0.5 else value


def _near(value, rng):
    if isinstance(value, str):
        try:
            return str(int(value) + rng.choice((-1, 1, 100)))
        except ValueError:
            return value[: len(value) // 2]
    return value + rng.choice((-1, 1, 100, 0.5))


def _json(content, rng):
    document = json.loads(content)
    _change(document, rng)
    return json.dumps(document, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _text(content, rng):
    """Replace, remove or repeat a token or a line of text."""
    separator = rng.choice((b"\n", b" ", b"=", b","))
    parts = content.split(separator)
    at = rng.randrange(len(parts))
    kind = rng.randrange(4)
    if kind == 0:
        del parts[at]
    elif kind == 1:
        parts.insert(at, parts[at])
    else:
        value = str(rng.choice([*INTEGERS, *REALS, *TEXTS])).encode("utf-8", "surrogatepass")
        numbers = list(re.finditer(rb"-?[0-9][0-9.e+-]*", content))
        if numbers and kind == 2:
            found = rng.choice(numbers)
            return content[: found.start()] + value + content[found.end() :]
        parts[at] = value
    return separator.join(parts)


def _resealed(content, rng):
    """Change the header or a tensor of a `.qwyc` file, and seal it again, as a hostile writer would."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["qwyc"])
    tensors = {name: t.copy() for name, t in safetensors.numpy.load(content).items()}
    body = header["body"]
    if rng.random() < 0.5:
        _change(body, rng)
    else:
        name = rng.choice(sorted(tensors))
        tensors[name] = _tensor(tensors[name], rng)
    header |= {"body": body, "sha256": container._digest(body, tensors)}
    return safetensors.numpy.save(tensors, metadata={"qwyc": json.dumps(header)})


def _tensor(tensor, rng):
    kind = rng.randrange(6)
    flat = tensor.reshape(-1)
    if kind == 0 or not flat.size:
        return np.resize(tensor, (len(tensor) + rng.choice((1, 5)), *tensor.shape[1:]))
    if kind == 1:
        return tensor[: len(tensor) // 2].copy()
    if kind == 2:
        return tensor[None].copy()
    at = rng.randrange(flat.size)
    if kind == 3:
        with np.errstate(all="ignore"):
            flat[at] = flat[rng.randrange(flat.size)]
    elif tensor.dtype.kind == "f":
        with np.errstate(all="ignore"):
            flat[at] = rng.choice(REALS)
    else:
        info = np.iinfo(tensor.dtype)
        flat[at] = min(max(rng.choice(INTEGERS), info.min), info.max)
    return tensor


STRUCTURED = {
    "xgboost-json": _json,
    "catboost-json": _json,
    "monitor": _json,
    "lightgbm": _text,
    "csv": _text,
    "qwyc-resealed": _resealed,
}
