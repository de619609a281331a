"""Methods of other papers, written from the papers, to compare with."""
