"""Public functions of ``import climassay``, which the commands and web pages call.

Each function takes the same names as the command line, opens models and collections in a
:class:`~climassay.session.Session`, stores every answer in the records of the workspace, and returns a
:class:`~climassay.reporting.results.Result` or a record of the subpackage that it uses. Most functions of
the subpackages take opened models and collections, and offer more settings; those that open a session themselves, such
as :func:`climassay.judging.benchmark_judges`, are public functions without another one here.

A model is a name, which is loaded for the session, or a loaded model, which stays open. A workspace is a session, an
opened workspace, its folder, or by default the workspace of the command line.
"""
