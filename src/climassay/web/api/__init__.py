"""The REST API: JSON below ``/api/v1``, described by the OpenAPI document at ``/api/openapi.json``. See docs/api.md."""
