"""Room: portal.nodes. `manage.py node_doctor NAME`: what a node lacks, each with its remedy; exit 1 if anything."""

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from portal.core.errors import SiteError
from portal.nodes.doctor import DoctorReport, node_doctor
from portal.nodes.keys import fingerprint
from portal.nodes.models import Node


class Command(BaseCommand):
    """Needs VAULT_IDENTITY_PATH, as workers have it."""

    help = "Enter a node, say what it lacks for the best isolation and what runs left behind there."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")

    def handle(self, *, name: str, **_options: object) -> None:
        node = Node.objects.filter(name=name).first()
        if node is None:
            raise CommandError(f"there is no node {name}")
        try:
            report = node_doctor(node=node)
        except SiteError as problem:
            raise CommandError(problem.sentence) from problem
        for line in _lines(node, report):
            self.stdout.write(line)
        if not report.healthy:
            raise CommandError(f"{name} is not healthy: {report.code}")


def _lines(node: Node, report: DoctorReport) -> list[str]:
    lines = [f"{node.name}: {report.code} {report.message}".rstrip(), f"level: {report.best or 'none'}"]
    lines += [f"  {one.name}: {'available' if one.available else one.reason}" for one in report.levels]
    lines += [f"lacks {fault.lacks}: {fault.why}\n  remedy: {fault.remedy}" for fault in report.faults]
    lines += [f"left over: {left}" for left in report.leftovers]
    if node.offered_host_key:
        lines.append(f"offers host key {fingerprint(node.offered_host_key)}: trust it with node_trust {node.name}")
    return lines
