"""Stored text as it may be shown: what no eye sees, or what turns the order of reading, becomes visible."""

from __future__ import annotations

CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
# These break lines or turn the text around them: a stored text could pass for another one.
CONTROL |= {code: f"\\u{code:04x}" for code in (0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def visible(text: object) -> str:
    """Control characters are shown, never obeyed. Lines and tabs stay."""
    return str(text).translate(CONTROL)
