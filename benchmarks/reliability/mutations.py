"""Seeded damage to files: to their bytes, and to what their formats contain."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import random
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import srsly

CWD = "/proc/self/cwd"  # an absolute name of the room in which `hostile.py` notices new content
OUTSIDE = f"{CWD}/outside"
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 2**31, 2**63 - 1, -(2**63), 0.5, -0.0, 1e38, 1e308,
    float("nan"), float("inf"), "", "a", "zero", "warm", "vectors", "../../outside",
    OUTSIDE, "a\0b", "\ud800", "x" * 10_000, [], {}, [[]], [None], {"a": {"a": {}}},
    [[2**40, 2**40]], [[1, 2**20]] * 50, ["F64", [0], [0, 0]],
]  # fmt: skip
FLOATS = [float("nan"), float("inf"), -float("inf"), 3e38, -3e38, 1e-45]


def damage(data: bytes, rng: random.Random) -> bytes:
    """Bytes with a fault or a few: flipped bits, cuts, copies, runs of one byte."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5, 20))):
        at = rng.randrange(len(out) + 1)
        # Headers are short, and a fault in them tells more.
        at = min(at, rng.choice((len(out), len(out), 16, 200)))
        length = rng.choice((1, 2, 8, 100, 5_000))
        match rng.randrange(7):
            case 0 if at < len(out):
                out[at] ^= 1 << rng.randrange(8)
            case 1:
                del out[at:]
            case 2:
                del out[at : at + length]
            case 3:
                out[at:at] = out[at : at + length]
            case 4:
                out[at : at + length] = bytes([rng.choice((0, 10, 32, 255))]) * length
            case 5:
                out[at:at] = rng.randbytes(length)
            case _:
                out[at : at + 4] = struct.pack("<f", rng.choice(FLOATS))
    return bytes(out)


def change(value: Any, rng: random.Random, depth: int = 0) -> Any:
    """JSON-like data with one value changed, removed, added or nested."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        copy = dict(value)
        key = rng.choice(sorted(copy, key=str))
        match rng.randrange(8):
            case 0:
                del copy[key]
            case 1:
                copy[rng.choice(("unknown", "../../outside", OUTSIDE, ""))] = rng.choice(VALUES)
            case 2 if len(copy) > 1:
                other = rng.choice(sorted(copy, key=str))
                copy[key], copy[other] = copy[other], copy[key]
            case _:
                copy[key] = change(copy[key], rng, depth + 1)
        return copy
    if isinstance(value, list) and value and rng.random() < 0.8:
        items = list(value)
        at = rng.randrange(len(items))
        match rng.randrange(6):
            case 0:
                del items[at]
            case 1:
                items.insert(at, rng.choice(VALUES))
            case _:
                items[at] = change(items[at], rng, depth + 1)
        return items
    if isinstance(value, bytes):
        return change_bytes(value, rng)
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.5:
        return value + rng.choice((-1, 1, 1000))
    return rng.choice(VALUES)


def change_bytes(data: bytes, rng: random.Random) -> bytes:
    """What msgpack holds as bytes: often msgpack or safetensors again."""
    for mutate in (change_msgpack, change_safetensors):
        try:
            return mutate(data, rng)
        except Exception:
            continue
    return damage(data, rng)


def change_json(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.02:
        return b"[" * 200_000
    return json.dumps(change(json.loads(data), rng)).encode("utf-8", "surrogatepass")


def change_jsonl(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines()
    at = rng.randrange(len(lines))
    lines[at] = change_json(lines[at], rng)
    return b"\n".join(lines) + b"\n"


def change_safetensors(data: bytes, rng: random.Random) -> bytes:
    """Another header, or other values."""
    (size,) = struct.unpack("<Q", data[:8])
    header, values = json.loads(data[8 : 8 + size]), bytearray(data[8 + size :])
    if rng.random() < 0.3:
        for _ in range(rng.choice((1, 100))):
            at = rng.randrange(len(values) // 4) * 4
            values[at : at + 4] = struct.pack("<f", rng.choice(FLOATS))
    else:
        header = change(header, rng)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(values)


def change_msgpack(data: bytes, rng: random.Random) -> bytes:
    return srsly.msgpack_dumps(change(srsly.msgpack_loads(data), rng))


def change_docbin(data: bytes, rng: random.Random) -> bytes:
    return zlib.compress(change_msgpack(zlib.decompress(data), rng))


def change_hdf5(data: bytes, rng: random.Random) -> bytes:
    """Datasets of other shapes, types and values, and links."""
    import h5py

    buffer = io.BytesIO(data)
    with h5py.File(buffer, "r+") as file:
        names: list[str] = []
        file.visititems(lambda name, item: names.append(name) if hasattr(item, "shape") else None)
        name = rng.choice(names)
        array = file[name][()]
        match rng.randrange(8):
            case 0:
                del file[name]
            case 1:
                del file[name]
                file.create_dataset(name, (2**20,) * array.ndim, "f4", chunks=True)
            case 2:
                del file[name]
                file[name] = array.astype(rng.choice(("i4", "f8", "f2", "S3", ">f4")))
            case 3:
                del file[name]
                file[name] = h5py.ExternalLink(OUTSIDE, "/x")
            case 4:
                del file[name]
                file[name] = h5py.SoftLink("/" + rng.choice(names))
            case 5:
                file[f"{name}_more"] = array
            case 6:
                del file[name]
                file[name] = array.reshape(-1)[: rng.randrange(array.size + 1)]
            case _:
                array.reshape(-1)[rng.randrange(array.size)] = rng.choice(FLOATS)
                file[name][...] = array
    return buffer.getvalue()


def change_zip(data: bytes, rng: random.Random) -> bytes:
    """Another member, or the same under another name."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        chosen = rng.choice(old.namelist())
        for name in old.namelist():
            content = old.read(name)
            if name == chosen:
                name = rng.choice((name, name, name, f"../../{name}", f"{CWD}/{name}", ""))
                content = mutate_data(Path(name), content, rng)
            new.writestr(name or "x", content, rng.choice((0, 8, 12, 14)))
    return out.getvalue()


def change_config(data: bytes, rng: random.Random) -> bytes:
    """Another value of a setting; in a pipeline, of one of ours."""
    text = data.decode()
    blocks = re.split(r"\n(?=\[)", text)
    is_pipeline = "\n[components." in text
    if not is_pipeline and rng.random() < 0.3:
        return damage(data, rng)
    ours = [b for b in blocks if not is_pipeline or (b.startswith("[components.") and "elmo" in b)]
    block = rng.choice([b for b in ours if " = " in b])
    line = rng.choice([line for line in block.splitlines() if " = " in line])
    name, _, value = line.partition(" = ")
    changed = f"{name} = {json.dumps(change(json.loads(value), rng))}"
    if is_pipeline:  # spaCy's JSON library ends in a SystemError for lone surrogates
        changed = changed.replace("\\ud800", "?")
    return text.replace(block, block.replace(line, changed)).encode()


KINDS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    ".json": change_json,
    ".jsonl": change_jsonl,
    ".cfg": change_config,
    ".safetensors": change_safetensors,
    ".hdf5": change_hdf5,
    ".zip": change_zip,
    ".spacy": change_docbin,
    "model": change_msgpack,
}
PACKERS: dict[str, Any] = {".gz": gzip, ".xz": lzma}
with suppress(ImportError):
    from backports import zstd

    PACKERS[".zst"] = zstd


def mutate_data(path: Path, data: bytes, rng: random.Random) -> bytes:
    """The content of a file with faults; the file's name tells its format."""
    packer = PACKERS.get(path.suffix)
    if packer is not None and rng.random() < 0.6:
        return packer.compress(mutate_data(path.with_suffix(""), packer.decompress(data), rng))
    kind = KINDS.get(path.suffix, KINDS.get(path.name))
    if kind is not None and (kind is change_config or rng.random() < 0.7):
        try:
            return kind(data, rng)
        except Exception:  # not every change can be written down
            pass
    return damage(data, rng)
