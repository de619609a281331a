"""Files that lie behind URLs: object stores and web servers, with a bounded copy on the local disk."""
