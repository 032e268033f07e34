"""What will maintain a recursion, told before any row has come: for planning and EXPLAIN."""

import msgspec

from stream_engine.recursion.kernels.graph_problem import Kind
from stream_engine.recursion.kernels.kernel_engine import is_compilable, recognised
from stream_engine.recursion.kernels.recognition import recognise
from stream_engine.recursion.program.program import program_of
from stream_engine.recursion.strategies import recursive_operator
from streamsql.algebra.choices import Compiled, Copies, Strategy
from streamsql.algebra.operators import Fixpoint

_ALGORITHMS = {
    Kind.REACH: "nodes that a deletion disconnects are searched for other edges",
    Kind.COST: "shortest paths repaired from the affected nodes (Dijkstra; Ramalingam and Reps)",
    Kind.PLATEAU: "best labels repaired level by level",
}


def foreseen(node: Fixpoint, sites: tuple[str, ...]) -> str:
    """Return how the sites will maintain a recursion, in words.

    Data may still change it: a kernel that meets a negative weight hands over to ranks.

    Returns:
        Such as "kernel: cheapest (python), shortest paths repaired …" or "ranked; no kernel fits,
        because a rule reads the relation more than once".

    Raises:
        UnsupportedError: The strategy that the query asks for does not fit, or is not installed;
            says why, and what to write instead.
    """
    if node.copies != Copies.ONE:
        return "copies counted per chain of derivations"
    sites = sites or ("somewhere",)  # no site offers its sources yet
    plain = node
    if node.choice.compiled == "yes":  # whether there is a compiler is the sites' affair
        plain = msgspec.structs.replace(
            node, choice=msgspec.structs.replace(node.choice, compiled=Compiled.NO)
        )
    text = recursive_operator(plain, site=sites[0], sites=sites, epoch=1).description
    if text.startswith("kernel: "):
        problem = recognise(program_of(node))
        if node.choice.compiled == "yes":
            how = "compiled" if is_compilable(problem) else "python: this kind is not compiled"
            text = text.replace("(python)", f"({how})")
        return f"{text}, {_ALGORITHMS[problem.kind]}"
    if node.choice.strategy == Strategy.AUTO and text.startswith("ranked"):
        _, reason = recognised(node)
        return f"{text}; no kernel applies, because {reason}"
    return text
