"""How states travel along a ladder of temperatures."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypedDict

import numpy as np
from jaxtyping import Bool, Float

from credence.adaptation.ladder import mean_rates
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.findings import Finding
from credence.errors import plural
from credence.html.wording import number
from credence.methods.evidence import ladder_evidence
from credence.schema import build
from credence.storage import jsonable


class ExchangeEntries(TypedDict):
    """The entries of metrics.json on exchanges."""

    ladder_powers: tuple[float, ...]
    exchange_rates: tuple[float, ...]
    num_restarts: tuple[int, ...]


def told_of_ladder(
    info: Mapping[str, np.ndarray], powers: Float[np.ndarray, " rung"], log_anchor: float
) -> tuple[dict[str, Float[np.ndarray, "chain draw"]], dict[str, Any]]:
    """Sum up what the steps of a ladder have told: scalars of the coldest rung or means over all,
    and what the run has found.

    Args:
        info: with acceptance_rate and log_likelihood of every rung, exchange_rate of every pair of
            neighbours, and is_restart; what else is told of a draw is kept as it is.
        log_anchor: nats that the log likelihoods lack.
    """
    of_rungs = np.asarray(info["log_likelihood"], float)
    nats = [ladder_evidence(each, powers) + log_anchor for each in of_rungs]
    shape, rates = of_rungs.shape[:2], np.asarray(info["exchange_rate"], float)
    num_turns = np.sum(~np.isnan(rates), axis=-1)
    of_draws = np.nansum(rates, axis=-1) / np.maximum(num_turns, 1)
    scalars = {
        **{name: each for name, each in info.items() if np.ndim(each) == 2},
        "log_likelihood": of_rungs[..., -1] + log_anchor,
        "acceptance_rate": info["acceptance_rate"][..., 1:].mean(axis=-1),
        "exchange_rate": _last_known(of_draws, num_turns > 0),
        "log_evidence": np.broadcast_to(np.array(nats)[:, None], shape),
    }
    exchanges = Exchanges.measured(powers, rates, info["is_restart"])
    return scalars, {Exchanges.name: exchanges.entries()}


def _last_known(
    values: Float[np.ndarray, "chain draw"], is_known: Bool[np.ndarray, "chain draw"]
) -> Float[np.ndarray, "chain draw"]:
    """Values, where they are not known those of the draw before; at first, of the first known."""
    first = np.argmax(is_known, axis=1)[:, None]
    places = np.where(is_known, np.arange(values.shape[1]), first)
    return np.take_along_axis(values, np.maximum.accumulate(places, axis=1), axis=1)


@dataclass(frozen=True)
class Exchanges(Finding):
    """How often neighbours on a ladder exchange their states, and what comes down all the way.

    Syed, Bouchard-Cote, Deligiannidis & Doucet, "Non-reversible parallel tempering" (2022).
    """

    name: ClassVar[str] = "exchanges"

    powers: tuple[float, ...]
    """Powers of the likelihood, from 0 to 1."""
    rates: tuple[float, ...]
    """Rates of acceptance, for every pair of neighbours."""
    num_restarts: tuple[int, ...]
    """Draws of the prior that have come down to the posterior, for every chain."""

    @classmethod
    def measured(
        cls,
        powers: Float[np.ndarray, " rung"],
        rates: Float[np.ndarray, "chain draw pair"],
        is_restart: Float[np.ndarray, "chain draw"],
    ) -> "Exchanges":
        """Take the means of what a run's steps have told."""
        restarts = np.sum(is_restart, axis=1).round().astype(int).tolist()
        means = mean_rates(rates).tolist()
        return cls(tuple(map(float, powers)), tuple(means), tuple(restarts)).judged()

    def judged(self) -> "Exchanges":
        """The same with a verdict: a chain without any restart may be in a mode of its own."""
        without = sum(number == 0 for number in self.num_restarts)
        if not without:
            return self
        more = f", or {self.num_wanted} rungs or more" * (self.num_wanted > len(self.powers))
        reason = (
            f"In {plural(without, 'chain')} no draw of the prior has come down the ladder to the "
            f"posterior, which may be in a mode of its own: take more draws{more}."
        )
        return replace(self, settled=False, reason=reason)

    @property
    def barrier(self) -> float:
        """Sum of the rates of refusal along the ladder, which hardly depends on the powers."""
        return float(np.sum(1 - np.array(self.rates)))

    @property
    def num_wanted(self) -> int:
        """Rungs with which about half of the exchanges are accepted; more where rates are low."""
        return 1 + max(1, round(2 * self.barrier))

    @classmethod
    def of(cls, ensemble: Ensemble) -> "Exchanges | None":
        """Read it from what the run has found."""
        return cls.read(ensemble.provenance.found.get(cls.name, {}), {})

    @classmethod
    def read(
        cls, metrics: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> "Exchanges | None":
        """Read what `entries` wrote."""
        if not ExchangeEntries.__annotations__.keys() & metrics.keys():
            return None
        found = build(ExchangeEntries, dict(metrics))
        return cls(*(tuple(found[name]) for name in ExchangeEntries.__annotations__)).judged()

    def entries(self) -> dict[str, Any]:
        """Powers, rates and the number of restarts."""
        return jsonable(
            ExchangeEntries(
                ladder_powers=self.powers,
                exchange_rates=self.rates,
                num_restarts=self.num_restarts,
            )
        )

    def sentences(self) -> list[str]:
        """Say how the ladder is travelled."""
        return [
            f"{plural(sum(self.num_restarts), 'draw')} of the prior came down the ladder of "
            f"{len(self.powers)} temperatures; of the exchanges between neighbours "
            f"{100 * min(self.rates):.0f} to {100 * max(self.rates):.0f} % were accepted."
        ]

    def facts(self) -> list[tuple[str, str]]:
        """Show restarts, and the barrier with the number of rungs that it asks for."""
        barrier = f"{number(self.barrier)}; about {self.num_wanted} rungs suit it"
        return [
            ("Draws of the prior that reached the posterior", str(sum(self.num_restarts))),
            ("Barrier of the ladder", barrier),
        ]
