"""Invented notes with addresses and institutions of 12 countries, «marked»; towns and street names
are real words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

ADDRESSES = {
    "UK": [
        "14 Acacia Avenue, Leeds LS6 2AB",
        "Flat 3, 27 Mill Lane, Norwich NR3 1QT",
        "The Old Rectory, Church Lane, Ludlow SY8 1EA",
        "8 Saltmarsh Close, Hull",
        "112b Gloucester Rd, Bristol BS7 8NU",
        "Rose Cottage, Back Street, Thirsk",
    ],
    "Ireland": [
        "14 Griffith Park, Drumcondra, Dublin 9",
        "3 Patrick Street, Cork T12 X8N6",
        "Knocknacarra, Co. Galway",
        "22 Castle Gardens, Swords, Co. Dublin K67 F5X2",
        "Apartment 5, The Moorings, Athlone",
        "Ballymore Eustace, Co Kildare",
    ],
    "Australia": [
        "14 Wattle Street, Footscray VIC 3011",
        "Unit 3/27 Banksia Ave, Toowoomba QLD 4350",
        "5 Kookaburra Pde, Dubbo NSW 2830",
        "PO Box 112, Katherine NT 0850",
        "88 Esplanade, Glenelg SA 5045",
        "2/14 Jacaranda Cct, Mandurah WA 6210",
    ],
    "New Zealand": [
        "14 Rimu Street, Karori, Wellington 6012",
        "2/27 Kowhai Road, Mairangi Bay, Auckland 0630",
        "5 Totara Place, Gisborne 4010",
        "RD 2, Whangarei 0172",
        "112 Papanui Road, Christchurch",
        "9 Manuka Tce, Oamaru",
    ],
    "Canada": [
        "14 Maple Crescent, Saskatoon SK S7K 1J5",
        "4500 rue Saint-Denis, Montréal QC H2J 2L3",
        "27 Bayview Ave, Barrie, Ontario L4M 3A8",
        "RR 2, Antigonish, NS B2G 2K9",
        "88 Portage Ave, Winnipeg",
        "5 chemin du Lac, Magog",
    ],
    "India": [
        "14, MG Road, Indiranagar, Bengaluru 560038",
        "Flat 302, Shanti Apartments, Kothrud, Pune - 411038",
        "27/3 Anna Nagar, Chennai 600 040",
        "H.No. 5-9-12, Banjara Hills, Hyderabad 500034",
        "B-12, Sector 62, Noida, UP 201301",
        "88 Park Street, Kolkata",
    ],
    "Singapore": [
        "Blk 112 Toa Payoh Lorong 1 #08-123, Singapore 310112",
        "14 Serangoon Gardens Way, Singapore 555945",
        "Block 27 Bedok North Avenue 3 #05-11",
        "5 Jalan Besar, Singapore",
        "88 Lorong Chuan",
        "Blk 9 Ang Mo Kio Ave 4 #02-33 S(560009)",
    ],
    "Germany": [
        "Lindenstraße 14, 50674 Köln",
        "Am Alten Markt 3, 99084 Erfurt",
        "Bahnhofstr. 27, Kassel",
        "Goetheplatz 5a, 37073 Göttingen",
        "Hauptstraße 12",
        "Unter den Eichen 88, 12205 Berlin",
    ],
    "France": [
        "14 rue des Lilas, 69003 Lyon",
        "3 bis, avenue Jean Jaurès, Toulouse",
        "27 place de la République, 35000 Rennes",
        "5 allée des Tilleuls, 67000 Strasbourg",
        "88 bd Voltaire, 75011 Paris",
        "12 impasse du Moulin",
    ],
    "Spain": [
        "Calle Mayor 14, 28013 Madrid",
        "C/ Alcalá 27, 3º B, Madrid",
        "Avda. de la Constitución, 5, 41001 Sevilla",
        "Plaza del Carmen 3, Granada",
        "Paseo de Gracia 88, 08008 Barcelona",
        "Carrer de Sants 112, Barcelona",
    ],
    "Italy": [
        "Via Garibaldi 14, 16124 Genova",
        "Piazza San Marco 3, Venezia",
        "Corso Vittorio Emanuele II 27, 10121 Torino",
        "Viale dei Tigli, 5, Bologna",
        "Vicolo Stretto 8, Siena",
        "Largo Augusto 12, 20122 Milano",
    ],
    "Brazil": [
        "Rua das Flores, 14, São Paulo - SP, 01310-100",
        "Av. Paulista, 1578, apto 27, São Paulo",
        "Travessa do Carmo 3, Salvador BA",
        "Alameda Santos 88, CEP 01418-000",
        "Praça da Sé, 5, Curitiba",
        "Rodovia BR-116, km 12, Feira de Santana",
    ],
}
INSTITUTIONS = {
    "UK": [
        "Addenbrooke's Hospital", "St Thomas'", "Royal Free", "Leeds General Infirmary",
        "Oakfield Surgery", "The Grange Medical Practice", "Frimley Health NHS Foundation Trust",
        "Bramble Lodge Care Home",
    ],
    "Ireland": [
        "Beaumont Hospital", "St Vincent's University Hospital", "Mater Misericordiae",
        "Our Lady of Lourdes, Drogheda", "Cherrymount Nursing Home", "HSE Midlands",
        "Tallaght University Hospital", "Bons Secours",
    ],
    "Australia": [
        "Royal Adelaide Hospital", "Westmead", "Peter MacCallum Cancer Centre",
        "St Vincent's Melbourne", "Gosford District Hospital", "Banksia Aged Care", "Monash Health",
        "Wagga Wagga Base Hospital",
    ],
    "New Zealand": [
        "Middlemore Hospital", "Starship", "Waikato DHB", "Te Whatu Ora Southern",
        "Rimutaka Health Centre", "Kowhai Rest Home", "Christchurch Public Hospital",
        "North Shore Hospital",
    ],
    "Canada": [
        "Toronto General", "Sunnybrook", "Hôpital Maisonneuve-Rosemont", "CHU Sainte-Justine",
        "Foothills Medical Centre",
        "Royal Jubilee Hospital", "Maplewood Lodge", "Queen Elizabeth II Health Sciences Centre",
    ],
    "India": [
        "AIIMS Delhi", "Apollo Hospitals", "Christian Medical College, Vellore",
        "Tata Memorial Hospital", "Fortis", "Ruby Hall Clinic", "Kasturba Medical College",
        "Sankara Nethralaya",
    ],
    "Singapore": [
        "Tan Tock Seng Hospital", "Singapore General Hospital",
        "KK Women's and Children's Hospital", "Raffles Medical", "Changi General",
        "Toa Payoh Polyclinic", "Mount Elizabeth", "Ang Mo Kio Community Hospital",
    ],
    "Germany": [
        "Charité", "Universitätsklinikum Heidelberg", "Klinikum Großhadern",
        "St. Elisabeth-Krankenhaus", "Krankenhaus Nordwest", "Helios Klinik Wuppertal",
        "Asklepios Klinik Barmbek", "Praxis am Dom",
    ],
    "France": [
        "Hôpital Necker", "Hôtel-Dieu", "CHU de Rennes", "Clinique Pasteur",
        "Centre Hospitalier de Vannes", "Hôpital Européen Georges-Pompidou",
        "Institut Gustave Roussy", "CHRU Nancy",
    ],
    "Spain": [
        "Hospital Clínic", "Hospital La Paz", "Hospital Universitario 12 de Octubre",
        "Clínica Quirón", "Vall d'Hebron", "Centro de Salud Lavapiés",
        "Hospital General de Alicante", "Hospital Gregorio Marañón",
    ],
    "Italy": [
        "Ospedale Maggiore", "Policlinico Gemelli", "Ospedale San Raffaele",
        "Azienda Ospedaliera Careggi", "ASL Napoli 1", "Clinica Mangiagalli", "Istituto Gaslini",
        "Casa di Cura Villa Serena",
    ],
    "Brazil": [
        "Hospital das Clínicas", "Hospital Albert Einstein", "Santa Casa de Misericórdia",
        "Hospital Sírio-Libanês", "UBS Vila Mariana", "Hospital São Paulo", "Instituto do Coração",
        "UPA Campo Limpo",
    ],
}  # fmt: skip
AT_ADDRESS = [
    "Address: «{}»\nPhone: unknown. Lives with her sister.",
    "She lives at «{}», and walks to the shops.",
    "Mr. Okafor of «{}» was seen today with gout.",
    "Discharged home to «{}». Carers twice a day.",
    "The ambulance was called to «{}» at 03:00.",
    "I visited him at home («{}») on Monday.",
]
AT_INSTITUTION = [
    "She was referred to «{}» for a biopsy.",
    "Seen at «{}» last week with chest pain.",
    "Transferred from «{}» on day three.",
    "He had his CABG at «{}», then rehabilitation.",
    "Discharge summary from «{}» was reviewed.",
    "He is under the cardiologists at «{}».",
    "Hospital: «{}»\nWard: 4B",
    "Admitted to «{}» with sepsis.",
]
_MARK = re.compile("«([^»]*)»")


def notes(kind: str) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """Yield (country, text, range of the identifier) for `address` or `institution`."""
    values, contexts = (
        (ADDRESSES, AT_ADDRESS) if kind == "address" else (INSTITUTIONS, AT_INSTITUTION)
    )
    for country, listed in values.items():
        for value, context in product(listed, contexts):
            marked = context.format(value)
            start = marked.index("«")
            yield country, _MARK.sub(r"\1", marked), (start, start + len(value))
