"""What is not as it should be in a run: the plant, its devices, the line to the seat."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hardware.inline_link import Faults
from hardware.scene import ResolvedScene
from sim.faults import Fault, parse_fault
from sim.plant import PlantChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What is not as it should be; `faults` as text (see `sim.faults`)."""

    change: PlantChange = PlantChange()
    faults: tuple[str, ...] = ()
    line: Faults | None = None

    def for_task(self, resolved: ResolvedScene, task: str) -> Conditions:
        """Name the part that is to be missing."""
        if self.change.missing != "task":
            return self
        part = resolved.scene.tasks[task].steps[0].parts[0]
        return replace(self, change=replace(self.change, missing=part))

    def parsed_faults(self) -> list[Fault]:
        """Return the faults as data.

        Raises:
            ConfigError: a text is not one.
        """
        return [parse_fault(text) for text in self.faults]
