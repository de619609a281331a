"""Whole videos in small frames, whatever windows of them are samples."""
