"""The article about the course: in the journal's form, with sources that exist."""

import re

import yaml  # type: ignore[import-untyped]
from pybtex.database import parse_file  # type: ignore[import-untyped]

from tests.commands import ROOT
from tests.prose import bibliography

_, HEAD, TEXT = (ROOT / "paper/paper.md").read_text("utf-8").split("---\n", 2)
META = yaml.safe_load(HEAD)
SOURCES = parse_file(ROOT / "paper" / META["bibliography"]).entries


def test_head_has_what_the_journal_asks_for_and_agrees_with_the_citation_file() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert META.keys() == {"title", "tags", "authors", "affiliations", "date", "bibliography"}
    assert META["title"] == citation["title"]
    assert [author["name"] for author in META["authors"]] == [author["name"] for author in citation["authors"]]
    assert {author["affiliation"] for author in META["authors"]} <= {place["index"] for place in META["affiliations"]}


def test_it_has_the_journals_sections_and_length() -> None:
    sections = re.findall(r"^# (.*)$", TEXT, re.MULTILINE)
    assert sections[:2] == ["Summary", "Statement of need"]
    assert sections[-1] == "References"
    assert 1000 <= len(TEXT.split()) <= 1500


def test_sources_are_cited_and_those_of_the_book() -> None:
    assert {*re.findall(r"@([\w-]+)", TEXT)} == {*SOURCES}
    for key in SOURCES.keys() & bibliography().entries.keys():
        assert SOURCES[key] == bibliography().entries[key], f"{key} differs from book/references.bib: copy it from there"
    for key in SOURCES.keys() - bibliography().entries.keys():
        assert "doi" in SOURCES[key].fields, f"{key} is in no other file: give it a DOI, by which it can be found"
