"""Compiled draws: SipHash-2-4 of the position, alias tables, and the words written before.

`draw_words` is the mechanism `neighbours`, which draws each word by itself; `draw_in_context` is
`contextual`. Both return the row of each output; their slow references are in
`tests/channel/channel_reference.py`.
"""

from __future__ import annotations

import numpy as np

from clinveil.channel.arrays import Bytes, ChannelTables, ContextTables, Words64
from clinveil.core import Doubles, Ints, Mask, SmallInts, helper, kernel

# XORed with the input of background draws.
_COIN = np.uint64(0x9E3779B97F4A7C15)
_MIXED = np.uint64(0xC2B2AE3D27D4EB4F)
# Attempts to draw a word of the model that label and sentence end accept; the last one is always
# accepted. At most 511 of 512 are rejected, so it is reached with a probability below 1e-13.
_ATTEMPTS = 16_384
_MOST_END = 2.0  # the highest of `ContextTables.ends`
_LEAST = 1e-9  # probability of a neighbour in its context at least
_8 = np.uint64(8)
_40 = np.uint64(40)
_11 = np.uint64(11)
_13 = np.uint64(13)
_16 = np.uint64(16)
_17 = np.uint64(17)
_21 = np.uint64(21)
_32 = np.uint64(32)
_56 = np.uint64(56)
_64 = np.uint64(64)
_UNIT = 2.0**-53
_LOW = np.uint64(0xFFFFFFFF)
_V0 = np.uint64(0x736F6D6570736575)
_V1 = np.uint64(0x646F72616E646F6D)
_V2 = np.uint64(0x6C7967656E657261)
_V3 = np.uint64(0x7465646279746573)


@helper
def _rotate(x: np.uint64, bits: np.uint64) -> np.uint64:
    return (x << bits) | (x >> (_64 - bits))


@helper
def _round(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64) -> tuple[np.uint64, ...]:
    v0 += v1
    v2 += v3
    v1 = _rotate(v1, _13) ^ v0
    v3 = _rotate(v3, _16) ^ v2
    v0 = _rotate(v0, _32)
    v2 += v1
    v0 += v3
    v1 = _rotate(v1, _17) ^ v2
    v3 = _rotate(v3, _21) ^ v0
    v2 = _rotate(v2, _32)
    return v0, v1, v2, v3


@helper
def _absorb(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64, word: np.uint64
) -> tuple[np.uint64, ...]:
    v0, v1, v2, v3 = _round(v0, v1, v2, v3 ^ word)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ word, v1, v2, v3


@helper
def _finish(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64, last: np.uint64
) -> np.uint64:
    v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, last)
    v2 ^= np.uint64(0xFF)
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@helper
def siphash_word(k0: np.uint64, k1: np.uint64, word: np.uint64) -> np.uint64:
    """Return SipHash-2-4 of one 64-bit word (eight little-endian bytes) under the key (k0, k1);
    compiled.

    Source: Aumasson and Bernstein, SipHash: a fast short-input PRF (INDOCRYPT 2012).
    """
    v0, v1, v2, v3 = _absorb(k0 ^ _V0, k1 ^ _V1, k0 ^ _V2, k1 ^ _V3, word)
    return _finish(v0, v1, v2, v3, np.uint64(8) << _56)


@helper
def siphash(
    k0: np.uint64, k1: np.uint64, data: Bytes, start: int, end: int, letters: Bytes
) -> np.uint64:
    """Return SipHash-2-4 of letters[data[start:end]]; `letters`, (256,), is the identity or folds
    case; compiled.
    """
    v0 = k0 ^ _V0
    v1 = k1 ^ _V1
    v2 = k0 ^ _V2
    v3 = k1 ^ _V3
    word = np.uint64(0)
    shift = np.uint64(0)
    for i in range(start, end):
        word |= np.uint64(letters[data[i]]) << shift
        shift += _8
        if shift == _64:
            v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, word)
            word = np.uint64(0)
            shift = np.uint64(0)
    return _finish(v0, v1, v2, v3, word | np.uint64(end - start) << _56)


@kernel
def hash_strings(
    k0: np.uint64, k1: np.uint64, data: Bytes, offsets: Ints, letters: Bytes
) -> Words64:
    """Return the SipHash of each string, (n_strings,); compiled."""
    hashes = np.empty(offsets.size - 1, dtype=np.uint64)
    for i in range(hashes.size):
        hashes[i] = siphash(k0, k1, data, offsets[i], offsets[i + 1], letters)
    return hashes


@helper
def _from_alias(
    first: int, end: int, outputs: SmallInts, limits: Words64, others: SmallInts, bits: np.uint64
) -> int:
    """Draw from the entries [first, end) of an alias table with 64 random bits; -1 if there is
    none.
    """
    size = np.uint64(end - first)
    if size == 0:
        return -1
    # bits * size in 128 bits: the high half selects the entry, the low half decides between its two
    # outputs.
    low = (bits & _LOW) * size
    middle = (bits >> _32) * size + (low >> _32)
    entry = first + np.int64(middle >> _32)
    is_own = (middle << _32 | low & _LOW) < limits[entry]
    return outputs[entry] if is_own else others[entry]


@helper
def _draw(tables: ChannelTables, row: int, bits: np.uint64) -> int:
    """Draw an output from a row with 64 random bits; -1 if the row is empty."""
    first = tables.indptr[row]
    end = tables.indptr[row + 1]
    return _from_alias(first, end, tables.indices, tables.limits, tables.others, bits)


@helper
def _unit(bits: np.uint64) -> float:
    """Return a number in [0, 1) with 53 random bits."""
    return np.float64(bits >> _11) * _UNIT


@helper
def _draw_mixed(
    tables: ChannelTables, row: int, share: float, k0: np.uint64, k1: np.uint64, position: np.uint64
) -> int:
    """Draw an output for a word: with probability `share` from the pool, unless that is the word
    itself.
    """
    known = (
        row < tables.offsets.size - 1
        and tables.indptr[row + 1] > tables.indptr[row]
        and not tables.kept[row]
    )
    if known and share > 0 and _unit(siphash_word(k0, k1, position ^ _COIN)) < share:
        drawn = _draw(tables, tables.offsets.size - 1, siphash_word(k0, k1, position ^ _MIXED))
        if drawn >= 0 and drawn != row:
            return drawn
    return _draw(tables, row, siphash_word(k0, k1, position))


@kernel
def draw_words(
    rows: SmallInts, offsets: Ints, keys: Words64, tables: ChannelTables, background: float
) -> SmallInts:
    """Return an output for each word, -1 if it is not written; each depends on its note's key and
    its position only.
    """
    drawn = np.empty(rows.size, dtype=np.int32)
    for note in range(offsets.size - 1):
        k0 = keys[note, 0]
        k1 = keys[note, 1]
        for i in range(offsets[note], offsets[note + 1]):
            position = np.uint64(i - offsets[note])
            drawn[i] = _draw_mixed(tables, rows[i], background, k0, k1, position)
    return drawn


@helper
def _find(tokens: SmallInts, low: int, end: int, token: int) -> int:
    """Return the index of a token among the sorted entries [low, end); -1 if it is absent."""
    high = end
    while low < high:
        middle = (low + high) >> 1
        if tokens[middle] < token:
            low = middle + 1
        else:
            high = middle
    return low if low < end and tokens[low] == token else -1


@helper
def _advance(context: ContextTables, nodes: Ints, token: int) -> None:
    """Add a written token to the context; `nodes`: number of the context at each level, -1 if it is
    unknown.
    """
    for level in range(nodes.size - 1, 0, -1):
        before = nodes[level - 1]
        nodes[level] = -1
        if before >= 0 and token >= 0:
            place = context.first_context[level - 1] + before
            start = context.starts[place]
            ngram = _find(context.tokens, start, context.starts[place + 1], token)
            if ngram >= 0:
                nodes[level] = ngram - context.first_ngram[level - 1]
    nodes[0] = token


@helper
def _begin(context: ContextTables, nodes: Ints) -> None:
    """Set the context before a note: sentence ends."""
    nodes[:] = -1
    for _ in range(nodes.size):
        _advance(context, nodes, context.rows.size)


@helper
def _probability(context: ContextTables, nodes: Ints, token: int) -> float:
    """Return the probability of a token after the context, without a label."""
    rest = 1.0
    total = 0.0
    for level in range(nodes.size - 1, -1, -1):
        if nodes[level] >= 0:
            place = context.first_context[level] + nodes[level]
            weight = context.weights[place]
            if weight > 0.0:
                start = context.starts[place]
                ngram = _find(context.tokens, start, context.starts[place + 1], token)
                if ngram >= 0:
                    total += rest * weight * context.shares[ngram]
                rest *= 1.0 - weight
    return total + rest * context.shares[token]


@helper
def _proposed(context: ContextTables, nodes: Ints, level_bits: np.uint64, bits: np.uint64) -> int:
    """Draw a token after the context, without a label."""
    left = _unit(level_bits)
    for level in range(nodes.size - 1, -1, -1):
        if nodes[level] >= 0:
            place = context.first_context[level] + nodes[level]
            weight = context.weights[place]
            if left < weight:
                start = context.starts[place]
                end = context.starts[place + 1]
                return _from_alias(start, end, context.tokens, context.limits, context.others, bits)
            left = (left - weight) / (1.0 - weight) if weight < 1.0 else 0.0
    start = 0
    end = context.rows.size
    return _from_alias(start, end, context.tokens, context.limits, context.others, bits)


@helper
def _factor(context: ContextTables, token: int, label: int, is_last: bool) -> float:
    """Return the factor of a token for a label, and as the last word of a sentence."""
    factor = 1.0
    if label >= 0:
        factor *= context.factors[label, token]
    if is_last:
        factor *= context.ends[token]
    return factor


@helper
def _from_model(
    context: ContextTables,
    nodes: Ints,
    label: int,
    is_last: bool,
    k0: np.uint64,
    k1: np.uint64,
    position: np.uint64,
) -> int:
    """Draw a token after the context; with a label, or as the last of a sentence, proposals are
    accepted in proportion to its factors.
    """
    token = 0
    for attempt in range(_ATTEMPTS):
        number = position ^ _MIXED ^ (np.uint64(4 * attempt) << _40)
        level_bits = siphash_word(k0, k1, number)
        bits = siphash_word(k0, k1, number ^ (np.uint64(1) << _40))
        token = _proposed(context, nodes, level_bits, bits)
        if label < 0 and not is_last:
            break
        accept = _unit(siphash_word(k0, k1, number ^ (np.uint64(2) << _40)))
        if label >= 0:
            accept *= context.highest[label]
        if is_last:
            accept *= _MOST_END
        if accept < _factor(context, token, label, is_last):
            break
    return token


@helper
def _powered(chance: float, strength: float) -> float:
    """Return a probability to the power `strength`; at least `_LEAST` to it."""
    chance = max(chance, _LEAST)
    return chance if strength == 1.0 else chance**strength


@helper
def _fit(
    context: ContextTables, nodes: Ints, row: int, label: int, is_last: bool, strength: float
) -> float:
    """Return the factor of an output in its context: its probability to the power `strength`."""
    token = context.ids[row]
    chance = 0.0
    if token >= 0:
        chance = _probability(context, nodes, token) * _factor(context, token, label, is_last)
    return _powered(chance, strength)


@helper
def _neighbour(
    tables: ChannelTables,
    context: ContextTables,
    nodes: Ints,
    row: int,
    label: int,
    is_last: bool,
    strength: float,
    bits: np.uint64,
    sums: Doubles,
) -> int:
    """Draw a neighbour, in proportion to its probability and its factor in the context."""
    if strength == 0.0:
        return _draw(tables, row, bits)
    first = tables.indptr[row]
    size = tables.indptr[row + 1] - first
    total = 0.0
    for k in range(size):
        fit = _fit(context, nodes, tables.indices[first + k], label, is_last, strength)
        total += context.probabilities[first + k] * fit
        sums[k] = total
    left = _unit(bits) * total
    chosen = 0
    while chosen < size - 1 and sums[chosen] <= left:
        chosen += 1
    return tables.indices[first + chosen]


@kernel
def draw_in_context(
    words: tuple[SmallInts, Mask, Ints],
    keys: Words64,
    labels: Ints,
    tables: ChannelTables,
    context: ContextTables,
    background: float,
    strength: float,
) -> SmallInts:
    """Return an output for each word, -1 if it is not written; each depends on its note's key, its
    position and the words written before it.

    Args:
        words: rows, sentence ends and offsets, as in `NoteWords`. labels: (n_notes,) row of each
            note's label in `ContextTables.factors`, -1 for none.
    """
    rows, stops, offsets = words
    unknown = tables.offsets.size - 1
    drawn = np.full(rows.size, -1, dtype=np.int32)
    nodes = np.empty(context.first_context.size, dtype=np.int64)
    sums = np.empty(np.diff(tables.indptr).max(), dtype=np.float64)
    for note in range(offsets.size - 1):
        k0 = keys[note, 0]
        k1 = keys[note, 1]
        label = labels[note]
        _begin(context, nodes)
        for i in range(offsets[note], offsets[note + 1]):
            row = rows[i]
            if tables.indptr[row] == tables.indptr[row + 1]:
                continue
            if stops[i]:
                _advance(context, nodes, context.rows.size)
            position = np.uint64(i - offsets[note])
            following = i + 1
            while (
                following < offsets[note + 1]
                and tables.indptr[rows[following]] == tables.indptr[rows[following] + 1]
            ):
                following += 1
            is_last = following == offsets[note + 1] or stops[following]
            coin = _unit(siphash_word(k0, k1, position ^ _COIN))
            if row < unknown and tables.kept[row]:
                drawn[i] = row
            elif row == unknown or coin < background:
                token = _from_model(context, nodes, label, is_last, k0, k1, position)
                drawn[i] = context.rows[token]
            else:
                bits = siphash_word(k0, k1, position)
                drawn[i] = _neighbour(
                    tables, context, nodes, row, label, is_last, strength, bits, sums
                )
            _advance(context, nodes, context.ids[drawn[i]])
    return drawn


@helper
def _fill(context: ContextTables, nodes: Ints, added: Doubles, touched: Ints) -> tuple[int, float]:
    """Add to `added` the probability of each token from the n-grams of the context, and list these
    tokens; return their number, and the weight of the shares without context.
    """
    rest = 1.0
    n_touched = 0
    for level in range(nodes.size - 1, -1, -1):
        if nodes[level] >= 0:
            place = context.first_context[level] + nodes[level]
            weight = context.weights[place]
            for ngram in range(context.starts[place], context.starts[place + 1]):
                chance = rest * weight * context.shares[ngram]
                if chance > 0.0:
                    token = context.tokens[ngram]
                    if added[token] == 0.0:
                        touched[n_touched] = token
                        n_touched += 1
                    added[token] += chance
            rest *= 1.0 - weight
    return n_touched, rest


@helper
def _chance(
    context: ContextTables, token: int, label: int, is_last: bool, added: Doubles, rest: float
) -> float:
    """Return the probability of a token after `_fill`, up to the norm of its factors."""
    chance = added[token] + rest * context.shares[token]
    return chance * _factor(context, token, label, is_last)


@kernel
def likelihoods_in_context(
    outputs: SmallInts,
    stops: Mask,
    label: int,
    columns: tuple[Ints, SmallInts, Ints],
    tables: ChannelTables,
    context: ContextTables,
    background: float,
    strength: float,
) -> tuple[Doubles, Doubles]:
    """Return P(output | input, words written before) for the inputs that can produce each output as
    a neighbour, and for all others.

    Args:
        outputs, stops: of a released note. label: as in `draw_in_context`.
        columns: first input of each output, inputs, and their entry in the channel's rows.

    Returns:
        (n_entries,) of the inputs of each output in turn, and (n,) the probability of each output
        under the model.
    """
    starts, inputs, entries = columns
    n_entries = 0
    for output in outputs:
        n_entries += starts[output + 1] - starts[output]
    near = np.empty(n_entries, dtype=np.float64)
    model = np.zeros(outputs.size, dtype=np.float64)
    nodes = np.empty(context.first_context.size, dtype=np.int64)
    added = np.zeros(context.rows.size, dtype=np.float64)
    touched = np.empty(context.rows.size, dtype=np.int64)
    # The sum over all tokens is that of the shares without context, and of the n-grams.
    norms = np.zeros(2, dtype=np.float64)
    for token in range(context.rows.size):
        norms[0] += context.shares[token] * _factor(context, token, label, False)
        norms[1] += context.shares[token] * _factor(context, token, label, True)
    _begin(context, nodes)
    filled = 0
    for i in range(outputs.size):
        if stops[i]:
            _advance(context, nodes, context.rows.size)
        output = outputs[i]
        token = context.ids[output]
        is_last = i + 1 == outputs.size or stops[i + 1]
        n_touched, rest = _fill(context, nodes, added, touched)
        fit = _powered(0.0, strength)
        if token >= 0:
            chance = _chance(context, token, label, is_last, added, rest)
            total = rest * norms[np.int64(is_last)]
            for j in range(n_touched):
                total += added[touched[j]] * _factor(context, touched[j], label, is_last)
            model[i] = chance / total
            fit = _powered(chance, strength)
        for k in range(starts[output], starts[output + 1]):
            row = inputs[k]
            near[filled] = 1.0
            if not tables.kept[row]:
                total = 0.0
                for entry in range(tables.indptr[row], tables.indptr[row + 1]):
                    other = context.ids[tables.indices[entry]]
                    chance = _chance(context, other, label, is_last, added, rest)
                    total += context.probabilities[entry] * _powered(chance, strength)
                chance = context.probabilities[entries[k]] * fit / total
                near[filled] = background * model[i] + (1.0 - background) * chance
            filled += 1
        for j in range(n_touched):
            added[touched[j]] = 0.0
        _advance(context, nodes, token)
    return near, model
