__title__ = "spacy-elmo"
__version__ = "0.1.0"
__uri__ = ""  # of the repository: for the links on the package index, and to download weights
