"""Metrics over pairs of prediction and label, both text. Each gives a number from 0 to 1, but for entropies (nats).

Standard library only, so that an evaluator that needs no more starts at once.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence


class PredictionError(ValueError):
    """A prediction that can't be read; the message says what is expected."""


def _words(text: str) -> list[str]:
    return text.casefold().split()


def accuracy(predictions: Sequence[str], labels: Sequence[str]) -> float:
    """The share of predictions equal to their labels, character for character but for blanks at both ends."""
    return sum(p.strip() == label.strip() for p, label in zip(predictions, labels, strict=True)) / len(labels)


def exact_match(predictions: Sequence[str], labels: Sequence[str]) -> float:
    """The share of predictions with the same words as their labels, whatever case and blanks."""
    return sum(_words(p) == _words(label) for p, label in zip(predictions, labels, strict=True)) / len(labels)


def f1(predictions: Sequence[str], labels: Sequence[str]) -> float:
    """Macro F1: the mean over the classes that occur in predictions or labels; a class never predicted has 0."""
    pairs = list(zip((p.strip() for p in predictions), (label.strip() for label in labels), strict=True))
    scores = []
    for name in sorted({name for pair in pairs for name in pair}):
        hits = sum(p == label == name for p, label in pairs)
        scores.append(2 * hits / sum((p == name) + (label == name) for p, label in pairs))
    return sum(scores) / len(scores)


def rouge_l(predictions: Sequence[str], labels: Sequence[str]) -> float:
    """Mean F of the longest common subsequence of words (Lin 2004, beta = 1)."""
    scores = []
    for prediction, label in zip(predictions, labels, strict=True):
        ours, theirs = _words(prediction), _words(label)
        common = _longest_common(ours, theirs)
        scores.append(2 * common / (len(ours) + len(theirs)) if ours or theirs else 1.0)
    return sum(scores) / len(scores)


def _longest_common(left: Sequence[str], right: Sequence[str]) -> int:
    row = [0] * (len(right) + 1)
    for word in left:
        diagonal = 0
        for i, other in enumerate(right, start=1):
            above = row[i]
            row[i] = diagonal + 1 if word == other else max(above, row[i - 1])
            diagonal = above
    return row[-1]


def bleu(predictions: Sequence[str], labels: Sequence[str]) -> float:
    """Corpus BLEU (Papineni 2002): up to 4-grams of words, brevity penalty; 0 where an order has no match."""
    logs, ours, theirs = 0.0, 0, 0
    split = [(_words(p), _words(label)) for p, label in zip(predictions, labels, strict=True)]
    for order in range(1, 5):
        matched = total = 0
        for prediction, label in split:
            grams, wanted = _grams(prediction, order), _grams(label, order)
            matched += (grams & wanted).total()
            total += grams.total()
        if matched == 0:
            return 0.0
        logs += math.log(matched / total) / 4
    ours, theirs = (sum(len(pair[side]) for pair in split) for side in (0, 1))
    return math.exp(logs + min(0.0, 1 - theirs / ours))


def _grams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + order]) for i in range(len(words) - order + 1))


def predictive_entropy(predictions: Sequence[str], labels: Sequence[str]) -> float:
    """Mean entropy in nats of distributions written as probabilities with blanks between them. Labels only count."""
    if len(predictions) != len(labels):
        message = f"{len(predictions)} distributions for {len(labels)} questions"
        raise PredictionError(message)
    return sum(map(_entropy, predictions)) / len(predictions)


def _entropy(text: str) -> float:
    try:
        shares = [float(word) for word in text.split()]
    except ValueError:
        shares = []
    if not shares or not all(0 <= share <= 1 for share in shares) or abs(sum(shares) - 1) > 1e-6:
        message = f"{text[:40]!r} is no distribution: numbers from 0 to 1 with the sum 1"
        raise PredictionError(message)
    return sum(-share * math.log(share) for share in shares if share > 0)


METRICS: dict[str, Callable[[Sequence[str], Sequence[str]], float]] = {
    "accuracy": accuracy,
    "bleu": bleu,
    "exact_match": exact_match,
    "f1": f1,
    "predictive_entropy": predictive_entropy,
    "rouge_l": rouge_l,
}
