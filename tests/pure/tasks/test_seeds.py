"""Sub-keys of a build's secret."""

import pytest

from tasks.common.seeds import SeedRefusedError, SeedTree, seed_parse


def test_each_purpose_and_each_draw_has_a_key_of_its_own():
    secret = seed_parse("0" * 63 + "1")
    keys = {SeedTree(secret, counter).key(purpose) for counter in (0, 1) for purpose in ("tables", "test", "trainer 0")}
    assert len(keys) == 6


def test_the_same_secret_draws_the_same_numbers():
    draws = [SeedTree(seed_parse("public")).generator("pool").integers(1000, size=5).tolist() for _ in range(2)]
    assert draws[0] == draws[1]


@pytest.mark.parametrize("text", ["", "7", "secret", "abc", "F" * 64, "0" * 31, "0" * 129])
def test_a_seed_that_could_be_guessed_is_refused(text: str):
    with pytest.raises(SeedRefusedError, match="128 bits"):
        seed_parse(text)
