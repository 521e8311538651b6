"""The memories of a user as lines of JSON under the seed's own names (S3-5 to S3-16), archived ones included."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.domain.portability import ExportReport
from perdure.domain.scope import Scope
from perdure.ports.files import Target
from perdure.ports.store import Progress, check_progress
from perdure.services.knowledge.memories import Knowledge, MemoryQuery
from perdure.services.knowledge.seed_form import seed_dict
from perdure.services.portability.export import CountedLines, encoded, opened_target

PAGE = 500


@dataclass(frozen=True, slots=True)
class SeedExporter:
    known: Knowledge

    def export(self, scope: Scope, to: Target, *, replace: bool = False, progress: Progress | None = None) -> ExportReport:
        """What the agent of the handle may see, the newest change first; packed if the file's name ends with `.gz`."""
        check_progress(progress)
        rows = min(PAGE, self.known.limits.page_rows_max)
        with opened_target(to, replace=replace) as file:
            out = CountedLines(file)
            query, count = MemoryQuery(archived=True, limit=rows), 0
            while page := self.known.list_(scope, query):
                for found in page:
                    out.line(encoded(seed_dict(found)))
                count += len(page)
                if progress is not None:
                    progress("memories", count)
                last = page[-1].memory
                query = MemoryQuery(archived=True, limit=rows, behind=(last.updated_at, last.record_key))
        return ExportReport("seed", (scope.owner.user,), {"memories": count}, out.bytes, out.whole.hexdigest())
