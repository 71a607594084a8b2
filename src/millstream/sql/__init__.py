"""From text to statements and bound logical plans. The only package that imports sqlglot."""
