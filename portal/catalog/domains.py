"""Room: portal.catalog. The six domains of the paper; a hue names a colour and plotting symbol of the style sheet."""

from dataclasses import dataclass

from django.utils.translation import gettext_noop


@dataclass(frozen=True)
class DomainFacts:
    """One row of the catalog's domains."""

    slug: str
    name: str
    code: str
    hue: str


PAPER_DOMAINS = (
    DomainFacts("data-construction", gettext_noop("Data Construction"), "DC", "dc"),
    DomainFacts("data-filtering", gettext_noop("Data Filtering"), "DF", "df"),
    DomainFacts("data-augmentation", gettext_noop("Data Augmentation"), "DA", "da"),
    DomainFacts("loss-design", gettext_noop("Loss Design"), "LD", "ld"),
    DomainFacts("reward-design", gettext_noop("Reward Design"), "RD", "rd"),
    DomainFacts("scaffold-construction", gettext_noop("Scaffold Construction"), "SC", "sc"),
)
