"""Training one network of an audit; import it after `need_torch()`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinveil.attacks.models.leaveout.data import AuditData
from clinveil.core.files import private_folder
from clinveil.core.neural import device_named, seeded
from clinveil.lm.model import fit_of
from clinveil.lm.network import Network, NeuralModel
from clinveil.lm.plan import Columns, Plan, Rows, columns_plan, rows_plan
from clinveil.lm.states import load_training, read_tensors, save_training
from clinveil.lm.train import identity_of
from clinveil.lm.training import Training
from clinveil.scale.tasks import Store

if TYPE_CHECKING:
    from clinveil.attacks.models.leaveout.members import Member

MOST_FORKS = 4 * 2**30  # bytes of states kept to share beginnings


def train_member(member: Member, data: AuditData, folder: Path, store: Store) -> tuple[NeuralModel, dict[str, Any]]:
    """Train the model of a member: from a shared state where there is one, and leaving such states behind."""
    recipe = member.recipe
    assert recipe is not None
    identity = identity_of(data.encoded, data.vocabulary, recipe, member.seed)
    with seeded(member.seed):
        training = _training(member, data)
        if member.forks is not None and isinstance(training.plan, Rows):
            fork = store.folder(member.forks) / "forks" / f"{_first_step(member, data, training.plan)}.safetensors"
            if fork.exists():
                load_training(training, fork, identity)
        if member.shares and isinstance(training.plan, Rows):
            _leave_forks(training, data, folder, identity)
        training.fit()
        model = NeuralModel(data.vocabulary, training.finish())
    return model, {"losses": training.progress.losses, "perplexities": training.progress.looks}


def _first_step(member: Member, data: AuditData, plan: Rows) -> int:
    assert member.left_out is not None
    return plan.first_step_of(data.units[member.left_out])


def _leave_forks(training: Training, data: AuditData, folder: Path, identity: str) -> None:
    """Write the state just before each unit's first step."""
    assert isinstance(training.plan, Rows)
    steps = sorted({training.plan.first_step_of(rows) for rows in data.units} - {0})
    size = sum(p.numel() for p in training.network.parameters()) * 12
    if size * len(steps) > MOST_FORKS:
        return
    private_folder(folder / "forks")
    for step in steps:
        training.fit(step)
        save_training(training, folder / "forks" / f"{step}.safetensors", identity)


def _training(member: Member, data: AuditData) -> Training:
    recipe = member.recipe
    assert recipe is not None
    initial = read_tensors(member.initial)[0] if member.initial else None

    def validate(network: Network) -> float:
        assert data.validation is not None
        return fit_of(NeuralModel(data.vocabulary, network), data.validation).perplexity

    return Training(
        data.vocabulary.size,
        recipe,
        _plan(member, data),
        seed=member.seed,
        device=device_named(member.device),
        initial=initial,
        validate=validate if data.validation is not None else None,
    )


def _plan(member: Member, data: AuditData) -> Plan:
    """`exact`: all notes in their places, the unit masked. `compat`: the unit's notes taken out, the text cut anew."""
    recipe = member.recipe
    assert recipe is not None
    rows = None if member.left_out is None else data.units[member.left_out]
    if member.mode == "compat":
        return _columns(member, data)
    lanes, window, epochs = recipe.lanes, recipe.window, recipe.epochs
    plan = rows_plan(data.encoded, lanes=lanes, window=window, epochs=epochs, seed=member.seed)
    return plan if rows is None else plan.without(rows)


def _columns(member: Member, data: AuditData) -> Columns:
    from clinveil.attacks.models.leaveout.members import without

    recipe = member.recipe
    assert recipe is not None
    kept = data.encoded if member.left_out is None else without(data.encoded, data.units[member.left_out].tolist())
    return columns_plan(kept.ids, lanes=recipe.lanes, window=recipe.window, epochs=recipe.epochs)
