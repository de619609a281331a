"""WebP and PNG files of several frames."""
