"""TF-IDF of single words and logistic regression: the simple scikit-learn pipeline that a recipient would write."""

from __future__ import annotations

from typing import Any

from clinveil.core.errors import InputError
from clinveil.core.tokens import words
from clinveil.utility.classifiers import NO_WORD, Classifier, Job, Predictions, classifiers

STRENGTH = 10.0


class TfidfLogisticRegression(Classifier):
    """`TfidfVectorizer(sublinear_tf=True, min_df=2)` and `LogisticRegression(C=10)`, without tuning.

    Without word pairs and tuning, the model does not adapt to features that only released notes have, so it transfers
    well to real notes.
    """

    def __call__(self, job: Job) -> Predictions:
        """Train on the training and validation notes. Raises InputError if no word occurs in two notes."""
        from sklearn.feature_extraction.text import TfidfVectorizer
        from threadpoolctl import threadpool_limits

        vectorizer = TfidfVectorizer(analyzer=words, sublinear_tf=True, min_df=2)
        learn = job.parts.learn
        with threadpool_limits(1):
            try:
                features = vectorizer.fit_transform(job.texts(learn))
            except ValueError:
                raise InputError(NO_WORD) from None
            fitted = _estimator(job.several).fit(features, job.targets[learn])
            predicted = fitted.predict(vectorizer.transform(job.tested))
        return Predictions(predicted.astype(job.targets.dtype), 0.0, {"strength": STRENGTH})


def _estimator(several: bool) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    model = LogisticRegression(C=STRENGTH, max_iter=300)
    return OneVsRestClassifier(model) if several else model


classifiers.register("tfidf-lr")(TfidfLogisticRegression("logistic regression on TF-IDF of single words", 5.0))
