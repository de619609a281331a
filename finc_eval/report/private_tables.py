"""The terminal tables of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from finc_eval.report.formats import percent
from finc_eval.report.tables import p_value_text
from finc_eval.report.terminal import print_table

if TYPE_CHECKING:
