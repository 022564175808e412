"""The data of the pages for programs: JSON below ``/api/v1``, described by an OpenAPI document. See docs/api.md."""
