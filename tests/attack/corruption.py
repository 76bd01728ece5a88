"""Random corruptions and hostile edits of files, from a seed."""

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sunrise.files.documents import sealed, unsealed
from sunrise.store.manifest import AGENTS, FACTS, MANIFEST, STATE, Manifest, Sum

Mutation = Callable[[bytes, random.Random], bytes]


def flip(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]


def cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def block(content: bytes, rng: random.Random) -> bytes:
    at, size = rng.randrange(len(content)), rng.randint(1, 512)
    size = min(size, len(content) - at)
    filling = rng.choice((bytes(size), b"\xff" * size, rng.randbytes(size)))
    return content[:at] + filling + content[at + size :]


def insert(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.randbytes(rng.randint(1, 16)) + content[at:]


def drop(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content))
    return content[:at] + content[at + rng.randint(1, 64) :]


def digit(content: bytes, rng: random.Random) -> bytes:
    """One digit for another: what a checksum alone finds."""
    places = [i for i, byte in enumerate(content) if chr(byte) in "0123456789"]
    if not places:
        return flip(content, rng)
    at = rng.choice(places)
    return content[:at] + rng.choice(b"0123456789".replace(content[at : at + 1], b"")).to_bytes() + content[at + 1 :]


def double(content: bytes, rng: random.Random) -> bytes:
    return content + content[-rng.randint(1, len(content)) :]


MUTATIONS: tuple[Mutation, ...] = (flip, flip, flip, digit, digit, cut, block, insert, drop, double)

DEEP = "[" * 100_000
VALUES: tuple[str, ...] = (
    *("null", "true", "-1", "0", "1", "1.5", '""', '"x"', "[]", "{}", "[[]]", '{"a": null}', "1e308", "-0.0", "1e-400"),
    *("NaN", "Infinity", "-Infinity", "1e999", "9" * 30, "9" * 5000, "-" + "9" * 19, str(2**63), str(2**31)),
    *(
        DEEP,
        DEEP + "]" * 100_000,
        '{"a":' * 3000 + "1" + "}" * 3000,
        json.dumps("y" * 10**6),
        "[" + "1," * 10**5 + "1]",
    ),
    *(
        '"../../../etc/passwd"',
        '"/dev/zero"',
        '"\\ud800"',
        '"\\u0000"',
        '"a\\nb"',
        '{"a": 1, "a": 2}',
        "\"__import__('os')\"",
    ),
)
"""JSON that is of the wrong kind, too large, too deep, or no JSON."""
MARK = '"\x00mark\x00"'


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of everything in a document."""
    found = [path]
    entries = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in entries:
        found += places(value, (*path, key))
    return found


def edited(document: Any, rng: random.Random) -> str:
    """A document with one value replaced, removed, doubled or added: as text, because some are no values of Python."""
    document = json.loads(json.dumps(document))
    path = rng.choice([p for p in places(document) if p])
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    how, value = rng.choice(("replace", "replace", "replace", "remove", "add", "twice")), rng.choice(VALUES)
    if how == "remove":
        del holder[path[-1]]
        return json.dumps(document)
    if isinstance(holder, dict) and how in ("add", "twice"):
        key = path[-1] if how == "twice" else rng.choice(("tensorboard_log", "policy_kwargs", "device", "verbose", "x"))
        text = json.dumps(document)
        own = json.dumps(holder)
        return text.replace(own, own[:-1] + ("," if holder else "") + f"{json.dumps(key)}: {value}}}", 1)
    holder[path[-1]] = "\x00mark\x00"
    return json.dumps(document).replace(json.dumps("\x00mark\x00"), value, 1)


def sign(text: str) -> bytes:
    """A document with a checksum that fits, where it can be had."""
    try:
        return sealed(unsealed(json.loads(text))[0])
    except (ValueError, AttributeError, RecursionError):
        return text.encode("utf-8", "surrogatepass")


def with_header(content: bytes, change: Callable[[Any], str]) -> bytes:
    """A safetensors file with its header edited; the data stays."""
    (size,) = struct.unpack("<Q", content[:8])
    header = change(json.loads(content[8 : 8 + size])).encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(header)) + header + content[8 + size :]


def edit(path: Path, rng: random.Random, signed: bool) -> None:
    """A hostile edit of a file; `signed` with every checksum made to fit, as somebody would who means it."""
    content = path.read_bytes()
    if path.suffix == ".json" and path.name != MANIFEST:
        text = edited(json.loads(content), rng)
        path.write_bytes(sign(text) if signed and path.name != FACTS else text.encode("utf-8", "surrogatepass"))
    elif path.name == MANIFEST:
        import hashlib

        body = edited(json.loads(json.loads(content)["body"]), rng)
        digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest() if signed else "0" * 64
        path.write_text(json.dumps({"sha256": digest, "body": body}))
    elif path.suffix == ".safetensors":
        path.write_bytes(with_header(content, lambda header: edit_header(header, rng)))
    else:
        lines = content.decode().split("\n")
        at = rng.randrange(len(lines))
        lines[at] = rng.choice(VALUES) if path.suffix == ".csv" else edited({"a": 1, "timesteps": 5}, rng)
        path.write_text("\n".join(lines))
    if signed:
        sign_checkpoint(path)


def edit_header(header: Any, rng: random.Random) -> str:
    """The header of a safetensors file with something else in it, or in what the file says about itself."""
    about = header.get("__metadata__", {}).get("about")
    if about is not None and rng.random() < 0.7:
        header["__metadata__"]["about"] = edited(json.loads(about), rng)
        return json.dumps(header)
    return edited(header, rng)


def sign_checkpoint(path: Path) -> None:
    """Make the manifests fit the files of a checkpoint as they are now."""
    checkpoints = path.parent.parent
    for own in checkpoints.glob("step-*/manifest.json") if path.name != MANIFEST else ():
        try:
            manifest = Manifest.decode(own.read_bytes())
        except Exception:
            continue
        files = {name: summed(own.parent / name) for name in (AGENTS, STATE, FACTS)}
        segments = [s._replace(sum=summed(checkpoints / "replay" / s.file)) for s in manifest.segments]
        own.write_bytes(manifest._replace(files=files, segments=segments).encode())


def summed(path: Path) -> Sum:
    import hashlib

    content = path.read_bytes()
    return Sum(len(content), hashlib.sha256(content).hexdigest())
