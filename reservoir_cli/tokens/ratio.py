"""Estimate tokens from the number of characters, by a common rule of thumb."""

_FENCES = ("```", "~~~")
_INDENTS = ("    ", "\t")
_CODE_ENDINGS = (";", "{", "}", "};", "})", "});", "],", "},", "):", "->", "=>", "\\")
# Only beginnings that are rare in prose ("let me know" and "class sizes" are not code).
_CODE_BEGINNINGS = ("#include ", "const ", "def ", "fn ", "func ", "function ", "</", "//", "/*")


class RatioCounter:
    """A counter that assumes 4 characters per token in prose and 3 in code.

    Other tools use the same rule. It is inaccurate outside the Latin script.
    Pure prose is ``max(1, len // 4)``, pure code ``max(1, len // 3)``.
    """

    name = "ratio"
    version = "1"
    exact = False

    def count(self, text: str) -> int:
        """Estimate the tokens of a text from the lengths of its lines, including line ends."""
        if not text:
            return 0
        code = sum(_code_lengths(text))
        return max(1, (3 * (len(text) - code) + 4 * code) // 12)


def _code_lengths(text: str) -> list[int]:
    """Return the lengths of the lines that are code.

    An empty line counts like the line before it. An unclosed fence, as in a truncated reply,
    extends to the end of the text.
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
    """Return whether a line looks like code, from how it begins and ends."""
    return (
        line.startswith(_INDENTS)
        or bare.endswith(_CODE_ENDINGS)
        or (bare.startswith(_CODE_BEGINNINGS) and not bare.endswith((".", "!", "?")))
    )
