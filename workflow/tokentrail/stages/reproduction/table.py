"""The table `reproduction`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, number, text


class Reproduction(Table):
    """Published figures held against this run. `model` is `none` for a figure that no single model gives."""

    id = text("id of the figure in its ledger", min_length=1)
    stage = text("stage that the ledger counts it to")
    input = text("input that it was published for")
    quantity = text("what it is")
    unit = text("unit of `published` and `measured`; empty without one")
    published = text("the value as printed")
    measured = text("what this run measured; empty if it did not")
    published_value = number("`published`, if it is a number", "as `unit`", nullable=True)
    measured_value = number("`measured`, if it is a number", "as `unit`", nullable=True)
    tolerance_kind = text(
        "how the ledger judges it: `exact`, `abs`, `rel`, `at_least`, `at_most`, or `report` for not at all",
        regex="^(exact|abs|rel|at_least|at_most|report)$",
    )
    tolerance = number(
        "difference that is allowed for, float noise included; empty where the values must be the same, and where "
        "nothing is judged",
        "as `unit`",
        min=0.0,
        nullable=True,
    )
    status = text(
        "`reproduced`; `differs`; `shown`, not judged: of the author's own machine, or made with an input that is not "
        "printed; or `not_run`, with the reason in `note`",
        regex="^(reproduced|differs|shown|not_run)$",
    )
    note = text("why it was not run, what a judgement rests on, and what the ledger notes")
