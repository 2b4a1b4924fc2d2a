__title__ = "spacy-elmo"
__version__ = "0.1.0"
__uri__ = ""  # of the repository; the package index then shows the links of the README
