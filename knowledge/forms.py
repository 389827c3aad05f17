"""Forms of the staff's pages."""

import unicodedata
from typing import Any, cast

from django import forms
from django.contrib.auth.models import Group
from django.db import models
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from knowledge.models import Layer, NeverRule, RegisterEntry, Source, User
from knowledge.models.knowledge_base import Language
from knowledge.models.register import FileFormat, RuleKind
from knowledge.models.source import Purpose
from knowledge.permissions import EVERYONE, Access
from knowledge.register import fold, fold_place

# A shorter phrase would be found in nearly every text.
LEAST_PHRASE = 3


class AccessForm(forms.Form):
    """One grant or deny: to whom, and what."""

    WHAT = {
        "search": (Access.LIST, Access.SEARCH),
        "list": (Access.LIST,),
        "deny": (Access.DENY,),
    }
    person = forms.CharField(
        label=gettext_lazy("Person"),
        required=False,
        max_length=150,
        help_text=gettext_lazy("The user name. Leave empty to choose a group."),
    )
    group = forms.ModelChoiceField(
        label=gettext_lazy("or group"), queryset=Group.objects.none(), required=False
    )
    what = forms.ChoiceField(
        label=gettext_lazy("May"),
        choices=[
            ("search", gettext_lazy("find it in lists, search and read it")),
            ("list", gettext_lazy("find it in lists only")),
            ("deny", gettext_lazy("see nothing of it, whatever else is granted")),
        ],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", **kwargs})
        group = cast("forms.ModelChoiceField[Group]", self.fields["group"])
        group.queryset = Group.objects.order_by("name")
        group.empty_label = _("no group")
        group.help_text = _("“%(name)s” holds every active person.") % {
            "name": EVERYONE
        }

    def clean(self) -> dict[str, Any]:
        """Find the one holder that is named."""
        data: dict[str, Any] = super().clean() or {}
        name, group = data.get("person", "").strip(), data.get("group")
        if bool(name) == (group is not None):
            raise forms.ValidationError(_("Name either a person or a group."))
        if name:
            person = User.objects.filter(username=name).first()
            if person is None:
                self.add_error("person", _("There is no person of that user name."))
                return data
            data["holder"] = person
        else:
            data["holder"] = group
        data["accesses"] = self.WHAT.get(data.get("what", ""), ())
        return data


class PatternsField(forms.CharField):
    """Path patterns, one a line."""

    widget = forms.Textarea(attrs={"rows": 3})

    def prepare_value(self, value: Any) -> Any:
        """Show a list as lines."""
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        """Read lines as a list."""
        return [line.strip() for line in (value or "").splitlines() if line.strip()]

    def validate(self, value: Any) -> None:
        """Refuse what could not be stored."""
        if any(len(pattern) > 200 for pattern in value):
            raise forms.ValidationError(_("A pattern has 200 characters at most."))

    def run_validators(self, value: Any) -> None:
        """Lines have no further rules."""

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare lists, not their spelling."""
        return bool(list(initial or []) != self.to_python(data))


class InOneKnowledgeBaseForm(forms.ModelForm[Any]):
    """A row that stays in its knowledge base.

    The choice is shown and locked rather than left out, so that what may stand there
    only once is still checked.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk is not None and "knowledge_base" in self.fields:
            self.fields["knowledge_base"].disabled = True


class LayerForm(InOneKnowledgeBaseForm):
    """A layer; languages as boxes, patterns as lines."""

    languages = forms.MultipleChoiceField(
        label=gettext_lazy("Languages"),
        choices=Language.choices,
        widget=forms.CheckboxSelectMultiple,
    )
    archived_patterns = PatternsField(
        label=gettext_lazy("Archived patterns"),
        required=False,
        help_text=gettext_lazy(
            "One a line. Paths that match, such as archive/*, are labelled as archived."
        ),
    )

    routing_patterns = PatternsField(
        label=gettext_lazy("Routing patterns"),
        required=False,
        help_text=gettext_lazy(
            "One a line: a word or several, with * for any letters, as in invoice*. "
            "A search that holds one and names no layer goes to this layer first, and "
            "to all layers when it finds too little there."
        ),
    )

    class Meta:
        """The fields that the page shows."""

        model = Layer
        fields = (
            "knowledge_base",
            "name",
            "description",
            "answer_mode",
            "chunk_preset",
            "languages",
            "matches_without_accents",
            "archived_patterns",
            "routing_patterns",
        )


class SourceForm(forms.ModelForm[Source]):
    """What may be changed of a source without indexing it again.

    It is switched on and off by a button of its own.
    """

    class Meta:
        """The fields that the page shows."""

        model = Source
        fields = ("title", "purpose", "layer", "expires_at")

    def clean(self) -> dict[str, Any]:
        """Refuse a move to where the path or the content is already."""
        data: dict[str, Any] = super().clean() or {}
        layer = data.get("layer")
        if layer is None or layer.pk == self.instance.layer_id:
            return data
        others = Source.objects.exclude(pk=self.instance.pk)
        twin = others.filter(layer=layer, path=self.instance.path).first()
        if twin is None and self.instance.content_sha256:
            twin = others.filter(
                knowledge_base=layer.knowledge_base_id,
                content_sha256=self.instance.content_sha256,
            ).first()
        if twin is not None:
            self.add_error(
                "layer",
                _("“%(title)s” there already has this path or this content.")
                % {"title": twin},
            )
        return data


class RegisterEntryForm(InOneKnowledgeBaseForm):
    """A candidate with its decision."""

    class Meta:
        """The fields that the page shows."""

        model = RegisterEntry
        fields = ("knowledge_base", "title", "location", "decision", "reason")

    def clean_location(self) -> str:
        """Refuse a place that names nothing."""
        location = unicodedata.normalize("NFC", self.cleaned_data["location"])
        if location and not fold_place(location):
            raise forms.ValidationError(_("Name a file, a folder or an address."))
        return location


class NeverRuleForm(InOneKnowledgeBaseForm):
    """A rule of what may never enter."""

    class Meta:
        """The fields that the page shows."""

        model = NeverRule
        fields = ("knowledge_base", "kind", "pattern", "reason")

    def clean(self) -> dict[str, Any]:
        """Judge the pattern by what it is compared with."""
        data: dict[str, Any] = super().clean() or {}
        kind, pattern = data.get("kind"), data.get("pattern", "")
        if not kind or not pattern:
            return data
        if kind == RuleKind.FORMAT:
            data["pattern"] = fold(pattern)
            if data["pattern"] not in FileFormat.values:
                self.add_error(
                    "pattern",
                    _("There is no such format. Known are: %(formats)s.")
                    % {"formats": ", ".join(FileFormat.values)},
                )
        elif kind == RuleKind.NAME and not fold_place(pattern):
            self.add_error("pattern", _("Name a file or a folder."))
        elif kind == RuleKind.CONTENT and len(fold(pattern)) < LEAST_PHRASE:
            self.add_error(
                "pattern",
                _("Give a word or phrase of %(least)s characters or more.")
                % {"least": LEAST_PHRASE},
            )
        return data


class UploadForm(forms.Form):
    """What holds for all files of an upload; each file is judged by itself."""

    layer = forms.ModelChoiceField(
        label=gettext_lazy("Layer"),
        queryset=Layer.objects.none(),
        empty_label=gettext_lazy("Choose a layer"),
        help_text=gettext_lazy("Where the files go: knowledge base / layer."),
    )
    purpose = forms.ChoiceField(
        label=gettext_lazy("Purpose"),
        choices=Purpose.choices,
        initial=Purpose.DOCUMENTATION,
    )
    replace = forms.BooleanField(
        label=gettext_lazy("Replace sources of the same name"),
        required=False,
        help_text=gettext_lazy(
            "The new file takes the old one’s place; its old text stays for citations."
        ),
    )

    def __init__(
        self, *args: Any, layers: models.QuerySet[Layer], **kwargs: Any
    ) -> None:
        super().__init__(*args, **{"label_suffix": "", **kwargs})
        field = cast("forms.ModelChoiceField[Layer]", self.fields["layer"])
        field.queryset = layers.select_related("knowledge_base")
        choices = list(layers[:2])
        if len(choices) == 1:
            field.initial = choices[0]
        self.has_layers = bool(choices)


class EraseForm(forms.Form):
    """The confirmation that a text is to be erased for good."""

    sure = forms.BooleanField(
        label=gettext_lazy("I know that nobody can bring it back."),
        error_messages={"required": gettext_lazy("Tick this to erase it.")},
    )
