"""Where an identifier may begin and end: the only definition, used by the patterns of all
detectors.

White space, any punctuation, a list dash, a label (`Tel.`, `Phone-`) and a change between letters
and digits are borders. What is not a border is the inside of the same number or word. An identifier
with a shape of its own (a full date, a phone number, an SSN) needs no more. A plainer number may
also be part of a longer one that is not an identifier: the fraction of a decimal, a ratio, a
version, a range of values, a time of day. Such numbers are excluded by what they are, never by a
character.
"""

from __future__ import annotations

# Of an identifier that begins or ends with a digit.
BEGIN = r"(?<!\d)"
END = r"(?!\d)"
# The same, and not the fraction or the whole part of a decimal.
WHOLE_BEGIN = rf"{BEGIN}(?<!\d[.,])"
WHOLE_END = r"(?!\d|[.,]\d)"
# The same, and not one side of a ratio, a range, a version or a time.
ALONE_BEGIN = rf"{BEGIN}(?<!\d[.,/:-])"
ALONE_END = r"(?!\d|[.,/:-]\d|\s?%)"
# Of an identifier that begins or ends with a letter: not inside a word. Digits and underscores are
# borders.
WORD_BEGIN = r"(?<![A-Za-z])"
WORD_END = r"(?![A-Za-z])"
# Of a code of letters and digits: not inside another code.
CODE_BEGIN = r"(?<![A-Za-z\d])"
CODE_END = r"(?![A-Za-z\d])"
# Of text that ends with a letter or a digit.
ANY_END = rf"(?:(?<=\d){END}|(?<!\d){WORD_END})"
# Between a label and its value, or around the dash of a range.
GAP = r"[^\w\n]{0,6}"
