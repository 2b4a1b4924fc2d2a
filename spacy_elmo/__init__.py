"""ELMo, deep contextualized word representations, as a spaCy component.

Importing this package imports nothing else, so that `spacy_elmo.bilm` and
`spacy_elmo.pretraining` run where there is no spaCy.
"""

from .about import __version__

__all__ = ["__version__"]
