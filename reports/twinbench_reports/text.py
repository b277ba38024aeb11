"""Text from outside, made harmless: one line, nothing that a terminal obeys, nothing that a CI service takes as a
command."""

from __future__ import annotations

import unicodedata

# Where some program breaks a line. Other characters that are not printable (str.isprintable: control characters,
# bidirectional overrides, lone surrogates) are shown as unknown ones.
_BLANKS = "\t\n\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029"
_SUBSTITUTE = "\ufffd"


def plain(text: str) -> str:
    """The same in one line without control characters, and without what a GitHub log would obey: "::error::" at the
    beginning of a line, "##[error]" anywhere in it."""
    if not text.isprintable():
        text = "".join(map(_harmless, text))
    text = text.replace("##[", "# #[")
    return text if not text.lstrip().startswith("::") else text.replace("::", ": :", 1)


def _harmless(char: str) -> str:
    if char.isprintable():
        return char
    return " " if char in _BLANKS or unicodedata.category(char) == "Zs" else _SUBSTITUTE
