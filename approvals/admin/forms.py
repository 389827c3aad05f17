"""The form in which a pending question is answered."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals.models import PendingQuestion
from approvals.models.question import (
    LONGEST_ANSWER,
    LONGEST_PUBLISHED,
    MOST_ALSO_ASKED,
)
from approvals.texts import ALSO_ASKED
from knowledge.models import Layer, User

GUARDED = ("question", "answer", ALSO_ASKED)


class AnswerForm(forms.Form):
    """A question as it will be published, its answer, and the layer that both go to.

    `version` is that of the question as the form shows it.
    """

    version = forms.IntegerField(widget=forms.HiddenInput, min_value=1)
    question = forms.CharField(
        label=gettext_lazy("The question, as it will be found"),
        help_text=gettext_lazy(
            "In general words: without names, numbers or anything else of one person."
        ),
        max_length=LONGEST_PUBLISHED,
        widget=forms.Textarea(attrs={"rows": 1, "data-short": ""}),
    )
    answer = forms.CharField(
        label=gettext_lazy("The answer, as it will be quoted"),
        help_text=gettext_lazy(
            "Whole sentences that hold for everybody who may read the layer."
        ),
        max_length=LONGEST_ANSWER,
        widget=forms.Textarea(attrs={"rows": 6, "data-key": "a"}),
    )

    also_asked = forms.CharField(
        label=gettext_lazy("Other wordings by which it is found, one a line"),
        help_text=gettext_lazy(
            "Such as the question in other languages. Nobody is shown them as an answer."
        ),
        max_length=MOST_ALSO_ASKED * (LONGEST_PUBLISHED + 2),
        required=False,
        widget=forms.Textarea(attrs={"rows": 1, "data-short": ""}),
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        pending: PendingQuestion,
        actor: User,
    ) -> None:
        """Offer the layers that the person works on, those it was asked of first."""
        initial = {
            "version": pending.version,
            "question": pending.question_as_answered or pending.question,
            "answer": pending.answer,
            ALSO_ASKED: "\n".join(pending.also_asked),
            "layer": pending.layer_id,
        }
        super().__init__(data, initial=initial, label_suffix="")
        self.pending = pending
        self.layers = {
            str(layer.pk): layer
            for layer in Layer.objects.administered_by(actor)
            .select_related("knowledge_base")
            .order_by("knowledge_base__name", "name")
        }
        self.fields["layer"] = forms.ChoiceField(
            label=_("Where it goes"),
            choices=layer_choices(list(self.layers.values()), pending),
        )

    @property
    def guarded(self) -> list[forms.BoundField]:
        """The fields in which what may be personal is marked."""
        return [self[name] for name in GUARDED]

    def other_wordings(self) -> list[str]:
        """Return the other wordings of a valid form, as they were typed."""
        return str(self.cleaned_data[ALSO_ASKED]).splitlines()

    def chosen_layer(self) -> Layer:
        """Return the layer of a valid form."""
        return self.layers[self.cleaned_data["layer"]]


def layer_choices(layers: Sequence[Layer], pending: PendingQuestion) -> list[Any]:
    """Return layers by whether the question was asked of their knowledge base."""
    asked: list[tuple[str, str]] = []
    others: list[tuple[str, str]] = []
    for layer in layers:
        here = layer.knowledge_base_id in pending.knowledge_base_ids
        named = (str(layer.pk), f"{layer.knowledge_base.name} / {layer.name}")
        (asked if here else others).append(named)
    if len(asked) == 1 and not others:
        return list(asked)
    choices: list[Any] = [] if len(asked) == 1 else [("", _("Choose one"))]
    if asked:
        choices.append((_("It was asked of"), asked))
    if others:
        choices.append((_("Whoever asked may not read"), others))
    return choices
