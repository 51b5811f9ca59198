"""Room: portal.nodes. `manage.py collector`: the one process per site that holds a link to every node."""

import signal
from types import FrameType

from django.core.management.base import BaseCommand

from portal.nodes.collector import Collector
from portal.nodes.links import links_close


class Command(BaseCommand):
    """Ends on SIGTERM and SIGINT."""

    help = "Watch every node in service: terminals, ended jobs, machine samples, lost and returning nodes."

    def handle(self, **_options: object) -> None:
        collector = Collector()

        def end(_number: int, _frame: FrameType | None) -> None:
            collector.stop.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        self.stdout.write("the collector watches")
        collector.run()
        links_close()
