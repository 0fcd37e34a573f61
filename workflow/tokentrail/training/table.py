"""The tables of the reference models' training."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, number, prob, text


class Training(Table):
    """The training of a reference model, in windows of equal numbers of steps."""

    step = count("last step of the window", "step", min=1)
    tokens = count("tokens read up to and with this step", "tokens")
    loss = number("mean cross-entropy of the next token in the window, with mixers dropped", "nats", min=0.0)
    answer_loss = number("the same of the tokens that belong to an answer", "nats", min=0.0)


class Evaluation(Table):
    """How well a reference model copies a name: wording and filler that it never saw."""

    names = text("`seen` in training, or `held_out` of it", regex="^(seen|held_out)$")
    name = text("the name that is asked for")
    pieces = count("pieces that the name is cut into", "tokens", min=1)
    filler = text("paragraph between head and tail")
    repeats = count("how often the paragraph stands there", min=0)
    tokens = count("length of the prompt", "tokens")
    distance = count("from the name's last piece to the last token", "tokens")
    variant = text("`as_trained`, or `attention_off`: nothing from any attention head")
    target_probability = prob("probability of the name's first piece")
    target_rank = count("its rank", "rank")
    top1_token = text("most probable token")
