"""What the documents could not answer, and who settles it."""

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    """The gate through which a gap becomes knowledge: only by a person."""

    name = "approvals"
    verbose_name = "Approvals"

    def ready(self) -> None:
        """Say what is offered, looked at, erased and counted here on others' occasions."""
        from approvals import rounds
        from approvals.erasing import erase, forget_wordings, hold_questions
        from approvals.quoting import QUOTER
        from approvals.views import offer
        from knowledge import dependents, upkeep
        from knowledge.purging import erase_with
        from retrieval import asking
        from retrieval.quoting import quote_with

        upkeep.EVERY.append((rounds.SECONDS, rounds.Rounds()))
        upkeep.ALSO.append(forget_wordings)
        dependents.holding.append(hold_questions)
        erase_with(erase)
        quote_with(QUOTER)
        # What one may do next comes before how the answer was.
        asking.followups.insert(0, offer)
