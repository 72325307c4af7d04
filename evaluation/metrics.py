"""The figures: from what was remembered of each person to shares. Pure."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import itertools
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from evaluation.dataset import Person
from evaluation.judge import Verdict, judge, recognise, topic_of

REPEATED = 2
"""Mentions from which on a fact is one that its person repeats."""
OFTEN = 3
"""Mentions from which on a fact is one that comes up often."""
IN_TIME = datetime.timedelta(days=14)
"""By default a candidate waits so long for the next mention (`memoryCandidateTTLDays`)."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run made of one person.

    `memories` are the texts at the end, newest first; `first_stored` says when each text that
    was ever a memory became one; `offered` are the texts of all facts that the extractor
    proposed, believed or not.
    """

    person: Person
    memories: Sequence[str]
    first_stored: Mapping[str, datetime.datetime]
    offered: Collection[str]


@dataclasses.dataclass(frozen=True)
class Figures:
    """What one run shows; shares are from 0 to 1, and None where there was nothing to share.

    Attributes:
        precision: Memories at the end that are no mistake: the person said it of themselves, and
            it held then.
        current: Memories at the end that still hold; what changed since counts as wrong here.
        recall: Facts true at the end and said at least twice that are memories.
        in_time: The same of those said again before the candidate expired (`IN_TIME`).
        often: The same of those said at least three times.
        coverage: The same of all facts true at the end, also of those said once.
        resistance: False facts that the extractor proposed and that never became a memory.
        updates: New values, said at least twice, that are the newest memory of their topic.
        days: Median of the days from first mention to memory.
        mentions: Median of the mentions that it took.
        memories: How many memories there are at the end.
        wrong: How many of them do not hold, by what they are.
    """

    precision: float | None
    current: float | None
    recall: float | None
    in_time: float | None
    often: float | None
    coverage: float | None
    resistance: float | None
    updates: float | None
    days: float | None
    mentions: float | None
    memories: int
    wrong: Mapping[str, int]


def share(part: int, whole: int) -> float | None:
    """Return a part of a whole from 0 to 1."""
    return part / whole if whole else None


def figures(outcomes: Iterable[Outcome]) -> Figures:
    """Return what a run's outcomes show, all people taken together."""
    outcomes = list(outcomes)
    verdicts = collections.Counter(
        judge(text, outcome.person) for outcome in outcomes for text in outcome.memories
    )
    times = [time for outcome in outcomes for time in _times_to_remember(outcome)]
    return Figures(
        precision=share(verdicts[Verdict.TRUE] + verdicts[Verdict.OUTDATED], verdicts.total()),
        current=share(verdicts[Verdict.TRUE], verdicts.total()),
        recall=_remembered(outcomes, lambda times: len(times) >= REPEATED),
        in_time=_remembered(outcomes, _is_said_again_in_time),
        often=_remembered(outcomes, lambda times: len(times) >= OFTEN),
        coverage=_remembered(outcomes, lambda _: True),
        resistance=_resistance(outcomes),
        updates=_updates(outcomes),
        days=statistics.median(days for days, _ in times) if times else None,
        mentions=statistics.median(mentions for _, mentions in times) if times else None,
        memories=verdicts.total(),
        wrong={
            verdict.value: count
            for verdict, count in sorted(verdicts.items(), key=lambda item: -item[1])
            if verdict is not Verdict.TRUE
        },
    )


def unrecognised(outcomes: Iterable[Outcome]) -> list[str]:
    """Return the memories that state nothing the data set knows; they count as invented."""
    return [text for one in outcomes for text in one.memories if recognise(text) is None]


def _is_said_again_in_time(times: Sequence[datetime.datetime]) -> bool:
    return any(later - earlier <= IN_TIME for earlier, later in itertools.pairwise(sorted(times)))


def _remembered(
    outcomes: Sequence[Outcome], is_wanted: Callable[[Sequence[datetime.datetime]], bool]
) -> float | None:
    """Return the share of true facts, wanted by when they were said, that are memories."""
    wanted = remembered = 0
    for outcome in outcomes:
        keys = {
            key
            for key, times in outcome.person.mentions.items()
            if key in outcome.person.true_at_end and is_wanted(times)
        }
        wanted += len(keys)
        remembered += len(keys & {recognise(text) for text in outcome.memories})
    return share(remembered, wanted)


def _resistance(outcomes: Sequence[Outcome]) -> float | None:
    """Return the share of proposed false facts that never became a memory.

    What was true once is no false fact here. A text counts once for each person.
    """
    offered = stored = 0
    for outcome in outcomes:
        false = {
            text
            for text in outcome.offered
            if judge(text, outcome.person) not in {Verdict.TRUE, Verdict.OUTDATED}
        }
        offered += len(false)
        stored += len(false & outcome.first_stored.keys())
    return share(offered - stored, offered)


def _updates(outcomes: Sequence[Outcome]) -> float | None:
    """Return the share of repeated new values that are the newest memory of their topic."""
    wanted = right = 0
    for outcome in outcomes:
        mentions = outcome.person.mentions
        keys = [recognise(text) for text in outcome.memories]
        for new in outcome.person.updates:
            if len(mentions[new]) >= REPEATED:
                newest = next((key for key in keys if topic_of(key) == topic_of(new)), None)
                wanted += 1
                right += newest == new
    return share(right, wanted)


def _times_to_remember(outcome: Outcome) -> Iterable[tuple[float, int]]:
    """Yield for each true fact that became a memory the days and the mentions until then."""
    stored: dict[str, datetime.datetime] = {}
    for text, time in outcome.first_stored.items():
        key = recognise(text)
        if key is not None:
            stored[key] = min(time, stored.get(key, time))
    for key, times in outcome.person.mentions.items():
        if key in outcome.person.true_at_end and key in stored:
            mentions = [time for time in times if time <= stored[key]]
            if mentions:
                yield (stored[key] - min(mentions)).total_seconds() / 86400, len(mentions)
