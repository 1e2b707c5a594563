"""`docs/packages.svg` and `docs/packages.md` agree with the code."""

from __future__ import annotations

from make_package_pages import PAGE, page
from make_packages import EVERYWHERE, PICTURE, arrows, layers, picture


def test_the_picture_agrees_with_the_code():
    assert PICTURE.read_text(encoding="utf-8") == picture(), (
        "run python tests/docs/make_packages.py"
    )


def test_arrows_point_downwards_only():
    depth = {package: number for number, layer in enumerate(layers()) for package in layer}
    assert all(depth[a] < depth[b] for a, b in arrows())
    assert depth.keys() >= EVERYWHERE


def test_the_page_agrees_with_the_facades():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python tests/docs/make_package_pages.py"
