"""Ports of the embedded site: taken ones are stepped around, also by two sites that start at the same moment."""

import socket

import pytest

from portal.embedded.programs import Ports


def test_a_taken_port_is_stepped_around() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        wished = taken.getsockname()[1]
        assert Ports.chosen(wished).web > wished


def test_two_starts_at_one_moment_get_different_ports() -> None:
    """Neither has bound anything when the other looks."""
    first, second = Ports.chosen(28400), Ports.chosen(28400)
    assert not {first.web, first.scripted, first.node} & {second.web, second.scripted, second.node}


@pytest.mark.parametrize("wished", [-5, 0, 65_300, 70_000])
def test_a_port_that_cannot_be_is_named_with_its_limits(wished: int) -> None:
    with pytest.raises(RuntimeError, match=f"--port {wished} is none of 1 to 65223"):
        Ports.chosen(wished)
