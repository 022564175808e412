import pytest

from climassay.corpus.documents import full_title, report_name

SPM = "Summary for Policymakers"


@pytest.mark.parametrize(
    ("hints", "title"),
    [
        (["", "ipcc_sr15_spm"], "IPCC SR15 (2018), "),
        (["IPCC AR6 Working Group I", "x"], "IPCC AR6 WG1 (2021), "),
        (["", "IPCC_AR6_WGII_SummaryForPolicymakers"], "IPCC AR6 WG2 (2022), "),
        (["", "AR5-SYR-SPM"], "IPCC AR5 SYR (2014), "),
        (["", "ar4_wg1_spm"], "IPCC AR4 WG1 (2007), "),
        (["", "SROCC_SPM_HeadlineStatements"], "IPCC SROCC (2019), "),
        (["", "spm", "should be cited as: IPCC, 2018: Summary. In: Global Warming of 1.5°C"], "IPCC SR15 (2018), "),
        (["", "spm", "This summary should be cited as: WMO, 2024: Summary."], "WMO (2024), "),
        (["", "download(3)"], ""),
    ],
)
def test_a_summary_is_named_by_its_report(hints, title):
    assert full_title(SPM, hints) == title + SPM


@pytest.mark.parametrize("title", ["Global Carbon Budget 2023", "Summary of the state of the climate", "Oceans"])
def test_titles_of_their_own_stay(title):
    assert full_title(title, ["", "ipcc_sr15_spm"]) == title


@pytest.mark.parametrize(
    ("name", "source", "full"),
    [
        ("wg1", "ipcc_ar6_paragraphs.jsonl.gz", "IPCC AR6 WG1 (2021)"),
        ("syr", "ipcc_ar6_paragraphs.jsonl.gz", "IPCC AR6 SYR (2023)"),
        ("SR1.5", "table.csv", "IPCC SR15 (2018)"),
        ("AR5 WGIII", "table.csv", "IPCC AR5 WG3 (2014)"),
        ("wg1", "paragraphs.jsonl", "wg1"),
        ("Global Carbon Budget 2023", "ar6_wg1.csv", "Global Carbon Budget 2023"),
        ("WG1 and the sceptics", "ar6.csv", "WG1 and the sceptics"),
    ],
)
def test_an_abbreviated_report_is_named_in_full_where_its_cycle_is_known(name, source, full):
    assert report_name(name, source) == full
