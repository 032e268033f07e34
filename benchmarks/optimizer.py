"""How good is the chosen plan, and how long from a statement's text to the fragments of its sites?

    python -m benchmarks.optimizer [--quick] [--json] [--data FOLDER] [--out docs/results]

**Choice.** Every plan of each query is forced in a simulated federation and measured: bytes and
messages between sites a second, with 48 bytes for the header of a message; bytes times the way that
each message went (energy); milliseconds of virtual time from a reading to the last row that it
changes, of the slowest reading. A stored table that travels is counted once an hour. The worlds:

* building: the queries of the papers and of the sample building, over stored tables of a few and of
  30,000 rows, and recursions, each way forced; three gateways, one link from each to the base;
* generated: twenty queries over rates, sizes, selectivities and skews, in the same network;
* zoo: all of them on twelve gateways in a network of the Topology Zoo; a message goes the shortest
  path, the recursions read the network's own links, of which some fail;
* trace: queries and recursions over the recorded links of 44 motes (K7), four of which are
  gateways; a message goes the path of fewest transmissions.

The recordings lie beside the checkout (`../shared/data`) or where --data says; a world whose
recording is not there is left out, which is told. All plans must give the rows of the reference
evaluator and of DuckDB. Regret is what the chosen plan sent over what the best one did, a byte a
second added to both. The optimizer knows what a running federation counts (`known_facts`). Two
runs give the same figures.

**Planning time.** CPU milliseconds to parse, bind, normalize, choose a plan, place it and encode
its fragments: for the queries of the sample building's map, pages and documentation, and for joins
of ten relations on twelve gateways and up to three bases. Beside some, in the same run,
`sqlglot.optimizer.optimize` on the same parsed tree: the rewrites of a general SQL optimizer,
without types of ours, placement or recursion semantics; it does not look into views.

The exit status is 1 if a goal is missed; with --quick only if a plan gave other rows.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from benchmarks._figures import write_results
from benchmarks._optimizer import planning_times
from benchmarks._optimizer.forced_plans import outcome
from benchmarks._optimizer.gate_worlds import missing, questions
from benchmarks._optimizer.goals import goals
from benchmarks._optimizer.regrets import figures
from benchmarks._optimizer.site_networks import DATA
from benchmarks._published.pages import with_tables

SEED = 1
FILE = "optimizer.json"


def measure(data: Path, *, quick: bool) -> dict[str, Any]:
    """Return figures of choices and planning times, and the goals."""
    asked = list(questions(data, quick=quick))
    console = Console(stderr=True)
    choice = figures([outcome(each, SEED) for each in track(asked, "queries", console=console)])
    planning = {
        "building": planning_times.figures(
            planning_times.of_building(1 if quick else 9, most=20 if quick else None)
        ),
        "ten relations": planning_times.figures(planning_times.of_ten_relations(1 if quick else 5)),
        "beside sqlglot": planning_times.beside_sqlglot(3 if quick else 30),
    }
    return {
        "settings": {"seed": SEED, "quick": quick},
        "missing": missing(data),
        **choice,
        "planning": planning,
        "goals": [goal._asdict() for goal in goals(choice, planning)],
    }


def printed(found: dict[str, Any]) -> str:
    """Return the figures as text."""
    lines = [
        f"{'':<38}{'plans':>6}{'chosen':>7}{'estimate':>10}{'B/s':>8}{'best':>8}{'regret':>8}"
        f"{'energy':>8}{'ms':>7}"
    ]
    for each in found["queries"]:
        wrong = "" if each["same rows"] else "  OTHER ROWS"
        title = f"{each['world']}: {each['query']}"
        lines.append(
            f"{title:<38.38}{each['plans']:>6}{each['chosen']:>7}{each['estimated']:>10}"
            f"{each['measured']:>8}{each['best']:>8}{each['regret']:>8.2f}"
            f"{each['regret in energy']:>8.2f}{each['milliseconds']:>7.0f}{wrong}"
        )
    lines.append("")
    for goal in found["goals"]:
        verdict = "met" if goal["met"] else "MISSED"
        lines.append(f"{verdict:<8}{goal['words']}: {goal['value']} ({goal['wanted']})")
    lines += [f"not measured: {path} is not there; say --data FOLDER" for path in found["missing"]]
    columns = list(next(iter(found["planning"]["beside sqlglot"].values())))
    lines.append(f"\n{'CPU ms':<26}" + "".join(f"{column:>19}" for column in columns))
    for name, times in found["planning"]["beside sqlglot"].items():
        lines.append(f"{name:<26}" + "".join(f"{times[column]:19.2f}" for column in columns))
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(
        description="Regret of chosen plans, and time from a statement to its fragments."
    )
    parser.add_argument("--quick", action="store_true", help="fewer queries and repetitions")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the recorded data")
    parser.add_argument(
        "--out", type=Path, help=f"folder for {FILE}; the tables of its page are written anew"
    )
    options = parser.parse_args(argv)
    found = measure(options.data, quick=options.quick)
    write_results(options.out, FILE, found)
    if options.out is not None and (page := options.out / "optimizer.md").exists():
        text = page.read_text(encoding="utf-8")
        text = with_tables("results/optimizer.md", text, options.out.resolve().parent)
        page.write_text(text, encoding="utf-8")
    print(json.dumps(found, indent=1) if options.json else printed(found))
    missed = [goal for goal in found["goals"] if not goal["met"]]
    return int(any(goal["always"] or not options.quick for goal in missed))


if __name__ == "__main__":
    raise SystemExit(main())
