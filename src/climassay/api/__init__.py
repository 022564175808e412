"""Public functions of ``import climassay``, which the commands and web pages call.

Each takes the names that the command line takes, opens what they name in a :class:`~climassay.session.Session`, keeps
every answer in the records of its workspace, and gives back a :class:`~climassay.reporting.results.Result` or the
record that the room itself works with. Whoever wants more turns to the rooms: they take opened models and collections,
and many more settings.

A model is a name, which is loaded for the session, or a loaded model, which stays open. A workspace is a session, an
opened workspace, its folder, or by default the one of the command line.
"""
