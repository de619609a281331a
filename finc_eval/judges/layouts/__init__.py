"""Result files of public tools, by layout."""
