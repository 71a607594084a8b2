"""Models of the papers that the product itself does not run: what their tables and figures are
computed with."""
