from _law import PValue

PROMISES = {"Criterion.p_values": PValue(together=True)}
DESIGNS = ()
