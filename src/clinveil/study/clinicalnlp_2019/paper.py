"""The numbers that paper C prints, as it prints them: Tables 1 and 2, and the signs of section 4.4.

Source: Melamud O, Shivade C. Towards automatic generation of shareable synthetic clinical notes using neural language
models. Clinical NLP Workshop 2019.
"""

from __future__ import annotations

# corpus: notes of training, validation, test; words of each; vocabulary; share of unknown words
TABLE_1 = {
    "MedText-2": ("1280", "128", "128", "2,259,966", "228,795", "219,650", "24,052", "1.5 %"),
    "MedText-103": ("59,396", "128", "128", "103,590,422", "228,795", "219,650", "135,220", "0.3 %"),
    "WikiText-2": ("600", "60", "60", "2,088,628", "217,646", "245,569", "33,278", "2.6 %"),
    "WikiText-103": ("28,475", "60", "60", "103,227,021", "217,646", "245,569", "267,735", "0.4 %"),
}
# model: perplexity, privacy, similarity, relatedness, nli, case
TABLE_2_SMALL = {
    "real notes": ("", "", ".459", ".381", ".713", ".910"),
    "lstm, dropout 0.0": ("15.8", "11.7", ".227", ".125", ".678", ".895"),
    "lstm, dropout 0.3": ("12.5", "11.8", "", "", "", ""),
    "lstm, dropout 0.5": ("12.5", "9.6", ".259", ".160", ".692", ".895"),
    "lstm, dropout 0.7": ("15.4", "7.5", "", "", "", ""),
    "lstm, dropout 0.8": ("20.3", "6.6", ".146", ".016", ".699", ".883"),
    "unigram": ("702.4", "0.9", ".027", "-.072", ".661", ".488"),
}
TABLE_2_LARGE = {
    "real notes": ("", "", ".608", ".489", ".724", ".921"),
    "lstm, dropout 0.0": ("7.8", "4.9", ".415", ".351", ".697", ".918"),
    "lstm, dropout 0.2": ("8.4", "4.0", ".401", ".337", ".702", ".915"),
    "lstm, dropout 0.5": ("10.2", "3.7", ".315", ".271", ".713", ".910"),
    "unigram": ("803.5", "0.3", ".094", ".170", ".644", ".469"),
}
SIGNS = {"MedText-2": "30 of 30", "MedText-103": "25 of 30"}
