"""Room: tasks. The fixed learner of the data tasks, a small character model; copied into their packages.

16 characters of context, each embedded in 12 numbers, 128 rectified units, a softmax over the alphabet and a
blank (31,613 parameters for 48 characters, float32). A document is a question and its completion; the loss is on
the completion and the newline that ends it. The number of steps is fixed, so more rows don't mean more training.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

# One thread: the matrices are small, and figures should repeat. It has to be said before numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

CONTEXT = 16
EMBEDDING = 12
HIDDEN = 128
STEPS = 3000
BATCH = 256
BLANK = 0
END = "\n"

Floats = NDArray[np.float32]
Integers = NDArray[np.int32]


@dataclass(frozen=True)
class Document:
    """A question and the completion the model should learn to write after it."""

    question: str
    completion: str


class Adam:
    """Adam (0.9, 0.999, 1e-8, bias-corrected), step size falling in a line from 3e-3 to 1e-5."""

    def __init__(self, parameters: Sequence[Floats], steps: int) -> None:
        self.steps = steps
        self.first = [np.zeros_like(parameter) for parameter in parameters]
        self.second = [np.zeros_like(parameter) for parameter in parameters]

    def update(self, parameters: list[Floats], gradients: Sequence[Floats], step: int) -> None:
        """Move the parameters in place; `step` counts from 1."""
        size = 3e-3 * (1 - step / self.steps) + 1e-5
        for i, gradient in enumerate(gradients):
            self.first[i] = 0.9 * self.first[i] + 0.1 * gradient
            self.second[i] = 0.999 * self.second[i] + 0.001 * gradient * gradient
            direction = self.first[i] / (1 - 0.9**step)
            parameters[i] -= size * direction / (np.sqrt(self.second[i] / (1 - 0.999**step)) + 1e-8)


class CharacterModel:
    """The model and its training. One generator, seeded once, draws the first weights and then the batches."""

    def __init__(self, alphabet: str, seed: int) -> None:
        self.index = {character: i + 1 for i, character in enumerate(alphabet)}
        self.characters = {i: character for character, i in self.index.items()}
        self.symbols = len(alphabet) + 1
        self.random = np.random.default_rng(seed)
        self.one_hot: Floats = np.zeros((self.symbols, 0), np.float32)
        wide = CONTEXT * EMBEDDING
        self.parameters: list[Floats] = [
            self.random.normal(0, 0.3, (self.symbols, EMBEDDING)).astype(np.float32),
            self.random.normal(0, 1 / np.sqrt(wide), (wide, HIDDEN)).astype(np.float32),
            np.zeros(HIDDEN, np.float32),
            self.random.normal(0, 1 / np.sqrt(HIDDEN), (HIDDEN, self.symbols)).astype(np.float32),
            np.zeros(self.symbols, np.float32),
        ]

    def fit(self, documents: Sequence[Document], steps: int = STEPS) -> "CharacterModel":
        """Train on windows drawn with replacement; returns the model itself."""
        contexts, targets = self._windows(documents)
        adam = Adam(self.parameters, steps)
        for step in range(1, steps + 1):
            chosen = self.random.integers(len(contexts), size=BATCH)
            adam.update(self.parameters, self._gradients(contexts[chosen], targets[chosen]), step)
        return self

    def complete(self, questions: Sequence[str], longest: int = 100) -> list[str]:
        """The likeliest next character, again and again, until a newline or `longest` characters."""
        widest = max(len(question) for question in questions)
        begin = CONTEXT + widest
        text = np.full((len(questions), begin + longest), BLANK, np.int32)
        for row, question in zip(text, questions, strict=True):
            row[begin - len(question) : begin] = [self.index[character] for character in question]
        end = self.index[END]
        done = np.zeros(len(questions), bool)
        for place in range(begin, begin + longest):
            logits = self._forward(text[:, place - CONTEXT : place])[2]
            logits[:, BLANK] = -np.inf
            text[:, place] = np.where(done, end, logits.argmax(axis=1))
            done |= text[:, place] == end
            if done.all():
                break
        return ["".join(self.characters.get(int(i), "") for i in row[begin:]).split(END)[0] for row in text]

    def _windows(self, documents: Sequence[Document]) -> tuple[Integers, Integers]:
        contexts, targets = [], []
        for document in documents:
            text = document.question + document.completion + END
            symbols = [BLANK] * CONTEXT + [self.index[character] for character in text]
            for place in range(len(document.question), len(text)):
                contexts.append(symbols[place : place + CONTEXT])
                targets.append(symbols[place + CONTEXT])
        return np.array(contexts, np.int32), np.array(targets, np.int32)

    def _forward(self, contexts: Integers) -> tuple[Floats, Floats, Floats]:
        embedding, weights, bias, out_weights, out_bias = self.parameters
        embedded = embedding[contexts].reshape(len(contexts), -1)
        hidden = np.maximum(embedded @ weights + bias, 0)
        return embedded, hidden, hidden @ out_weights + out_bias

    def _gradients(self, contexts: Integers, targets: Integers) -> list[Floats]:
        """Gradients of the mean cross-entropy, in the order of the parameters."""
        size = len(contexts)
        embedded, hidden, logits = self._forward(contexts)
        logits -= logits.max(axis=1, keepdims=True)
        error = np.exp(logits)
        error /= error.sum(axis=1, keepdims=True)
        error[np.arange(size), targets] -= 1
        error /= size
        back = (error @ self.parameters[3].T) * (hidden > 0)
        into = (back @ self.parameters[1].T).reshape(size * CONTEXT, EMBEDDING)
        grouped = self._summed_by_symbol(contexts.ravel(), into)
        return [grouped, embedded.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]

    def _summed_by_symbol(self, symbols: Integers, rows: Floats) -> Floats:
        """Sums of the rows of each symbol: a product with one-hot columns, many times faster than np.add.at.

        The matrix of zeros is kept between steps, as making it anew would take longer than the product.
        """
        columns = np.arange(len(symbols))
        if self.one_hot.shape[1] != len(symbols):
            self.one_hot = np.zeros((self.symbols, len(symbols)), np.float32)
        self.one_hot[symbols, columns] = 1
        sums = self.one_hot @ rows
        self.one_hot[symbols, columns] = 0
        return sums


def answer_of(completion: str) -> str:
    """The character after the last `#`; the empty string where there is none."""
    return completion.rpartition("#")[2][:1] if "#" in completion else ""
