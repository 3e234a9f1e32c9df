"""Estimates by characters, the rule that other tools go by."""

_FENCES = ("```", "~~~")
_INDENTS = ("    ", "\t")
_CODE_ENDINGS = (";", "{", "}", "};", "})", "});", "],", "},", "):", "->", "=>", "\\")
# Few, and none that prose begins a line with ("let me know", "class sizes").
_CODE_BEGINNINGS = ("#include ", "const ", "def ", "fn ", "func ", "function ", "</", "//", "/*")


class RatioCounter:
    """Estimates tokens from characters: 4 a token in lines of prose, 3 in lines of code.

    Known from other tools and easy to check by hand; far off outside the Latin script.
    Pure prose is ``max(1, len // 4)``, pure code ``max(1, len // 3)``.
    """

    name = "ratio"
    version = "1"
    exact = False

    def count(self, text: str) -> int:
        """Estimate the tokens of a text from the lengths of its lines, line ends included."""
        if not text:
            return 0
        code = sum(_code_lengths(text))
        return max(1, (3 * (len(text) - code) + 4 * code) // 12)


def _code_lengths(text: str) -> list[int]:
    """List the lengths of the lines that are code.

    An empty line is what the line before it is. A fence that is never closed holds to the end,
    as in a reply that was cut off.
    """
    lengths = []
    fence = ""
    code = False
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if fence:
            code = True
            if bare.startswith(fence):
                fence = ""
        elif bare.startswith(_FENCES):
            code = True
            fence = bare[:3]
        elif bare:
            code = _is_code(line.rstrip(), bare)
        if code:
            lengths.append(len(line))
    return lengths


def _is_code(line: str, bare: str) -> bool:
    """Tell a line of code from one of prose by how it begins and ends."""
    return (
        line.startswith(_INDENTS)
        or bare.endswith(_CODE_ENDINGS)
        or (bare.startswith(_CODE_BEGINNINGS) and not bare.endswith((".", "!", "?")))
    )
