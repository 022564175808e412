"""The debate about one claim: advocates, mediator, their evidence, and how many debates advance together."""
