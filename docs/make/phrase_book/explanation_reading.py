"""Numbers in the sentences of docs/explanation/reading.md."""

from collections import Counter
from collections.abc import Iterator

from assurance import is_faulty
from kept import kept_rows
from phrases import Phrase, given, made

from credence.report.judging.simple_models import HARMLESS


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page, in its order."""
    yield from given(
        "0.5 is guessing, 1 is perfect",
        "2.2 points with 100 rows, 0.7 with 1000",
        "a probability of about 80 %",
        "Are 80 % of them right?",
        "At 1.00 they are indistinguishable",
        "if R-hat is below 1.05 and the ESS",
        "ask for less than 1.01",
        "Above 1.05 the chains have not",
        "about 0.8 for `nuts`, 0.9 for `mclmc`, 0.57 for `mala`",
        "below 0.7 the result is reliable",
    )
    rows = kept_rows("assurance")
    verdicts = [row["verdict"] for row in rows]
    trusted = verdicts.count("trust")
    yield made("on {} simulated tables", len(verdicts))
    yield made("None of the {} that got *trust*", trusted)
    faulty = Counter(row["verdict"] for row in rows if is_faulty(row))
    assert faulty["trust"] == 0, "none of these verdicts was false"
    assert 0.05 < 1 - 0.05 ** (1 / trusted) < 0.06, "fewer than 6 in 100 are"
    sound = Counter(row["verdict"] for row in rows if not is_faulty(row))
    yield made("{} of the models were sound and {} faulty", sound.total(), faulty.total())
    assert faulty["do_not_trust"] == faulty.total(), "all of them got do not trust"
    yield made("All {} got *do not trust*", faulty.total())
    yield made("Of the sound models {} did not get it", sound.total() - trusted)
    missed = (sound[verdict] for verdict in ("care", "cannot_tell", "do_not_trust"))
    yield made("it: {} got *use with care*, {} *cannot tell* and {} *do not trust*", *missed)
    yield made("simple one by less than {:.2f} nats a row", HARMLESS)
