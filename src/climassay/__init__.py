"""climassay: measure whether a language model can be trusted on climate.

The names most used in a notebook; the subpackages (``climassay.corpus``, ``climassay.evaluation`` ...) have more::

    import climassay

    climassay.add_documents("books", ["report.pdf"])
    print(climassay.ask("How much has the sea level risen?", "books").text)
    print(climassay.check_claim("Volcanoes emit more CO2 than people.", "books").verdict.label)
    result = climassay.evaluate("primer", settings=["default", "rag:books"])

Each is imported when it is first used.
"""

import lazy_loader

__version__ = "1.0.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
