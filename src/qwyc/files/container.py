"""The container of a `.qwyc` file: safetensors with one metadata entry, a JSON header with a checksum.

Nothing in a file is executed. The checksum, a SHA-256 over header and tensors, tells a damaged file from
a whole one; it does not tell who wrote the file."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ArtifactError
from qwyc.files.values import count, shortened
from qwyc.limits import MAX_AXES, MAX_HEADER_BYTES, MAX_TENSORS

KEY = "qwyc"  # the only metadata entry
SIZE_BYTES = 8  # at the beginning of a file: the size of its header
ALIGNMENT = 8  # of the tensors; spaces fill the header up
DTYPES = {  # in the order in which safetensors writes tensors, so that each is aligned
    "U64": "<u8",
    "I64": "<i8",
    "F64": "<f8",
    "F32": "<f4",
    "U32": "<u4",
    "I32": "<i4",
    "U8": "u1",
}
NAMES = {np.dtype(kind).str: (rank, name) for rank, (name, kind) in enumerate(DTYPES.items())}

Content = bytes | memoryview
Tensors = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Container:
    """What a file holds, before anything is made of it."""

    format: int
    body: Any  # plain JSON values
    tensors: Tensors


def pack(container: Container) -> bytes:
    """The content of a file; the same container gives the same bytes."""
    tensors = {name: np.ascontiguousarray(array) for name, array in container.tensors.items()}
    digest = _digest(container.body, tensors)
    header = {"format": container.format, "sha256": digest, "body": container.body}
    return laid_out(tensors, {KEY: _canonical(header)})


def laid_out(tensors: Tensors, metadata: Mapping[str, str]) -> bytes:
    """The same bytes as safetensors.numpy.save(tensors, metadata)."""
    layout: dict[str, Any] = {"__metadata__": dict(metadata)}
    order = sorted(tensors, key=lambda name: (NAMES[tensors[name].dtype.str][0], name))
    end = 0
    for name in order:
        array, begin = tensors[name], end
        end += array.nbytes
        kind = NAMES[array.dtype.str][1]
        layout[name] = {"dtype": kind, "shape": array.shape, "data_offsets": (begin, end)}
    text = json.dumps(layout, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    return b"".join(
        [len(text).to_bytes(SIZE_BYTES, "little"), text, *(tensors[n].data for n in order)]
    )


def unpack(content: Content, formats: tuple[int, ...]) -> Container:
    """What the content of a file says, in one of these formats, once its checksum has been compared."""
    layout, begin = _layout(content)
    try:
        metadata = layout.pop("__metadata__")
        header = _parsed(metadata[KEY])
        if len(metadata) != 1:
            raise ValueError
        version, body, checksum = header["format"], header["body"], header["sha256"]
        if isinstance(version, bool) or not isinstance(version, int):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _not_a_file() from None
    if version not in formats:
        known = " and ".join(str(number) for number in formats)
        raise ArtifactError(
            f"the file has format {shortened(version)}; this version of qwyc reads formats {known}. "
            "Install the version that wrote it, or optimise again."
        )
    tensors = _tensors(memoryview(content)[begin:], layout)
    if _digest(body, tensors) != checksum:
        raise ArtifactError("the file is damaged: its contents do not match their checksum")
    return Container(version, body, tensors)


def check_header_size(content: Content, file_size: int) -> int:
    """The size of the header, which the first bytes of a file state, if a file of this size can hold it."""
    size = int.from_bytes(content[:SIZE_BYTES], "little")
    if len(content) < SIZE_BYTES or size > min(file_size - SIZE_BYTES, MAX_HEADER_BYTES):
        raise _not_a_file()
    return size


def _layout(content: Content) -> tuple[dict[str, Any], int]:
    """The safetensors header, and where the tensors' bytes begin."""
    size = check_header_size(content, len(content))
    try:
        layout = _parsed(bytes(content[SIZE_BYTES : SIZE_BYTES + size]))
    except (ValueError, RecursionError):
        raise _not_a_file() from None
    if not isinstance(layout, dict):
        raise _not_a_file()
    return layout, SIZE_BYTES + size


def _parsed(text: str | bytes) -> Any:
    """A JSON document in which no object has a key twice, as safetensors has it."""
    return json.loads(text, object_pairs_hook=_without_repeats)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _not_a_file() -> ArtifactError:
    return ArtifactError(
        "not a qwyc file, or a truncated one; qwyc optimize makes one from a model"
    )


def _tensors(view: memoryview, layout: Mapping[str, Any]) -> Tensors:
    """The tensors, copied: what is checked must not change when the file does. They follow each other
    without gaps and fill the file, as safetensors has it, so the copies take no more than the file."""
    found = []
    try:
        if len(layout) > MAX_TENSORS:
            raise ValueError(f"it has {len(layout):,} tensors, and at most {MAX_TENSORS} are read")
        for name, facts in layout.items():
            if len(facts["shape"]) > MAX_AXES:  # before their product, of thousands of digits
                raise ValueError(f"a tensor has {len(facts['shape']):,} axes, more than {MAX_AXES}")
            dtype, shape = np.dtype(DTYPES[facts["dtype"]]), [count(n) for n in facts["shape"]]
            begin, end = (count(at) for at in facts["data_offsets"])
            if end - begin != math.prod(shape) * dtype.itemsize:
                raise ValueError(f"tensor {shortened(name)} is not of its shape")
            found.append((begin, end, name, dtype, shape))
        found.sort(key=lambda tensor: tensor[:2])
        ends = [0, *(tensor[1] for tensor in found)]
        if [tensor[0] for tensor in found] != ends[:-1] or ends[-1] != len(view):
            raise ValueError("its tensors overlap, leave gaps or do not fill the file")
        return {
            name: np.frombuffer(view[begin:end], dtype).reshape(shape).copy()
            for begin, end, name, dtype, shape in found
        }
    except (ValueError, KeyError, TypeError, AttributeError, ArtifactError) as error:
        raise ArtifactError(f"the file is damaged: {error}") from None


def _digest(body: Any, tensors: Mapping[str, npt.NDArray[Any]]) -> str:
    digest = hashlib.sha256(_canonical(body).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
