"""Room: tasks. What a program may say in grpo-entropy-nano: keys, variables, functions; copied into packages."""

from lang import autodiff
from lang.program import BASE_FUNCTIONS, Language, Output

from grpo.policy import LENGTH

PAIRS = 24  # prompts a round
SAMPLES = 12  # of each prompt
SHAPE = (PAIRS, SAMPLES, LENGTH)

DIFFERENTIABLE = ("logp", "entropy")
VARIABLES = frozenset({
    *DIFFERENTIABLE, "old_logp", "old_entropy", "mask", "reward", "length", "truncated", "pass_rate", "history",
    "position", "max_length", "progress",
})  # fmt: skip
SAMPLING_VARIABLES = frozenset({"pass_rate", "seen", "progress"})
REDUCERS = {
    "group_mean": (autodiff.mean_over((1,), SHAPE), 1),
    "group_std": (autodiff.std_over((1,), SHAPE), 1),
    "group_max": (autodiff.max_over((1,), SHAPE), 1),
    "batch_mean": (autodiff.mean_over((0, 1, 2), SHAPE), 1),
    "batch_std": (autodiff.std_over((0, 1, 2), SHAPE), 1),
    "seq_sum": (autodiff.sum_over((2,), SHAPE), 1),
}
FUNCTIONS = {**BASE_FUNCTIONS, **REDUCERS}
LANGUAGE = Language(
    variables=VARIABLES,
    functions=FUNCTIONS,
    outputs={
        "objective": Output(VARIABLES, FUNCTIONS, required=True),
        "weight": Output(VARIABLES, FUNCTIONS),
        "sampling": Output(SAMPLING_VARIABLES, BASE_FUNCTIONS, sees_lets=False),
    },
    choices={"aggregate": ("sequence", "token")},
)
