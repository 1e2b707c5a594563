"""`docs/api.md` agrees with the docstrings, and their examples run."""

from __future__ import annotations

import doctest
import importlib
import inspect

import pytest
from make_api import PAGE, page

import clinveil


def test_the_page_agrees_with_the_code():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python tests/docs/make_api.py"


@pytest.mark.parametrize("name", clinveil.__all__)
def test_examples_of_docstrings_run(name):
    thing = getattr(clinveil, name)
    modules = [thing] if inspect.ismodule(thing) else [importlib.import_module(thing.__module__)]
    for module in modules:
        failed, _ = doctest.testmod(
            module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        )
        assert failed == 0
