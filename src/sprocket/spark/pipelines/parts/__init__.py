"""Parts that several pipelines use."""
