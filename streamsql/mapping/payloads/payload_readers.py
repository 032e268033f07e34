"""Which reader is for which payload format; a format's module is loaded when a source needs it."""

from streamsql.mapping.payloads.payload_formats import (
    CsvReader,
    FieldsReader,
    JsonReader,
    TextReader,
)
from streamsql.mapping.payloads.payload_reader import PayloadReader
from streamsql.mapping.source_mapping import PayloadFormat, SourceMapping

_WITH_ROWS = frozenset(
    {PayloadFormat.JSON, PayloadFormat.CBOR, PayloadFormat.XML, PayloadFormat.HTML}
)
_ROWS_OF_THEIR_OWN = frozenset(
    {PayloadFormat.CSV, PayloadFormat.SENML, PayloadFormat.SENML_CBOR, PayloadFormat.SPARKPLUG}
)


def reader_of(mapping: SourceMapping) -> PayloadReader:
    """Return the reader of a mapping's format.

    Raises:
        ValueError: An option of the format is wrong, or its library is not installed.
    """
    form = mapping.format
    if mapping.rows and form not in _WITH_ROWS:
        raise ValueError(f"rows: the format {form} has no rows to choose; leave the option out")
    if form in _ROWS_OF_THEIR_OWN and any(not path.startswith("@") for path, _ in mapping.only):
        raise ValueError(f"only: of the format {form} only facts can be asked for, such as @topic")
    match form:
        case PayloadFormat.JSON:
            return JsonReader(mapping.rows)
        case PayloadFormat.TEXT:
            return TextReader()
        case PayloadFormat.CSV:
            return CsvReader(delimiter=mapping.delimiter, header=mapping.header)
        case PayloadFormat.FIELDS:
            return FieldsReader()
        case _:
            return _loaded(form, mapping.rows)


def _loaded(form: PayloadFormat, rows: str) -> PayloadReader:
    match form:
        case PayloadFormat.CBOR:
            from streamsql.mapping.payloads.cbor_values import CborReader

            return CborReader(rows)
        case PayloadFormat.XML:
            from streamsql.mapping.payloads.xml_payload import XmlReader

            return XmlReader(rows)
        case PayloadFormat.SPARKPLUG:
            from streamsql.mapping.payloads.sparkplug_payload import SparkplugReader

            return SparkplugReader()
        case PayloadFormat.HTML:
            return _html(rows)
        case _:
            from streamsql.mapping.payloads.senml_payload import SenmlReader

            return SenmlReader(cbor=form == PayloadFormat.SENML_CBOR)


def _html(rows: str) -> PayloadReader:
    try:
        from streamsql.mapping.payloads.html_payload import HtmlReader
    except ImportError as error:
        raise ValueError(f"format html needs the extra html ({error!s:.80})") from None
    return HtmlReader(rows)
