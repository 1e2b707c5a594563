"""Postal codes and telephone numbers that can exist, in the state of the original.

The state of an address may stay (45 CFR 164.514(b)(2)(i)(B)), so a code of another state would
contradict it.
Area codes: North American Numbering Plan. Prefixes of postal codes: United States Postal Service,
Publication 65.
"""

from __future__ import annotations

import re
from functools import cache

from clinveil.core import Key, Stream
from clinveil.phi.detection.detector import words
from clinveil.phi.treatment.surrogates.numbers_and_places import other_number

_AREA_CODES = """
AL 205 251 256 334 938|AK 907|AZ 480 520 602 623 928|AR 479 501 870|CA 209 213 310 323 408 415
510 530 559 562 619 626 650 657 661 707 714 747 760 805 818 831 858 909 916 925 949 951|CO 303
719 720 970|CT 203 475 860|DE 302|DC 202|FL 239 305 321 352 386 407 561 727 754 772 786 813 850
863 904 941 954|GA 229 404 470 478 678 706 762 770 912|HI 808|ID 208 |IL 217 224 309 312 331 618
630 708 773 779 815 847 872|IN 219 260 317 463 574 765 812 930|IA 319 515 563 641 712|KS 316 620
785 913|KY 270 502 606 859|LA 225 318 337 504 985|ME 207|MD 240 301 410 443 667|MA 339 351 413
508 617 774 781 857 978|MI 231 248 269 313 517 586 616 734 810 906 947 989|MN 218 320 507 612
651 763 952|MS 228 601 662 769|MO 314 417 573 636 660 816|MT 406|NE 308 402 531|NV 702 725
775|NH 603|NJ 201 551 609 732 848 856 862 908 973|NM 505 575|NY 212 315 347 516 518 585 607 631
646 716 718 845 914 917 929|NC 252 336 704 828 910 919 980|ND 701|OH 216 234 330 419 440 513 567
614 740 937|OK 405 539 580 918|OR 458 503 541 971|PA 215 267 272 412 484 570 610 717 724 814
878|RI 401|SC 803 843 854 864 |SD 605|TN 423 615 629 731 865 901 931|TX 210 214 254 281 325 346
361 409 430 432 469 512 682 713 737 806 817 830 832 903 915 936 940 956 972 979|UT 385 435
801|VT 802|VA 276 434 540 571 703 757 804|WA 206 253 360 425 509|WV 304 681|WI 262 414 534 608
715 920|WY 307|PR 787 939|ON 226 249 289 343 365 416 437 519 613 647 705 807 905|QC 418 438 450
514 579 581 819 873|BC 236 250 604 778|AB 403 587 780 825|MB 204 431|SK 306 639|NS 782 902|NB
506|NL 709
"""
_ZIPS = """
AL 350-369|AK 995-999|AZ 850-865|AR 716-729|CA 900-961|CO 800-816|CT 060-069|DE 197-199|DC
200-200|FL 320-349|GA 300-319 |HI 967-968|ID 832-838|IL 600-629|IN 460-479|IA 500-528|KS
660-679|KY 400-427|LA 700-714|ME 039-049|MD 206-219|MA 010-027 |MI 480-499|MN 550-567|MS
386-397|MO 630-658|MT 590-599|NE 680-693|NV 889-898|NH 030-038|NJ 070-089|NM 870-884|NY 100-149
|NC 270-289|ND 580-588|OH 430-458|OK 730-749|OR 970-979|PA 150-196|RI 028-029|SC 290-299|SD
570-577|TN 370-385|TX 750-799 |UT 840-847|VT 050-059|VA 220-246|WA 980-994|WV 247-268|WI
530-549|WY 820-831|PR 006-009
"""
_UNUSED = words(
    "343 345 348 353 371 419 429 517 518 519 529 533 536 552 568 569 578 579 589 621 632 642 "
    "643 659 663 682 694 695 696 697 698 699 702 709 715 732 742 771 817 818 819 839 842 848 "
    "849 854 858 861 862 866 867 868 869 872 876 886 887 888 892 896 899 909 929 987"
)
_ZIP = re.compile(r"(\d{3})(\d{2})(-?\d{4})?")
_PHONE = re.compile(r"(?P<lead>1?)(?P<area>\d{3})?(?P<exchange>\d{3})(?P<line>\d{4})")
_EXTENSION = re.compile(r"(?<=\d)[\s,]*(?:x|ext\.?|extension)\s*\d{1,6}$", re.IGNORECASE)


@cache
def area_codes() -> dict[str, tuple[str, ...]]:
    """Return area code -> the area codes of its state."""
    states = [line.split() for line in " ".join(_AREA_CODES.split()).split("|")]
    return {code: tuple(codes) for _, *codes in states for code in codes}


@cache
def zip_prefixes() -> dict[str, tuple[str, ...]]:
    """Return the first three digits of a postal code -> those of its state."""
    prefixes = dict[str, tuple[str, ...]]()
    for line in " ".join(_ZIPS.split()).split("|"):
        first, _, last = line.split()[1].partition("-")
        numbers = (f"{number:03d}" for number in range(int(first), int(last) + 1))
        state = tuple(number for number in numbers if number not in _UNUSED)
        prefixes.update(dict.fromkeys(state, state))
    return prefixes


def postal_code(key: Key, patient_id: str, original: str) -> str | None:
    """Return another postal code of the same state; of the same format for one of another
    country.
    """
    match = _ZIP.fullmatch(original.strip())
    prefixes = zip_prefixes().get(match[1]) if match else None
    if match is None or prefixes is None:
        return other_number(key, patient_id, original)
    stream = key.stream("surrogate-zip", patient_id, match[1] + match[2])
    prefix = stream.choice(prefixes)
    count = 99 - (prefix == match[1])  # 01 to 99, without those of the original
    end = 1 + stream.below(count)
    end += prefix == match[1] and end >= int(match[2]) > 0
    rest = match[3] and other_number(key, patient_id, match[3])
    return f"{prefix}{end:02d}{rest or ''}"


def telephone(key: Key, patient_id: str, original: str) -> str | None:
    """Return another telephone number: with an area code of the same state, and an exchange that
    can exist.

    The last seven digits do not depend on the area code, so that a number with and without it
    agree.
    """
    extension = _EXTENSION.search(original)
    body = original[: extension.start()] if extension else original
    digits = "".join(character for character in body if character.isdigit())
    match = _PHONE.fullmatch(digits)
    if match is None or (
        match["area"] and match["area"] not in area_codes() and match["area"][0] in "01"
    ):
        return other_number(key, patient_id, original)
    if match["lead"] and not match["area"]:
        return other_number(key, patient_id, original)
    local = _local(key.stream("surrogate-phone", patient_id, match["exchange"] + match["line"]))
    if local == match["exchange"] + match["line"]:
        local = local[:-1] + str((int(local[-1]) + 1) % 10)
    area = (
        _area(key.stream("surrogate-area", patient_id, match["area"]), match["area"])
        if match["area"]
        else ""
    )
    new = iter(match["lead"] + area + local)
    written = "".join(next(new) if character.isdigit() else character for character in body)
    if extension is None:
        return written
    digits = "".join(character for character in extension[0] if character.isdigit())
    return written + extension[0].replace(digits, other_number(key, patient_id, digits) or "")


def _local(stream: Stream) -> str:
    """Return an exchange (2 to 9 first, not N11) and a line number."""
    exchange = 200 + stream.below(800)
    exchange += exchange % 100 == 11
    return f"{exchange:03d}{stream.below(10_000):04d}"


def _area(stream: Stream, original: str) -> str:
    codes = area_codes().get(original)
    return stream.choice(codes if codes else tuple(area_codes()))
