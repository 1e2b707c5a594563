"""Words that indicate a name after them, before them, or in the value of the field that they
label.
"""

from __future__ import annotations

from clinveil.phi.detection.detector import words

TITLES = words(
    "dr drs mr mrs ms mx messrs professor prof rev reverend rabbi mister missus mme herr frau señor"
    " señora sra monsieur"
    " madame datuk dato"
)
CALLED = words(
    "doctor doctors nurse nurses sister miss pastor judge aunt uncle imam sergeant officer deputy"
    " detective"
)
# Half of them have other meanings: left, column, father of.
WEAK_TITLES = words("sgt capt lady sir father fr sr hon lt col maj")
# Nouns that follow `nurse` or `doctor` and are not names.
COMPOUNDS = words(
    "call page case day care field home school staff house self line light board base bell rounds"
    " post"
)
CLINICIANS = words(
    "resident attending physician physicians doctor provider providers surgeon surgeons assistant"
    " assistants"
    " anesthesiologist anesthetist pathologist radiologist cardiologist consultant intern pcp gp"
    " therapist nurse author"
    " scribe transcriptionist proctor witness by dictator cc attn attention clinician practitioner"
    " fellow hospitalist"
    " oncologist neurologist psychiatrist signature signed electronically crna preceptor technician"
    " tech transcriber reader"
)
RELATIVES = words(
    "contact contacts kin guarantor informant interpreter caregiver manager worker mother father"
    " spouse wife husband"
    " daughter son sister brother subscriber insured nok poa dpoa hcp proxy guardian partner parent"
)
PATIENT_FIELDS = words(
    "re patient pt client md member enrollee donor recipient beneficiary regarding subject"
)
NAMES = words("name names surname surnames lastname firstname apellido nombre")
NAMED = words("named dear nicknamed nee née hello hi hey aka called")
PEOPLE = words(
    "wife husband son sons daughter daughters mother father mom dad brother brothers sister sisters"
    " aunt uncle cousin "
    "cousins niece nephew nieces nephews friend friends partner girlfriend boyfriend fiance fiancé"
    " fiancee fiancée "
    "caregiver caretaker grandson granddaughter grandmother grandfather grandma grandpa spouse"
    " roommate neighbor "
    "neighbour stepson stepdaughter stepmother stepfather twin sibling guardian sponsor boss"
    " coworker colleague "
    "attorney lawyer worker therapist counselor psychologist psychiatrist manager practitioner"
    " assistant resident "
    "surgeon interpreter teacher pastor priest landlord children kids twins ex-wife ex-husband"
    " mother-in-law "
    "father-in-law daughter-in-law son-in-law sister-in-law brother-in-law grandchild grandchildren"
    " parents foster "
    "godmother godfather aide bf gf hubby mum hcp poa dpoa nok proxy neighbors neighbours partners"
    " aunts uncles "
    "dtr grandsons granddaughters stepchildren classmate babysitter nanny kid landlady carer"
)
SPOUSES = words("married widow widower engaged wed")
PATIENTS = words(
    "patient pt male female man woman boy girl child infant gentleman baby toddler teenager veteran"
    " client individual"
    " lady resident student"
)
# Verbs and adjectives with a person as subject.
SAYS = words(
    "states stated reports reported denies denied complains complained endorses endorsed says said"
    " tells told feels"
    " verbalizes verbalized accompanied recommended recommends suggested suggests advised advises"
    " agrees agreed"
    " alert awake doing feeling walking eating resting ambulating complaining tolerating"
    " comfortable afebrile"
)
# Verbs with only a person as subject: `Ignico vomited`, `Ignico weighs 64 kg`.
LIVES = words(
    "vomited vomits spat coughed sneezed quit walks walked weighs weighed smokes smoked drinks ate"
    " slept sleeps fell"
    " stumbled tripped fainted woke remembers recalls admits hopes thinks thought believes"
    " understands knows wishes"
    " insists prefers decided shouted cried yelled laughed smiled whispered apologized attributes"
    " worries worried"
    " ambulates ambulated voided emigrated immigrated retired graduated married divorced grew lives"
    " lived resides"
    " volunteered enjoys concurs disagrees scrubbed rounded phoned rang texted emailed messaged"
    " visited"
    " consented verbalized rates rated stands sits snores spiked jogs swims drove drives misses"
)
DOES = words(
    "appears seems looks became began started recalls could cannot would should did might"
    " state presents presented returns admits called lives works who slept refuses refused came"
    " required requires needed received"
    " arrived ambulated tolerated understands understood remains returned asked wants needs takes"
    " notes"
)
# Prepositions and verbs that often precede a person. The words after them must look like a first
# name and a surname.
MEETINGS = words(
    "with by from to for per of w have let as seeing referring visited and or via meet see saw"
    " spoke"
)
# Verbs with a person as object.
MET = words(
    "call calls calling phoned paged page notified notify contacted thank thanked met asked ask"
    " told tell"
    " informed inform texted text reminded saw updated update curbsided rang phoned emailed"
    " messaged reassured bathed"
    " fed ambulated repositioned assisted escorted wheeled counselled counseled await awaiting"
    " introduce admitted"
    " identify refer escalate met meet reach reached"
)
# Participles before `with`, `to`, `by`: the words after the preposition name a person, listed or
# not.
SPOKEN = words(
    "d discussed spoke spoken speak talk talked conferred reviewed met consulted examined seen"
    " signed dictated"
    " performed assisted"
    " evaluated referred notified called authored transcribed followed supervised obtained"
    " interpreted witnessed"
    " prepared entered completed scribed conversation discussion attested verified cosigned"
    " approved"
    " accompanied given explained provided handed conveyed communicated relayed speaking talking"
    " staffed agree agrees"
    " agreed presented precepted coordinated arranged shared touched rounded help assistance input"
    " advice request asked"
    " defer deferred deferring deferral curbsided escalated handed cleared okayed swapped relieved"
    " belongs thanks word"
    " belong checked appreciate"
)
# Verbs of conversation: their partner is a person, also in lower case.
TALKED = words("spoke speak spoken talk talked speaking talking conversation")
# Things that a person owns in a chart: `Smith's films`.
CHARTED = words(
    "films chart labs results images scans records medications meds family parents case care vitals"
    " symptoms pain exam"
    " hospitalization progress behavior behaviour request requests consent home address phone"
    " review opinion input"
    " recommendation recommendations advice office note notes appointment creatinine sodium"
    " potassium hemoglobin"
    " hematocrit platelets glucose lactate troponin bilirubin ferritin inr bnp cultures weight"
    " temperature gait speech"
    " swallow appetite mood sleep memory breathing cough nausea fever edema dressing incision wound"
    " drain drains tremor"
    " echo biopsy account condition course discharge ward room belongings bedside oxygen bp"
    " creatine blood"
)
TEAMS = words(
    "team present attendees participants attended founders members authors guests hosts speakers"
    " panel"
)
# Specialties and services, before the name of a clinician in brackets or after a slash: `Nephrology
# (Okafor)`.
SERVICES = words(
    "cardiology nephrology neurology oncology hematology haematology urology surgery orthopedics"
    " orthopaedics ortho"
    " psychiatry medicine pediatrics paediatrics dermatology endocrinology endocrine rheumatology"
    " gastroenterology gi id"
    " hepatology pulmonology pulmonary pulm respiratory radiology renal cards neuro psych heme onc"
    " vascular trauma plastics"
    " transplant palliative ent neurosurgery anesthesia anaesthesia anesthesiology obstetrics"
    " gynecology gynaecology"
    " ophthalmology ob gyn geriatrics rehab toxicology nutrition pharmacy podiatry icu micu ct ir"
)
CLOSINGS = words("sincerely regards thanks you yours best respectfully cordially truly")
CREDENTIALS = words(
    "MD DO RN NP FNP ARNP CRNP CNM PA PhD PsyD LPN CRNA DPM DDS DMD PharmD RPh MSW LCSW LICSW FACS"
    " FACC MBBS OTR DPT"
    " Esq PA-C APRN DNP FNP-C FNP-BC LVN CNA OTR/L RRT MPH FRCS FRCP MBChB FACP BSN MSN RDN LMHC"
    " LMFT ACNP CNS"
)
# Ordinary words that occur in name fields without being names.
NO_NAMES = words(
    "none unknown no not n/a na same self deceased alive living healthy well see as above below"
    " pending the a an other"
    " general emergency here he she it they his her this that and or but yes is was has had with"
    " will left right good"
    " normal negative positive deny denied history date dob mrn male female age sex name patient"
    " doctor dr mr mrs ms"
    " baby"
)
# Base verbs that follow Will and May used as verbs.
BASE_VERBS = words(
    "be need have not continue call follow take bring come return also consider require benefit"
    " discharge start get go"
    " see do give help make try use plan check obtain order repeat see resume stay remain then"
    " likely"
)
# Words that label a field or a sentence about people.
OF_PERSONS = (
    (CLINICIANS | PEOPLE | PATIENTS | RELATIVES | NAMES)
    | (PATIENT_FIELDS | TEAMS | MEETINGS | SPOKEN | SERVICES)
    | words("family siblings kids care service consult consults")
)
