"""The doors through which every file is opened: `reading` asks what it is, `creating` follows no links."""
