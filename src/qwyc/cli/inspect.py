"""`qwyc inspect`."""

from __future__ import annotations

import qwyc
from qwyc.cli.file_kinds import check_classifier
from qwyc.cli.options import ClassifierFile, Json
from qwyc.cli.printing import print_json, print_text
from qwyc.report import inspection


def inspect(classifier_file: ClassifierFile, as_json: Json = False) -> None:
    """Print what a classifier is, what it promises, and what other values of alpha would cost."""
    check_classifier(classifier_file)
    classifier = qwyc.load(classifier_file)
    if isinstance(classifier, qwyc.Predictor):
        if as_json:
            print_json(inspection.inspect_model(classifier))
        else:
            print_text(f"{classifier!r}\n  every row is evaluated in full; nothing quits early")
    elif as_json:
        print_json(inspection.inspect(classifier))
    else:
        print_text(inspection.describe(classifier))
