"""The interface of an adversary: an attacker who recovers the source word of each released word.

Each adversary is one file of `attacks/adversaries`. `knows` lists all that it uses of the view. It never reads the
truth of the notes that it attacks. `attacks/channel/adversary_suite.py` runs and scores all adversaries.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from clinveil.attacks.threats import Holding
from clinveil.channel.channel import LIKELIEST, Channel
from clinveil.core.registry import Registry
from clinveil.core.settings import Settings
from clinveil.core.types import Doubles, Ints

if TYPE_CHECKING:
    from numpy.random import Generator
    from scipy.sparse import csc_matrix

Knowledge = Literal["channel", "others", "pairs", "vectors"]
KNOWLEDGE: dict[Knowledge, str] = {
    "channel": "the channel: word vectors or neighbour table, mechanism and settings, but not the key",
    "others": "other notes of the same kind, in plain text",
    "pairs": "some notes in both forms, plain and released",
    "vectors": "word vectors of their own, trained without the source",
}
"""What a reader may know beside the released notes and the tool; printed with every number."""


@dataclass(frozen=True, eq=False)
class AlignedNote:
    """One released note, word by word, and what stood there; places of words without a known source are left out.

    Attributes:
        outputs: (n,) rows of `channel.words`, in released order.
        truth: (n,) rows of the words behind them; `channel.unknown` for a word that the channel does not know. Secret:
            readers get it for `AdversaryView.pairs` alone.
        places: (n,) where each stood in its source note, counted in words. Secret.
        patient: number of the patient.
    """

    outputs: Ints
    truth: Ints
    places: Ints
    patient: int

    def __len__(self) -> int:
        return int(self.outputs.size)


@dataclass(frozen=True, eq=False)
class AdversaryView:
    """What lies before the readers of some notes.

    Attributes:
        channel: mechanism, words and policy. Readers without the channel may use its `words` as a list of strings, and
            its policy, which is no secret, and nothing else.
        notes: the notes that are attacked.
        released: outputs of all released notes, the attacked ones among them (for those who learn from the release).
        others: other patients' notes in plain text, as rows of `channel.words`; `channel.unknown` for other words.
        pairs: notes of other patients that the attacker holds in both forms.
        counts: (n_words,) occurrences of each word in the source.
        threads: how many; no reading depends on it. scratch: a private folder, for those who train something.
        shadow: runs our own tool, as everybody can: it takes plain notes with their patients' numbers, makes vectors
            and a channel of them under the policy and mechanism of the release and a key of its own, and returns that
            channel and what came out, in its rows.
        memory: what readers keep for the next reading of the same release (shadow vectors, n-gram tables); a copy made
            by `dataclasses.replace` shares it, so a scene of another release needs an empty one.
    """

    channel: Channel
    notes: Sequence[AlignedNote]
    released: Sequence[Ints] = ()
    others: Sequence[Ints] = ()
    pairs: Sequence[AlignedNote] = ()
    counts: Ints | None = None
    threads: int = 1
    scratch: Path | None = None
    shadow: Callable[[Sequence[Ints], Sequence[int]], tuple[Channel, Sequence[AlignedNote]]] | None = field(
        default=None, repr=False
    )
    memory: dict[Any, Any] = field(default_factory=dict, repr=False)

    def kept(self, name: Hashable, made: Callable[[], Any]) -> Any:
        """Return what `made` returns, which is called once for this name in all scenes that share the memory."""
        if name not in self.memory:
            self.memory[name] = made()
        return self.memory[name]

    @cached_property
    def by_output(self) -> csc_matrix:
        """P(output | input), (n_words, n_words), by column: of each output its known inputs, in order."""
        likeliest = np.argsort(-self.prior, kind="stable")[:LIKELIEST]
        matrix = self.channel.mixed(likeliest)[: len(self.channel.words)].tocsc()
        matrix.sort_indices()
        return matrix

    @cached_property
    def prior(self) -> Doubles:
        """(n_words,) how often each word stands in `others`, smoothed by a tenth of an occurrence; sums to 1."""
        n_words = len(self.channel.words)
        every = np.concatenate([np.zeros(0, dtype=np.int64), *self.others])
        counts = np.bincount(every, minlength=n_words + 1)[:n_words] + 0.1
        return np.asarray(counts / counts.sum(), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Reading:
    """What a reader says of one note: of each released word, possible source words and how much he believes in each.

    Attributes:
        starts: (n + 1,) places in the other two. rows: candidate rows of `channel.words`; a place may have none.
        chances: their probabilities, above 0, which sum to at most 1 at each place; a reader without probabilities
            gives scores that rank, and says so by `Adversary.calibrated`.
        order: (n,) the place in the note at which the reader believes each released word to have stood (any numbers
            that sort); None: as released.
    """

    starts: Ints
    rows: Ints
    chances: Doubles
    order: Doubles | None = None


class Adversary(Settings):
    """One attacker: a frozen value whose fields are his settings; the first line of his docstring says what he does.

    Attributes:
        knows: all that he takes from a scene beside `channel.words`, `notes[].outputs`, `released` and the policy.
        calibrated: whether his `chances` are meant as probabilities.
        in_release: the settings under which every release is attacked by this reader, one entry for each attack.
        at_most: the number of words attacked in a release or as a control, where the reader is slow.
        order: the place among the readers.
    """

    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    calibrated: ClassVar[bool] = True
    in_release: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    at_most: ClassVar[int | None] = None
    order: ClassVar[int] = 1000

    @abstractmethod
    def read(self, view: AdversaryView, rng: Generator) -> Iterable[Reading]:
        """A reading of each of `view.notes`, in their order; all that is drawn is drawn before the first is made."""

    @classmethod
    def help(cls) -> str:
        """What he does, in one line."""
        return (getdoc(cls) or "").partition("\n")[0]

    @property
    def holding(self) -> Holding | None:
        """The adversary who can run this attack; None for a reader that stands for no adversary of the table."""
        if "channel" in self.knows:
            return "stolen-vectors"
        return "shadow" if "vectors" in self.knows else "recipient"

    @property
    def variant(self) -> str:
        """What tells several settings of one reader apart, in words; empty at the defaults."""
        return ""

    def can(self, view: AdversaryView) -> bool:
        """Whether the scene holds what he needs."""
        there: dict[str, Any] = {"others": view.others, "pairs": view.pairs}
        return all(there.get(need, True) for need in self.knows)


adversaries: Registry[type[Adversary]] = Registry("adversary", "clinveil.attacks.adversaries")
"""All readers by name."""


def from_table(outputs: Ints, starts: Ints, rows: Ints, chances: Doubles) -> Reading:
    """The reading of one who has the same candidates for an output wherever it stands.

    Args:
        outputs: (n,) of the note. starts, rows, chances: (n_words + 1,) and the candidates of each output.
    """
    sizes = starts[outputs + 1] - starts[outputs]
    begin = np.concatenate([[0], np.cumsum(sizes)])
    places = np.repeat(starts[outputs] - begin[:-1], sizes) + np.arange(begin[-1])
    return Reading(begin.astype(np.int64), rows[places].astype(np.int64), chances[places])
