"""Which reader is for which format, and what its options may be."""

import subprocess
import sys

import pytest

from streamsql.mapping.payloads.payload_reader import check_depth
from streamsql.mapping.payloads.payload_readers import reader_of
from streamsql.mapping.source_mapping import PayloadFormat, SourceMapping


@pytest.mark.parametrize("form", list(PayloadFormat))
def test_every_format_has_a_reader(form: PayloadFormat) -> None:
    assert reader_of(SourceMapping("x", format=form)).default_path("a", 0) in {"a", '["a"]', "."}


@pytest.mark.parametrize("form", ["text", "csv", "senml", "senml+cbor", "sparkplug", "fields"])
def test_formats_without_rows_refuse_the_option(form: str) -> None:
    with pytest.raises(ValueError, match="rows: the format"):
        reader_of(SourceMapping("x", format=PayloadFormat(form), rows="a"))


@pytest.mark.parametrize("form", ["csv", "senml", "senml+cbor", "sparkplug"])
def test_formats_of_many_rows_choose_payloads_by_facts_only(form: str) -> None:
    with pytest.raises(ValueError, match="only: of the format"):
        reader_of(SourceMapping("x", format=PayloadFormat(form), only=(("a", None),)))
    by_topic = SourceMapping("x", format=PayloadFormat(form), only=(("@topic", "a"),))
    assert reader_of(by_topic).default_path("a", 0) == "a"


def test_a_gateway_loads_the_formats_that_it_needs() -> None:
    code = (
        "import sys; from streamsql.mapping.mapper import Mapper;"
        "bad = {'lxml', 'streamsql.mapping.payloads.senml_payload',"
        " 'streamsql.mapping.payloads.xml_payload',"
        " 'streamsql.mapping.payloads.sparkplug_payload'} & set(sys.modules);"
        "sys.exit(repr(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0


def test_a_missing_library_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lxml", None)
    monkeypatch.delitem(sys.modules, "streamsql.mapping.payloads.html_payload", raising=False)
    with pytest.raises(ValueError, match="format html needs the extra html"):
        reader_of(SourceMapping("x", format=PayloadFormat.HTML))


def test_depth_counts_arrays_and_objects() -> None:
    document: object = 1
    for level in range(64):
        document = [document] if level % 2 else {"a": document}
    check_depth(document)
    with pytest.raises(ValueError, match="deeper than 64"):
        check_depth([document])
