"""The contrast of the page's colours."""

import re

import pytest

from reservoir_cli.server.web.handlers import _STATIC

#: The contrast that WCAG 2 requires of text.
LEAST = 4.5
TEXTS = ("ink", "dim", "accent", "warm", "warn", "user", "assistant", "tool", "system")
GROUNDS = ("paper", "sheet", "soft")


def luminance(colour: str) -> float:
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        share / 12.92 if share <= 0.03928 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_can_be_read_on_every_ground(scheme):
    style = (_STATIC / "page.css").read_text(encoding="utf-8")
    colours = dict(re.findall(r"--(\w+): (#\w{6})", style.split(":root")[1 + scheme]))
    for text in TEXTS:
        for ground in GROUNDS:
            dark, light = sorted(luminance(colours[name]) for name in (text, ground))
            assert (light + 0.05) / (dark + 0.05) >= LEAST, (text, ground)
