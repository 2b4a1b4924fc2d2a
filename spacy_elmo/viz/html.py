"""HTML that refers to nothing outside itself."""

from __future__ import annotations

import re
from html import escape

FONT = "DejaVu Sans, Verdana, Arial, sans-serif"
INK, FAINT, PAPER = "#1a1a1a", "#767676", "#ffffff"
STYLE = f"""
body {{ font-family: {FONT}; color: {INK}; background: {PAPER}; color-scheme: light;
  max-width: 60rem; margin: 0 auto; padding: 1rem; line-height: 1.5; overflow-wrap: anywhere; }}
li:target {{ background: #fff3c4; }}
"""
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(text: str) -> str:
    """Text for HTML and SVG: special characters escaped, those that XML cannot have replaced."""
    return escape(replace_controls(text))


def replace_controls(text: str) -> str:
    """Text with U+FFFD for the characters that XML cannot have."""
    return NOT_XML.sub("\ufffd", text)


def html_page(title: str, *elements: str) -> str:
    """A page of several elements."""
    return (
        '<!DOCTYPE html>\n<html>\n<head>\n<meta charset="utf-8"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        f"<title>{clean(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(elements)
        + "\n</body>\n</html>\n"
    )
