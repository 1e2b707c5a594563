"""Messages of errors in Python: arguments and settings instead of flags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from clinveil.core import ClinveilError

_SETTING = re.compile(r"--set ([a-z][\w.]*)=([^\s,;)]+)")
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")
_NAMES = {"as": "kind", "set": "settings"}
"""Flag -> argument, where it is not the same word."""


def in_words_of_python(text: str) -> str:
    """Return a message with `settings={"vectors.dim": 50}` for `--set vectors.dim=50`, and with the
    name of the argument for any other flag.
    """
    return _FLAG.sub(_argument, _SETTING.sub(_setting, text))


def _setting(found: re.Match[str]) -> str:
    name, value = found.groups()
    constants = {"true": "True", "false": "False"}
    is_number = re.fullmatch(r"-?\d*\.?\d+", value) is not None
    written = constants.get(value, value if is_number else f'"{value}"')
    return f'settings={{"{name}": {written}}}'


def _argument(found: re.Match[str]) -> str:
    return _NAMES.get(found[1], found[1].replace("-", "_"))


@contextmanager
def python_messages() -> Iterator[None]:
    """Raise the errors of a block with messages for Python."""
    try:
        yield
    except ClinveilError as error:
        error.problem = in_words_of_python(error.problem)
        error.hint = in_words_of_python(error.hint)
        error.where = in_words_of_python(error.where)
        error.args = (in_words_of_python(str(error)),)
        raise
