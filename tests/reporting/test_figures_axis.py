from climassay.reporting import Axis


def test_percentages_have_the_decimals_that_tell_ticks_apart():
    for values, words in (
        ([0.1, 0.9], "20%"),
        ([0.788, 0.804], "79.5%"),
        ([0.7981, 0.7989], "79.82%"),
    ):
        axis = Axis.over("precision", values, percent=True)
        shown = [axis.words(tick) for tick in axis.ticks]
        assert len(set(shown)) == len(shown)
        assert words in shown
