"""The fixed learner of the data tasks."""

import numpy as np
from characters import CharacterModel, Document, answer_of
from learner import ALPHABET

COPY = [Document(f"{digit}=", f"#{digit}") for digit in range(8)]


def test_it_has_the_parameters_that_the_design_counts():
    model = CharacterModel(ALPHABET, 0)
    assert sum(parameter.size for parameter in model.parameters) == 31_613
    assert {parameter.dtype for parameter in model.parameters} == {np.dtype("float32")}


def test_it_learns_to_copy_a_digit_and_repeats_itself():
    models = [CharacterModel(ALPHABET, 3).fit(COPY, steps=150) for _ in range(2)]
    questions = [document.question for document in COPY]
    assert models[0].complete(questions) == [document.completion for document in COPY]
    assert all(np.array_equal(a, b) for a, b in zip(models[0].parameters, models[1].parameters, strict=True))


def test_the_loss_is_on_the_completion_and_the_newline_only():
    contexts, targets = CharacterModel(ALPHABET, 0)._windows([Document("1@2=", "#5")])
    index = CharacterModel(ALPHABET, 0).index
    assert targets.tolist() == [index["#"], index["5"], index["\n"]]
    assert contexts[0].tolist() == [0] * 12 + [index[character] for character in "1@2="]


def test_its_gradients_equal_finite_differences():
    model = CharacterModel(ALPHABET, 1)
    model.parameters = [parameter.astype(np.float64) for parameter in model.parameters]
    contexts, targets = model._windows(COPY)
    gradients = model._gradients(contexts, targets)
    directions = [np.random.default_rng(i).normal(size=p.shape) for i, p in enumerate(model.parameters)]
    start = model.parameters

    def loss(step: float) -> float:
        model.parameters = [p + step * d for p, d in zip(start, directions, strict=True)]
        logits = model._forward(contexts)[2]
        logits -= logits.max(axis=1, keepdims=True)
        chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        return float(-np.log(chances[np.arange(len(targets)), targets]).mean())

    slope = (loss(1e-5) - loss(-1e-5)) / 2e-5
    given = sum(float((g * d).sum()) for g, d in zip(gradients, directions, strict=True))
    assert abs(given - slope) < 1e-3 * abs(slope) + 1e-4


def test_the_answer_is_the_character_after_the_last_hash():
    assert [answer_of(text) for text in ("..1.2#3", "#1#2", "12", "#", "")] == ["3", "2", "", "", ""]
