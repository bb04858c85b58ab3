"""Settings of methods written as text: what `--set` takes, and what it refuses."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from tools.exact import linear_regression

from credence.errors import InputError
from credence.methods import (
    CES,
    METHODS,
    MLSMC,
    NUTS,
    OURS,
    SMC,
    Algorithm,
    Stacking,
    Training,
    Transdimensional,
    resolve,
)
from credence.methods.settings import settings_of, shared_out, with_settings
from credence.storage import jsonable


def test_values_are_of_their_settings_types() -> None:
    texts = ["num_draws=50", "training.max_epochs=7", "target_acceptance_rate=0.9", "num_draws=60"]
    found = with_settings(NUTS, texts, num_chains=3)
    assert isinstance(found, NUTS)
    assert (found.num_draws, found.num_chains, found.target_acceptance_rate) == (60, 3, 0.9)
    assert found.training.max_epochs == 7
    assert found.training.patience == NUTS().training.patience


@pytest.mark.parametrize("method", OURS, ids=lambda method: method.name)
def test_every_setting_has_a_meaning(method: type[Algorithm]) -> None:
    """An entry that is not read from the docstring would be blank in `credence methods NAME`."""
    assert [each.name for each in settings_of(method) if not each.meaning] == []


def test_infinite_numbers_are_written_and_read() -> None:
    found = with_settings(CES, ["max_error=inf"])
    assert isinstance(found, CES)
    assert found.max_error == np.inf
    written = json.loads(json.dumps(jsonable(asdict(found), spell_infinite=True), allow_nan=False))
    assert CES.from_settings(written, is_saved=True).max_error == np.inf


def test_lists_parts_and_words() -> None:
    levels = with_settings(MLSMC, ["widths=[[4],[8]]", "mutation.kernel=mala"])
    assert isinstance(levels, MLSMC)
    assert (levels.widths, levels.mutation.kernel) == (((4,), (8,)), "mala")
    texts = ["moves=plain,collapsed", "within=hmc", "max_depth=2", "width_prior.mean=4"]
    texts += ["width_prior.shape=poisson"]  # without which a mean is refused
    jumps = with_settings(Transdimensional, texts)
    assert isinstance(jumps, Transdimensional)
    assert (jumps.moves, jumps.within, jumps.max_depth) == (("plain", "collapsed"), "hmc", 2)
    assert jumps.width_prior.mean == 4.0
    assert with_settings(SMC, ["mutation.num_steps=None"]) == SMC()
    one = with_settings(Stacking, ["models=50/unit/own"])
    assert isinstance(one, Stacking)
    assert one.models == ("50/unit/own",)
    with pytest.raises(InputError, match="--set models=: it is"):
        with_settings(Stacking, ["models="])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("draws=5", "has no setting 'draws': `credence methods nuts` lists them"),
        ("training.max_epoch=5", "Did you mean 'training.max_epochs'"),
        ("num_draws", "--set takes NAME=VALUE, got 'num_draws'"),
        ("num_draws=many", "--set num_draws=many: it is a whole number, by default 1000"),
        ("num_draws=", "--set num_draws=: it is a whole number"),
        ("num_draws=true", "it is a whole number"),
        ("training.max_epochs=1.5", "it is a whole number"),
        ("num_draws=-1", "num_draws must be > 0, got -1"),
    ],
)
def test_what_is_no_setting_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        with_settings(NUTS, [text])


def test_several_methods_share_settings() -> None:
    """What is for one method alone comes last, whatever was said first, so that it wins."""
    texts = ["nuts.num_warmup=7", "num_warmup=5", "training.patience=3", "smc.mutation.kernel=mala"]
    methods = {name: METHODS[name] for name in ("nuts", "smc", "map")}
    found = shared_out(methods, texts)
    assert found == {
        "nuts": ["num_warmup=5", "training.patience=3", "num_warmup=7"],
        "smc": ["mutation.kernel=mala"],
        "map": ["training.patience=3"],
    }
    nuts = with_settings(NUTS, found["nuts"])
    assert isinstance(nuts, NUTS)
    assert nuts.num_warmup == 7


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "num_warmups=5",
            "None of the methods nuts, map has a setting 'num_warmups'.*'num_warmup'",
        ),
        ("smc.num_runs=5", "has a setting 'smc.num_runs': `credence methods NAME` lists them"),
        ("nutz.num_warmup=5", "Did you mean 'nuts.num_warmup'"),
    ],
)
def test_what_no_method_has_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        shared_out({"nuts": NUTS, "map": METHODS["map"]}, [text])


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_says_what_it_can_be_told(name: str) -> None:
    """The defaults, written as text and read again, are the defaults."""
    method = METHODS[name]
    plain = [one for one in settings_of(method) if isinstance(one.default, int | float | str)]
    texts = [f"{one.name}={one.default}".replace("=True", "=true") for one in plain]
    texts = [text.replace("=False", "=false") for text in texts]
    assert with_settings(method, texts) == method()


def test_a_setting_that_a_method_lacks_is_refused_in_python_too() -> None:
    posterior = linear_regression().posterior
    with pytest.raises(InputError, match="'deep_ensemble' has no num_draws"):
        resolve("deep_ensemble", posterior, num_draws=50)
    with pytest.raises(InputError, match=r"num_draws and a method object were given"):
        resolve(NUTS(), posterior, num_draws=50)
    method, _ = resolve("smc", posterior, num_draws=50)
    assert method == SMC(num_particles=50)


def test_a_part_that_is_told_whole_forgets_what_was_said_of_it() -> None:
    texts = ["training.patience=3", 'training={"max_epochs": 7}', "training.batch_size=5"]
    found = with_settings(NUTS, texts)
    assert isinstance(found, NUTS)
    assert found.training == Training(max_epochs=7, batch_size=5)
