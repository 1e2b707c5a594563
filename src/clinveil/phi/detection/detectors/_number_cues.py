"""Words before record numbers, by label."""

from __future__ import annotations

_NO = r"(?:numbers?|no\.?|num\.?|nbr\.?|#|id|code|nr\.?)"

CUES = {
    "MRN": (
        rf"(?:mrn|m\.r\.n\.?|mr\s?{_NO}|mr#|medical\s+record(?:s)?(?:\s+{_NO})?"
        rf"|med(?:ical)?\.?\s+rec(?:ord)?\.?"
        rf"(?:\s+{_NO})?|record\s+{_NO}|unit\s+{_NO}|hosp(?:ital)?\.?\s+{_NO}|(?:patient"
        rf"|pt)\.?\s*{_NO}|chart\s+{_NO}"
        rf"|health\s+record\s+{_NO}|emr\s*{_NO}|ehr\s*{_NO}|empi|mpi\s*{_NO}|pid\s*{_NO}?"
        rf"|patient_?id|history\s+{_NO}"
        rf"|urn\s*{_NO}?|(?-i:UR)\s*{_NO}?|umrn|ipp|film\s+{_NO}|x-?ray\s+{_NO})"
    ),
    "SSN": (
        rf"(?:ssn|s\.s\.n\.?|ss\s?#|ss\s(?:no\.?|number)"
        rf"|soc(?:ial)?\.?\s+sec(?:urity)?\.?(?:\s+{_NO})?"
        rf"|social\s*[:#]"
        rf"|ni\s+{_NO}|nino|national\s+insurance(?:\s+{_NO})?|pps\s*{_NO}|ppsn|nric|cpf|bsn|tfn"
        rf"|nir|aadhaar(?:\s+{_NO})?"
        rf"|personnummer|codice\sfiscale|fiscal\scode|tax\sfile\s{_NO}"
        rf"|last\s(?:four|4)(?:\s(?:digits\s)?(?:of\s)?(?:the\s|her\s|his\s)?(?:ssn|social))?"
        rf"|sin\s*[:#]|itin)"
    ),
    "ACCOUNT": (
        rf"(?:(?:account|acct\.?|billing|invoice|bank|credit\s+card|debit\s+card|card|har|guarantor"
        rf"|routing|check)\s*{_NO}"
        rf"|acct\.?:|account:|iban|receipt\s+{_NO})"
    ),
    "HEALTH_PLAN": (
        rf"(?:(?:insurance|policy|member(?:ship)?|subscriber|beneficiary|group"
        rf"|medicaid|medicare|insurance\s+plan|health\s+plan|plan\s+beneficiary"
        rf"|medicare\s+beneficiary|payer|hicn?|mbi|hpbn"
        rf"|hbn|coverage|insured|authori[sz]ation|auth|prior\s+auth(?:orization)?|rx\s?(?:bin|grp"
        rf"|pcn)|rxbin|rxgrp"
        rf"|health\s+card|ohip|ahcip|msp|personal\s+health)\s*(?:beneficiary\s*)?(?:{_NO}\s*)+"
        rf"|hicn|mbi|hpbn|hbn|ohip|phn"
        rf"|rxbin|rxgrp|nhi\s*{_NO}?|nhs\s*(?:{_NO})?(?=[\W_]{{0,6}}\d)|chi\s+{_NO}|medicare\s*#)"
    ),
    "LICENSE": (
        rf"(?:licen[sc]e\s*(?:plate\s*)?{_NO}?|lic\.?\s*{_NO}|dea\s*{_NO}?|npi\s*{_NO}?"
        rf"|certificat(?:e"
        rf"|ion)\s+{_NO}|passport\s*{_NO}?|registration\s+{_NO}|dl\s?{_NO}|upin\s*{_NO}?"
        rf"|gmc\s*{_NO}?|nmc\s*{_NO}?"
        rf"|board\s+cert\s*{_NO})"
    ),
    "VEHICLE": (
        rf"(?:vin\s*{_NO}?|vehicle\s+(?:identification\s+)?{_NO}|licen[sc]e\s+plate\s*{_NO}?"
        rf"|plate\s*{_NO}"
        rf"|tag\s+{_NO})"
    ),
    "DEVICE": (
        rf"(?:serial\s*(?:{_NO}|:)|serial\s(?=[A-Z]*\d{{4}})|s/n|sn:"
        rf"|sn\s(?=[A-Z]*\d{{5}})|ser\.?\s+{_NO}|device\s+{_NO}|implant\s+{_NO}|lot\s*(?:{_NO}|:)"
        rf"|udi"
        rf"|imei"
        rf"|(?:model|catalog|ref|part|batch)/?\s?(?:lot|serial|sn)\s*{_NO}?|mac(?:\saddress)?\s?:"
        rf"|pump\s+{_NO}"
        rf"|generator\s+{_NO}"
        rf"|batch\s+{_NO})"
    ),
    "ID": (
        rf"(?:accession\s*{_NO}?|specimen\s+{_NO}|case\s+(?:no\.?|number|#|id)|order\s+{_NO}"
        rf"|visit\s*{_NO}"
        rf"|enc(?:ounter)?\.?\s*{_NO}?|csn|fin|visitid|visit_id|encid|enc_id|requisition\s*{_NO}?"
        rf"|(?:study|job|document|dictation|transcription|confirmation|claims?|application"
        rf"|petition|complaint|referral|reference|ref\.?|site|sample"
        rf"|employee|badge|staff|student|user|trial|subject|participant|rx|prescription|incident"
        rf"|booking|docket|provider"
        rf"|tracking|donor|barcode)\s+{_NO}|\bid(?:\s+(?:no\.?|number|#))?\s*[:#]"
        rf"|id\s+(?:is\s+)?(?=\d)|docket\s?[#:]|docket\s(?=[A-Z]*-?\d))"
    ),
}
