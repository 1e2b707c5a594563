"""The picture of the house is that of the code."""

from __future__ import annotations

from make_house import EVERYWHERE, PICTURE, arrows, layers, picture


def test_the_picture_is_that_of_the_code():
    assert PICTURE.read_text(encoding="utf-8") == picture(), "run python tests/docs/make_house.py"


def test_arrows_go_downwards_only():
    depth = {room: number for number, layer in enumerate(layers()) for room in layer}
    assert all(depth[a] < depth[b] for a, b in arrows())
    assert depth.keys() >= EVERYWHERE
