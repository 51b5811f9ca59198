#!/usr/bin/env python
"""The command line of the site: every operator's verb is a management command below one of the rooms."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings.embedded")
    execute_from_command_line(sys.argv)
