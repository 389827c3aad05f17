"""Forms of the settings, the lab and the question sets."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from knowledge.models import User
from retrieval.admin.words import CHOICE_WORDS, WORDS, bounds_of, shown
from retrieval.exchange import MOST_PLACES, ExchangeError, checked_place
from retrieval.models import Question, QuestionSet
from retrieval.tuning import (
    CHOICES,
    NAMES,
    NUMBERS,
    Tuning,
    contradictions,
    from_environment,
    values_of,
    with_values,
)


def field_of(name: str) -> forms.Field:
    """Return the form's field of one setting."""
    words = WORDS[name]
    if name in CHOICES:
        return forms.ChoiceField(
            label=words.label,
            help_text=words.help,
            choices=[(str(each), CHOICE_WORDS[each]) for each in CHOICES[name]],
        )
    if name not in NUMBERS:
        return forms.BooleanField(
            label=words.label, help_text=words.help, required=False
        )
    bounds = NUMBERS[name]
    # Any number within the bounds may be typed; only a slider has steps.
    if bounds.is_whole:
        return forms.IntegerField(
            label=words.label,
            help_text=words.help,
            min_value=int(bounds.least),
            max_value=int(bounds.most),
        )
    return forms.FloatField(
        label=words.label,
        help_text=words.help,
        min_value=bounds.least,
        max_value=bounds.most,
        widget=forms.NumberInput(attrs={"step": "any"}),
    )


class SettingsForm(forms.Form):
    """Fields of a search's settings, over those of `tuning`."""

    tuning: Tuning

    def clean(self) -> dict[str, Any]:
        """Refuse settings that contradict each other."""
        data: dict[str, Any] = super().clean() or {}
        if not self.errors:
            for sentence in contradictions(self.tuned()):
                self.add_error(None, sentence)
        return data

    def tuned(self) -> Tuning:
        """Return the settings as entered; what has no field stays."""
        entered = {name: self.cleaned_data.get(name) for name in NAMES}
        return with_values(self.tuning, entered)


class TuningForm(SettingsForm):
    """All settings; what the environment says stands beside each."""

    note = forms.CharField(
        label=gettext_lazy("Why"),
        max_length=300,
        required=False,
        help_text=gettext_lazy("Stands in the history."),
    )

    def __init__(self, *args: Any, tuning: Tuning, **kwargs: Any) -> None:
        """Show `tuning`, over which changes are made."""
        self.tuning = tuning
        values = values_of(tuning)
        initial = {**values, **(kwargs.pop("initial", None) or {})}
        super().__init__(*args, **{"label_suffix": "", "initial": initial, **kwargs})
        note = self.fields.pop("note")
        for name in NAMES:
            self.fields[name] = field_of(name)
        self.fields["note"] = note
        self.defaults = values_of(from_environment())
        self.values = values

    def default_words(self, name: str) -> str:
        """Return what the environment says, and what a number may be."""
        said = _("Environment: %(value)s.") % {
            "value": shown(name, self.defaults[name])
        }
        bounds = bounds_of(name)
        return f"{said} {bounds}." if bounds else said

    def is_own(self, name: str) -> bool:
        """Return whether the record says otherwise than the environment."""
        return self.values[name] != self.defaults[name]


# Sliders end where hardly anybody goes on; a value beyond stretches its own.
SLIDERS = {
    "weight_meaning": 2,
    "weight_keywords": 2,
    "weight_codes": 2,
    "weight_relaxed": 2,
    "rrf_k": 200,
    "keyword_slots": 10,
    "candidates": 200,
    "similarity_floor": 1,
    "rerank_depth": 50,
}


class LabForm(SettingsForm):
    """A query, whose view it searches, and sliders over the settings that hold."""

    q = forms.CharField(label=gettext_lazy("Query"), required=False, max_length=1000)

    def __init__(
        self, *args: Any, tuning: Tuning, may_view_as: bool, **kwargs: Any
    ) -> None:
        """Put the sliders where `tuning` is."""
        super().__init__(*args, **{"label_suffix": "", **kwargs})
        self.tuning = tuning
        if may_view_as:
            self.fields["reader"] = UserNameField(
                label=gettext_lazy("Seen as"),
                max_length=150,
                required=False,
                help_text=gettext_lazy("A user name. Empty: yourself."),
            )
        values = values_of(tuning)
        for name in ("search_type", "fusion", *SLIDERS, "reranking"):
            field = field_of(name)
            field.help_text = ""
            if name in SLIDERS:
                bounds = NUMBERS[name]
                most = max(SLIDERS[name], values[name])
                field.widget = forms.NumberInput(
                    attrs={
                        "type": "range",
                        "min": f"{bounds.least:g}",
                        "max": f"{most:g}",
                        "step": f"{bounds.step:g}",
                        "data-saved": values[name],
                    }
                )
            self.fields[name] = field

    @property
    def choices(self) -> list[forms.BoundField]:
        """The settings that are chosen rather than slid."""
        return [self["search_type"], self["fusion"], self["reranking"]]

    @property
    def sliders(self) -> list[forms.BoundField]:
        """The settings that are slid."""
        return [self[name] for name in SLIDERS]


class SavingForm(forms.Form):
    """The last word before new settings hold."""

    confirmed = forms.BooleanField(required=False)

    def __init__(self, *args: Any, warning: str, **kwargs: Any) -> None:
        """Ask for a confirmation where there is a warning."""
        super().__init__(*args, **{"label_suffix": "", **kwargs})
        self.warning = warning
        if warning:
            self.fields["confirmed"].label = _(
                "I have read this. Save them all the same."
            )
        else:
            del self.fields["confirmed"]

    def clean(self) -> dict[str, Any]:
        """Refuse to save over a warning that was not confirmed."""
        data: dict[str, Any] = super().clean() or {}
        if self.warning and not data.get("confirmed"):
            self.add_error("confirmed", _("Confirm it, or go back and change them."))
        return data


PLACE_MARK = "|"


class PlacesField(forms.CharField):
    """Expected places, one a line: file | section | words of it."""

    widget = forms.Textarea(attrs={"rows": 2, "cols": 40})

    def prepare_value(self, value: Any) -> Any:
        """Show places as lines."""
        if not isinstance(value, list):
            return value
        return "\n".join(line_of_place(place) for place in value)

    def to_python(self, value: Any) -> Any:
        """Read lines as places."""
        places = []
        for number, line in enumerate((value or "").splitlines(), 1):
            if not line.strip():
                continue
            parts = [part.strip() for part in line.split(PLACE_MARK, 2)]
            named = dict(zip(("file", "section", "quote"), parts, strict=False))
            try:
                places.append(checked_place(number, named))
            except ExchangeError as error:
                raise forms.ValidationError(str(error)) from error
        if len(places) > MOST_PLACES:
            raise forms.ValidationError(
                _("Name at most %(most)s places.") % {"most": MOST_PLACES}
            )
        return places

    def validate(self, value: Any) -> None:
        """Have no further rules."""

    def run_validators(self, value: Any) -> None:
        """Have no further rules."""

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare what is shown, so that what an import knew besides is not lost."""
        shown_before = self.prepare_value(initial or []) or ""
        return bool(shown_before.split() != (data or "").split())


def line_of_place(place: Any) -> str:
    """Return a place as a line, without the parts it lacks at its end."""
    parts = [str(place.get(name, "")) for name in ("file", "section", "quote")]
    while parts and not parts[-1]:
        parts.pop()
    return f" {PLACE_MARK} ".join(parts)


class QuestionForm(forms.ModelForm[Question]):
    """One question with what should be found."""

    places = PlacesField(
        label=gettext_lazy("Expected places"),
        required=False,
        help_text=gettext_lazy(
            "One a line, any of them will do: path of the file | section | words of "
            "the passage. The path alone takes any passage of the file."
        ),
    )

    class Meta:
        """The fields that the page shows."""

        model = Question
        fields = (
            "question_set",
            "text",
            "language",
            "is_answerable",
            "places",
            "notes",
        )

    def clean(self) -> dict[str, Any]:
        """Refuse a question that is answered and is not."""
        data: dict[str, Any] = super().clean() or {}
        if data.get("places") and not data.get("is_answerable"):
            self.add_error(
                "places",
                _("The documents do not answer it, so there is no place to expect."),
            )
        if "places" in data and "places" not in self.changed_data:
            data["places"] = self.instance.places
        return data


class UserNameField(forms.CharField):
    """A person by their user name; empty is nobody."""

    def prepare_value(self, value: Any) -> Any:
        """Show the name of a person's key."""
        if isinstance(value, int):
            return (
                User.objects.filter(pk=value).values_list("username", flat=True).first()
            )
        return value

    def to_python(self, value: Any) -> Any:
        """Find the person."""
        name = super().to_python(value)
        if not name:
            return None
        person = User.objects.filter(username=name, is_active=True).first()
        if person is None:
            raise forms.ValidationError(
                _("There is no active person of that user name.")
            )
        return person

    def validate(self, value: Any) -> None:
        """Have no further rules."""

    def run_validators(self, value: Any) -> None:
        """Have no further rules."""

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare names."""
        return bool((self.prepare_value(initial) or "") != (data or "").strip())


def person_field() -> UserNameField:
    """Return the field that names whose view is searched."""
    return UserNameField(
        label=gettext_lazy("Asked as"),
        max_length=150,
        required=False,
        help_text=gettext_lazy("A user name. Empty: whoever runs it."),
    )


class QuestionSetForm(forms.ModelForm[QuestionSet]):
    """A set; whose view it is asked with only for who may see as others do."""

    asked_as = person_field()

    class Meta:
        """The fields that the page shows."""

        model = QuestionSet
        fields = (
            "name",
            "description",
            "knowledge_bases",
            "asked_as",
            "checks_settings",
        )
        widgets = {"knowledge_bases": forms.CheckboxSelectMultiple}


class RunForm(forms.Form):
    """Whose view a run searches."""

    asked_as = person_field()
    label = forms.CharField(
        label=gettext_lazy("Name of the run"), max_length=120, required=False
    )

    def __init__(self, *args: Any, may_view_as: bool, **kwargs: Any) -> None:
        """Leave out the person where the right is missing."""
        super().__init__(*args, **{"label_suffix": "", **kwargs})
        if not may_view_as:
            del self.fields["asked_as"]


class ImportForm(forms.Form):
    """A file of questions."""

    MOST_BYTES = 1_500_000
    file = forms.FileField(
        label=gettext_lazy("File"),
        help_text=gettext_lazy(
            "JSON lines, or CSV with the columns id, question, lang, answerable, file, "
            "section, quote, notes. A known id or the same words are replaced."
        ),
    )

    def clean_file(self) -> str:
        """Return the file's text."""
        posted = self.cleaned_data["file"]
        if posted.size > self.MOST_BYTES:
            raise forms.ValidationError(
                _("The file is larger than the %(most)s MB that are accepted.")
                % {"most": self.MOST_BYTES / 1_000_000}
            )
        self.name = str(posted.name or "")
        try:
            text: str = posted.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise forms.ValidationError(_("Save the file as UTF-8.")) from error
        return text
