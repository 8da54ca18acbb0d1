"""What a caller gave, looked at before anything is sent. Each error names the argument."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any, Dict, List, Tuple, Type, Union


def wrong_type(name: str, wanted: str, value: Any) -> TypeError:
    return TypeError(f"{name} must be {wanted}, not {type(value).__name__}")


def instance(name: str, value: Any, kind: Type[Any]) -> Any:
    """The value, when it is a `kind`."""
    if not isinstance(value, kind):
        raise wrong_type(name, kind.__name__, value)
    return value


def text(name: str, value: Any) -> str:
    """Text that JSON can carry. Raises ValueError for half of a surrogate pair."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"{name} must be str, not {type(value).__name__}: decode it")
    if not isinstance(value, str):
        raise wrong_type(name, "str", value)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} has no UTF-8 form: {error.reason} at {error.start}") from error
    return value


def texts(name: str, value: Any) -> List[str]:
    """Texts in their order; a str alone is a sequence of them only by mistake."""
    if isinstance(value, (str, bytes, bytearray, Mapping)) or not isinstance(value, Iterable):
        raise wrong_type(name, "a sequence of str", value)
    return [text(f"{name}[{place}]", each) for place, each in enumerate(value)]


def named_texts(name: str, value: Any) -> Dict[str, str]:
    """A mapping from texts to texts."""
    return {text(f"a name in {name}", key): text(f"{name}[{key!r}]", each)
            for key, each in items(name, value)}


def items(name: str, value: Any) -> List[Tuple[Any, Any]]:
    if not isinstance(value, Mapping):
        raise wrong_type(name, "a mapping", value)
    return list(value.items())


def flag(name: str, value: Any) -> bool:
    return bool(instance(name, value, bool))


def number(name: str, value: Any) -> float:
    """A number that is not negative, as it was given. Raises ValueError for others, NaN too."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong_type(name, "a number", value)
    try:
        finite = math.isfinite(value)
    except OverflowError as error:  # an int beyond what a float holds; its digits may be endless
        raise ValueError(f"{name} is too large a number") from error
    if not finite or value < 0:
        raise ValueError(f"{name} is {value}: give a finite number that is not negative")
    return value


def seconds(name: str, value: Any) -> float:
    """A time of more than nothing."""
    if number(name, value) == 0:
        raise ValueError(f"{name} is {value}: give more than 0")
    return float(value) if not isinstance(value, int) else value


def whole(name: str, value: Any) -> int:
    """A whole number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type(name, "int", value)
    return int(number(name, value))


def size(name: str, value: Any) -> Union[int, str]:
    """Bytes, or a text such as "64M", which the daemon reads."""
    if isinstance(value, str):
        return text(name, value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type(name, 'an int or a str like "64M"', value)
    return whole(name, value)


def path(name: str, value: Any) -> str:
    """A path of a workspace, whose bytes that are no UTF-8 are surrogates (PEP 383)."""
    if not isinstance(value, str):
        raise wrong_type(name, "str", value)
    if not value or "\0" in value:
        raise ValueError(f"{name} is {value!r}: give a path")
    try:
        value.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} is no file's: {error.reason} at {error.start}") from error
    return value


def identifier(name: str, value: Any) -> str:
    if not text(name, value):
        raise ValueError(f"{name} is empty")
    return str(value)


def socket_path(name: str, value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise wrong_type(name, "str", value)
    return os.fspath(value)


def writable(name: str, value: Any) -> Any:
    """A path, or a binary file that is open for writing."""
    if isinstance(value, os.PathLike):
        return value
    if isinstance(value, io.TextIOBase) or not hasattr(value, "write"):
        raise wrong_type(name, "a pathlib.Path or a binary file", value)
    return value
