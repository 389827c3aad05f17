"""Forms of the portal's pages."""

from datetime import timedelta
from typing import Any, cast

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from knowledge.models import KnowledgeBase
from knowledge.permissions import Reader


class NewTokenForm(forms.Form):
    """A token of one's own."""

    name = forms.CharField(
        label=gettext_lazy("What is it for?"),
        max_length=120,
        help_text=gettext_lazy("For instance the program that will use it."),
    )
    knowledge_bases = forms.ModelMultipleChoiceField(
        label=gettext_lazy("Which knowledge bases may it search?"),
        queryset=KnowledgeBase.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=gettext_lazy(
            "None chosen: all that you may search, also later ones."
        ),
    )
    days = forms.TypedChoiceField(
        label=gettext_lazy("Valid for"),
        coerce=int,
        initial=90,
        choices=[
            (1, gettext_lazy("1 day")),
            (30, gettext_lazy("30 days")),
            (90, gettext_lazy("90 days")),
            (365, gettext_lazy("1 year")),
        ],
    )

    def __init__(self, reader: Reader, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = cast(
            "forms.ModelMultipleChoiceField[KnowledgeBase]",
            self.fields["knowledge_bases"],
        )
        field.queryset = KnowledgeBase.objects.visible_to(reader)
        if not reader.searchable:
            field.help_text = _("You may not search any knowledge base yet.")

    @property
    def lifetime(self) -> timedelta:
        """How long the token will open doors."""
        return timedelta(days=self.cleaned_data["days"])
