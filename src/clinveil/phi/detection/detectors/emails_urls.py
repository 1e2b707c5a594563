"""E-mail, web and IP addresses (including internal domains such as .local and .corp), user names
and home
directories.
"""

from __future__ import annotations

import re

from clinveil.lexicons import is_word
from clinveil.phi.detection.detector import BEGIN, CODE_BEGIN, Rule, RuleDetector, before
from clinveil.phi.detection.note import NoteView
from clinveil.phi.matching.matcher import FAR, Anchor

_HOST = r"[\w-]+(?:\.[\w-]+)*"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_ENDING = (
    r"(?:(?:com|org|net|edu|gov|mil|io|biz|info|local|corp|lan|internal)"
    r"|(?:co|nhs|ac|org|gov)\.uk)(?![a-z\d])"
)
_PATH = r"/[^\s<>\"')\]]*[^\s<>\"')\].,;:!?]"
_AT = r"(?:\s+at\s+|\s*[(\[]\s?at\s?[)\]]\s*)"
_DOT = r"(?:\s+dot\s+|\s*[(\[]\s?dot\s?[)\]]\s*)"
_MAILERS = r"(?:gmail|yahoo|hotmail|outlook|aol|icloud|comcast|protonmail|verizon|msn|live|me)"


def _an_address(match: re.Match[str], note: NoteView) -> bool:
    """Return whether four numbers are an IP address and not a section: one has two digits, or `IP`
    is near.
    """
    if re.search(
        r"\b(?:version|build|release|firmware|software|section|v)\.?\s*$", before(match, note, 16)
    ):
        return False
    return bool(re.search(r"\d\d", match["phi"])) or "ip" in before(match, note, 12)


def _handle(match: re.Match[str], note: NoteView) -> bool:
    """Reject `@home`: a word after the sign."""
    return not is_word(match["phi"][1:].lower())


def _groups(match: re.Match[str], note: NoteView) -> bool:
    """Return whether groups of hexadecimal digits are an address and not a time with seconds."""
    return match["phi"].count(":") >= 5 or "::" in match["phi"]


RULES = (
    Rule.any_case(
        "EMAIL",
        rf"(?P<phi>[\w.+'%-]*[\w+%-]\s?@(?:(?<!\s@){_HOST}|\s?[\w-]+(?:\.[\w-]+)+))",
        "Write to {mary.o-brien_72@hosp.org} or {jsmith@stmarys.local}.",
        score=0.99,
        anchor=Anchor(signs="@", within=FAR, first=r"[\w%'+.-]"),
    ),
    Rule.any_case(
        "EMAIL",
        rf"{CODE_BEGIN}(?P<phi>[\w.+-]+(?:{_DOT}[\w+-]+){{0,3}}{_AT}[\w-]+"
        rf"(?:{_DOT}[\w-]{{2,12}}){{1,3}})",
        "It is {rsmith at gmail dot com}, or {r dot smith at hosp dot org}.",
        anchor=Anchor("*dot*", within=FAR, first=r"[\w+.-]", after="[^A-Za-z]"),
    ),
    Rule.any_case(
        "EMAIL",
        r"\b(?P<phi>[\w.+-]+\s*[(\[]\s?at\s?[)\]]\s*[\w-]+(?:\.[\w-]+)+)\b",
        "It is {rsmith (at) hosp.org}.",
        anchor=Anchor(signs="([", within=FAR, first=r"[\w+.-]"),
    ),
    Rule.any_case(
        "EMAIL",
        rf"{CODE_BEGIN}(?P<phi>[\w.+-]+\sat\s{_MAILERS}\.(?:com|net))(?![a-z\d])",
        "It is {rsmith at gmail.com}.",
        anchor=Anchor("com net", within=FAR, first=r"[\w+.-]", after="[^A-Za-z]"),
    ),
    Rule.any_case(
        "URL",
        r"(?P<phi>(?:https?|ftp|sftp|file)://[^\s<>\"')\]]*[^\s<>\"')\].,;:!?]"
        r"|(?<![a-z])www\.[^\s<>\"')\]]*[^\s<>\"')\].,;:!?])",
        "See {https://portal.example.org/u/42?x=1}, or {www.example.com}.",
        score=0.99,
        anchor=Anchor("*file *ftp *https *http www", within=1),
    ),
    Rule.any_case(
        "URL",
        rf"{CODE_BEGIN}(?<!@)(?P<phi>(?:[a-z0-9-]+\.)*[a-z0-9-]+\.{_ENDING}(?:{_PATH})?)(?!@)",
        "See {portal.example.org/u/42}, or {example.co.uk}.",
        anchor=Anchor(
            "biz* com* corp* edu* gov* info* internal* io* lan* local* mil* net* org* uk*",
            within=FAR,
            first=r"[\w-]",
            after="[^A-Za-z]",
        ),
    ),
    Rule.any_case(
        "IP",
        rf"{BEGIN}(?<!\d\.)(?P<phi>{_OCTET}(?:\.{_OCTET}){{3}})(?!\d|\.\d)",
        "Host {192.168.10.4} logged in.",
        check=_an_address,
        anchor=Anchor(digits=1, after=r"\D"),
    ),
    Rule.any_case(
        "IP",
        rf"{CODE_BEGIN}(?<![\da-f]:)(?P<phi>[0-9a-f]{{1,4}}:"
        rf"(?:[0-9a-f]{{0,4}}:){{1,6}}[0-9a-f]{{1,4}})(?![\da-f]|:[\da-f])",
        "Host {2001:db8:0:0:1:2:3:4} logged in, {fe80::1} did not.",
        check=_groups,
        anchor=Anchor(signs=":", within=4, first=r"[A-Z\dabcdef]", after="[^A-Za-z]"),
    ),
    Rule.any_case(
        "ID",
        r"(?<![a-z])(?:user\s?names?|user\s?id|userid|user|login|log-in|screen\s?name|(?:twitter"
        r"|instagram|facebook|tiktok"
        r"|snapchat|skype|venmo|x)\s(?:handle|name|account)|handle)(?![a-z])(?:\s(?:is|was|of|for"
        r"|name))?(?:[\W_]{0,6}(?=@?(?=[\w.-]*[a-z])(?=[\w.-]*[\d_]|[\w-]+\.\w)[\w.-]{3,}\w"
        r"|@\w{3,})"
        r"|\s?[:=\"'][\W_]{0,5}(?=[a-z@]))(?P<phi>@?[\w.-]{3,}\w)",
        "MyChart user name {maryo_72}; login: {jsmith}; user of drugs.",
        score=0.8,
        anchor=Anchor(
            "account* handle* login* log name* screen* user*",
            within=10,
            first="[A-Za-z]",
            after="[^A-Za-z]",
        ),
    ),
    Rule.any_case(
        "ID",
        r"(?<![\w@+])(?P<phi>@[a-z][\w.]{3,30}[a-z\d])(?![a-z\d@])",
        "By {@janeqpublic}, @home.",
        score=0.7,
        check=_handle,
        anchor=Anchor(signs="@"),
    ),
    Rule.any_case(
        "ID",
        r"(?<![a-z\\])(?P<phi>(?:[a-z]:|\\)\\(?:[\w.$ -]+\\)*[\w.$-]*\w)",
        r"Saved as {C:\Users\jsmith\scan.pdf}, on {\\srv\jsmith}.",
        score=0.8,
        anchor=Anchor(signs="\\", within=2, first=r"[A-Za-z\\]", after=r"[^A-Za-z\\]"),
    ),
    Rule.any_case(
        "ID",
        r"(?P<phi>/(?:home|users)/[\w./-]*\w)",
        "Found in {/home/jsmith/a}.",
        score=0.8,
        anchor=Anchor("home users", within=1, first="[/]"),
    ),
)

EMAILS_URLS = RuleDetector("emails_urls", RULES)
