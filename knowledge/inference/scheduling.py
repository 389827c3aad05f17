"""One inference thread, and the order in which it works: queries first.

Passages are computed in slices of about ``SLICE_SECONDS`` and a query overtakes them
even between two layers of the network, so that search stays quick while a large
source is ingested. Several requests for passages take turns, slice by slice.
"""

import collections
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from knowledge.inference.gateway import InputType, ModelInfo, ModelUnavailableError
from knowledge.inference.prepared import TOKENS_PER_PASS, Embedded, Prepared

logger = logging.getLogger(__name__)

# What one slice of passages may take, and what is aimed at: times vary, the bound not.
SLICE_SECONDS = 0.25
AIMED_SECONDS = 0.18
FIRST_GUESS_TOKENS_PER_SECOND = 600.0
# A request with more queries than this is no search: it waits among the passages.
MAX_QUICK_QUERIES = 8
MAX_WAITING_QUERIES = 64
MAX_WAITING_PASSAGES = 4_096
RETRY_LOAD_SECONDS = 20.0


class Backend(Protocol):
    """What the scheduler needs of ``local.LocalBackend``."""

    def describe(self) -> ModelInfo:
        """Say which model this is."""
        ...

    def prepare(self, texts: Sequence[str], kind: InputType) -> list[Prepared]:
        """Tokenize; callable from any thread."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count tokens; callable from any thread."""
        ...

    def compute(
        self,
        prepared: Sequence[Prepared],
        kind: InputType,
        *,
        between_layers: Callable[[], None] | None = None,
    ) -> list[Embedded]:
        """Run the model once over all of ``prepared``."""
        ...


class QueueFullError(Exception):
    """Too much is waiting; ``retry_after`` says in how many seconds to come back."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"The model server is busy; try again in {retry_after} s.")
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Health:
    """How far the model is: ``status`` is starting, ready or failed."""

    status: str
    progress: float
    message: str


@dataclass(eq=False, slots=True)
class Job:
    """One request: its inputs, which of them wait (longest first), and its results."""

    kind: InputType
    inputs: Sequence[Prepared]
    waiting: collections.deque[int]
    results: dict[int, Embedded] = field(default_factory=dict)
    future: "Future[list[Embedded]]" = field(default_factory=Future)

    @property
    def is_quick(self) -> bool:
        """Whether it goes before passages."""
        return self.kind is InputType.QUERY and len(self.inputs) <= MAX_QUICK_QUERIES


@dataclass(eq=False, slots=True)
class Task:
    """A piece of work of another model, to be done in the same thread."""

    work: Callable[[], list[float]]
    future: "Future[list[float]]" = field(default_factory=Future)


Report = Callable[[float, str], None]


class Scheduler:
    """Loads the backend in its thread, then serves jobs until the process ends."""

    def __init__(self, load: Callable[[Report], Backend]) -> None:
        self._load = load
        self._backend: Backend | None = None
        self._health = Health("starting", 0.0, "The model server is starting.")
        self._arrived = threading.Condition()
        self._queries: collections.deque[Job] = collections.deque()
        self._passages: collections.deque[Job] = collections.deque()
        self._tasks: collections.deque[Task] = collections.deque()
        self._tokens_per_second = FIRST_GUESS_TOKENS_PER_SECOND

    def start(self) -> None:
        """Start the inference thread."""
        threading.Thread(target=self._run, name="inference", daemon=True).start()

    @property
    def health(self) -> Health:
        """How far the model is."""
        return self._health

    @property
    def backend(self) -> Backend:
        """The loaded backend.

        Raises:
            ModelUnavailableError: it is not loaded yet; the message says how far.
        """
        if self._backend is None:
            raise ModelUnavailableError(self._health.message)
        return self._backend

    def submit(self, inputs: Sequence[Prepared], kind: InputType) -> Job:
        """Queue a job; its ``future`` brings the results in the order of ``inputs``.

        Raises:
            QueueFullError: too much is waiting already.
        """
        order = sorted(range(len(inputs)), key=lambda i: -inputs[i].length)
        job = Job(kind, inputs, collections.deque(order))
        with self._arrived:
            if job.is_quick:
                if len(self._queries) >= MAX_WAITING_QUERIES:
                    raise QueueFullError(1)
                self._queries.append(job)
            else:
                waiting = sum(len(other.waiting) for other in self._passages)
                if self._passages and waiting + len(inputs) > MAX_WAITING_PASSAGES:
                    raise QueueFullError(10)
                self._passages.append(job)
            self._arrived.notify()
        return job

    def submit_task(self, work: Callable[[], list[float]]) -> Task:
        """Queue a task; it goes after queries and before passages.

        Raises:
            QueueFullError: too much is waiting already.
        """
        task = Task(work)
        with self._arrived:
            if len(self._tasks) >= MAX_WAITING_QUERIES:
                raise QueueFullError(1)
            self._tasks.append(task)
            self._arrived.notify()
        return task

    def _run(self) -> None:
        while self._backend is None:
            try:
                self._backend = self._load(self._report)
            except ModelUnavailableError as error:
                logger.warning("%s", error)
                self._wait_to_load_again(str(error))
            except Exception:
                logger.exception("The model could not be loaded.")
                self._wait_to_load_again(
                    "The model could not be loaded; the model server's log says why."
                )
        model_id = self._backend.describe().model_id
        self._health = Health("ready", 1.0, f"The model {model_id} is ready.")
        logger.info("%s", self._health.message)
        while True:
            with self._arrived:
                self._arrived.wait_for(
                    lambda: self._queries or self._tasks or self._passages
                )
            self._serve_queries()
            if not self._serve_task():
                self._serve_slice()

    def _wait_to_load_again(self, message: str) -> None:
        again = f"{message} Trying again every {RETRY_LOAD_SECONDS:.0f} s."
        self._health = Health("failed", 0.0, again)
        time.sleep(RETRY_LOAD_SECONDS)

    def _report(self, progress: float, message: str) -> None:
        if message != self._health.message:
            logger.info("%s", message)
        self._health = Health("starting", progress, message)

    def _serve_queries(self) -> None:
        """Compute all waiting queries, as many together as one small pass takes."""
        while True:
            with self._arrived:
                jobs: list[Job] = []
                count = 0
                while self._queries and (
                    count + len(self._queries[0].inputs) <= MAX_QUICK_QUERIES
                ):
                    jobs.append(self._queries.popleft())
                    count += len(jobs[-1].inputs)
            jobs = [job for job in jobs if not job.future.cancelled()]
            if not jobs:
                return
            chosen = [(job, position) for job in jobs for position in job.waiting]
            self._compute(chosen, InputType.QUERY, None)

    def _serve_task(self) -> bool:
        """Do one task; False where none waits."""
        with self._arrived:
            if not self._tasks:
                return False
            task = self._tasks.popleft()
        if task.future.set_running_or_notify_cancel():
            try:
                task.future.set_result(task.work())
            except Exception as error:
                logger.exception("A task failed.")
                task.future.set_exception(error)
        return True

    def _serve_slice(self) -> None:
        with self._arrived:
            if not self._passages:
                return
            job = self._passages.popleft()
            if job.future.done():
                return
            budget = min(TOKENS_PER_PASS, self._tokens_per_second * AIMED_SECONDS)
            longest = job.inputs[job.waiting[0]].length
            count = min(len(job.waiting), max(1, int(budget // longest)))
            positions = [job.waiting.popleft() for _ in range(count)]
            if job.waiting:
                self._passages.append(job)
        overtaken = 0.0

        def serve_queries() -> None:
            nonlocal overtaken
            if self._queries:
                began = time.perf_counter()
                self._serve_queries()
                overtaken += time.perf_counter() - began

        began = time.perf_counter()
        chosen = [(job, position) for position in positions]
        self._compute(chosen, job.kind, serve_queries)
        seconds = time.perf_counter() - began - overtaken
        self._learn(longest * count, seconds, budget)

    def _learn(self, tokens: int, seconds: float, budget: float) -> None:
        """Adapt the speed that sizes the next slice to what the last one took."""
        if tokens < budget / 2 and seconds < AIMED_SECONDS:
            # A small slice says more about the overhead of a call than about speed.
            return
        measured = tokens / max(seconds, 1e-4)
        # Slower counts at once, faster bit by bit: the bound is on the wait.
        weight = 0.5 if measured < self._tokens_per_second else 0.1
        self._tokens_per_second += weight * (measured - self._tokens_per_second)

    def _compute(
        self,
        chosen: Sequence[tuple[Job, int]],
        kind: InputType,
        between_layers: Callable[[], None] | None,
    ) -> None:
        inputs = [job.inputs[position] for job, position in chosen]
        try:
            computed = self.backend.compute(inputs, kind, between_layers=between_layers)
        except Exception as error:
            logger.exception("Computing %d inputs failed.", len(inputs))
            for job in {job for job, _position in chosen}:
                job.waiting.clear()
                self._settle(job, error)
            return
        for (job, position), embedded in zip(chosen, computed, strict=True):
            job.results[position] = embedded
            if len(job.results) == len(job.inputs):
                self._settle(job, None)

    def _settle(self, job: Job, error: Exception | None) -> None:
        # False where the client has gone meanwhile.
        if not job.future.set_running_or_notify_cancel():
            return
        if error is not None:
            job.future.set_exception(error)
        else:
            job.future.set_result([job.results[i] for i in range(len(job.inputs))])
