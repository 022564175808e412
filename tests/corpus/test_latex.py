"""LaTeX of models becomes the characters that sources have, and amounts of money stay."""

import pytest

from climassay.corpus.latex import plain_latex


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"Seas rose by $20$ cm.", "Seas rose by 20 cm."),
        (r"Warming of $1.5\,^{\circ}\mathrm{C}$.", "Warming of 1.5 °C."),
        (r"$\mathrm{CO}_2$ at \(420~\text{ppm}\).", "CO₂ at 420 ppm."),
        (r"$2.72\ \mathrm{W\,m^{-2}}$ and 3 W m^{-2}", "2.72 W m⁻² and 3 W m⁻²"),
        (r"$45\%$, or 45\%", "45%, or 45%"),
        (r"$$\frac{1}{2}$$ of 10$^{22}$ J", "1/2 of 10²² J"),
        ("It cost $5 million and $6 million, or $5-$6.", "It cost $5 million and $6 million, or $5-$6."),
        (r"C:\data and a_b", r"C:\data and a_b"),
    ],
)
def test_math_becomes_plain_and_other_text_stays(text, plain):
    assert plain_latex(text) == plain
