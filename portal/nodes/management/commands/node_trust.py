"""Room: portal.nodes. `manage.py node_trust NAME FINGERPRINT`: pin the host key that a node offers."""

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from portal.core.errors import SiteError
from portal.nodes.keys import fingerprint
from portal.nodes.models import Node
from portal.nodes.services import node_trust_host_key


class Command(BaseCommand):
    """The fingerprint is asked for, so that nobody trusts a key unseen."""

    help = "Trust the host key that a node offers, named by its fingerprint (SHA256:...)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("fingerprint")

    def handle(self, *, name: str, **options: object) -> None:
        node = Node.objects.filter(name=name).first()
        if node is None or not node.offered_host_key:
            raise CommandError(f"there is no node {name} that offers a key; run node_doctor {name} first")
        if fingerprint(node.offered_host_key) != options["fingerprint"]:
            raise CommandError(f"{name} offers {fingerprint(node.offered_host_key)}")
        try:
            node_trust_host_key(node=node, host_key=node.offered_host_key, by=None)
        except SiteError as problem:
            raise CommandError(problem.sentence) from problem
        self.stdout.write(f"{name}: {fingerprint(node.host_key)} is trusted")
