"""Each trained pipeline on texts of one's own: how it is asked, what it answers, how that is drawn.

import paper_tasks, spacy
from paper_tasks.inputs import make_question

nlp = spacy.load("runs/tiny/models/questions-input/model-best")
doc = nlp(make_question(nlp, "Who sold the boat?", "It was late. Anna sold the boat in Dover."))
print(doc.spans["answers"])
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import spacy
import typer
from paper_tasks.arms import ARMS, TASKS
from paper_tasks.draw import draw_answer, draw_clusters, draw_roles
from paper_tasks.inputs import make_pair, make_question, mark_mentions, mark_predicates
from paper_tasks.roles import roles_of
from spacy import displacy
from spacy.language import Language

from .names import choose
from .train import folder


def entailment(nlp: Language) -> str:
    doc = nlp(make_pair(nlp, "Anna sold the boat in Dover.", "Anna never sold the boat."))
    for label, probability in doc._.entailment.items():
        print(f"{probability:.2f} {label}")
    label = max(doc._.entailment, key=doc._.entailment.get)
    return f"<p>{doc.spans['premise'][0]} – {doc.spans['hypothesis'][0]}: <b>{label}</b></p>"


def questions(nlp: Language) -> str:
    passage = "It was late. Anna sold the boat in Dover, and Peter went home."
    asked = ("Who sold the boat?", "Where was the boat?")
    docs = list(nlp.pipe(make_question(nlp, question, passage) for question in asked))
    for doc in docs:
        print(doc.spans["question"][0], "→", doc.spans["answers"][0])
    return "".join(map(draw_answer, docs))


def roles(nlp: Language) -> str:
    nlp.add_pipe("sentencizer", first=True)  # arguments are looked for in the sentence
    doc = nlp(mark_predicates(nlp.make_doc("Anna sold the boat in Dover and left Wales."), [1, 7]))
    for predicate in doc.spans["predicates"]:
        found = roles_of(doc, predicate.start)
        print(predicate, "→", ", ".join(f"{span.label_}: {span}" for span in found))
    return draw_roles(doc)


def coreference(nlp: Language) -> str:
    nlp.add_pipe("sentencizer", first=True)  # no mention goes across two sentences
    doc = nlp("Anna sold the boat in Dover. She liked it.")
    for key, cluster in doc.spans.items():
        if key.startswith("coref_clusters"):
            print(", ".join(map(str, cluster)))
    return draw_clusters(doc)


def gap(nlp: Language) -> str:
    nlp.add_pipe("sentencizer", first=True)  # as in training
    doc = nlp.make_doc("Anna met Oscar in Dover because she lived there.")
    doc = nlp(mark_mentions(doc, [doc[0:1], doc[2:3], doc[6:7]]))
    print([list(group) for key, group in doc.spans.items() if key.startswith("coref_clusters")])
    return draw_clusters(doc)


def ner(nlp: Language) -> str:
    doc = nlp("Anna sold the boat in Dover.")
    print([(ent.text, ent.label_) for ent in doc.ents])
    return displacy.render(doc, style="ent", jupyter=False) if doc.ents else f"<p>{doc}</p>"


def sentiment(nlp: Language) -> str:
    doc = nlp("a wonderful and brilliant film .")
    label = max(doc.cats, key=doc.cats.get)
    print(doc, "→", label)
    return f"<p>{doc}: <b>{label}</b></p>"


EXAMPLES: dict[str, Callable[[Language], str]] = {
    example.__name__: example
    for example in (entailment, questions, roles, coreference, gap, ner, sentiment)
}


def main(run: Path, tasks: str = ",".join(TASKS), arms: str = "without,input") -> None:
    """Print what the pipelines of the last arm predict, and write RUN/examples.html."""
    page = []
    arm = choose("arms", arms, ARMS)[-1]
    for task in choose("tasks", tasks, TASKS):
        nlp = spacy.load(folder(run, task, arm) / "model-best")
        print(f"\n{task}")
        page.append(f"<h2>{task}</h2>\n{EXAMPLES[task](nlp)}")
    text = '<!DOCTYPE html>\n<meta charset="utf-8">\n<title>Examples</title>\n' + "\n".join(page)
    (run / "examples.html").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
