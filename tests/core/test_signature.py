"""Signatures are text, read back, and tell what keeps two results apart."""

import pytest

from finc_eval.core.errors import DataError, IncompatibleError
from finc_eval.core.signature import Signature

ONE = Signature("kid", (("n", "5000/10000"), ("fx", "inception-fid@1a2b3c4d"), ("subsets", "100x1000"), ("seed", "0")))


def test_text_is_read_back():
    assert str(ONE) == "kid|n:5000/10000|fx:inception-fid@1a2b3c4d|subsets:100x1000|seed:0"
    assert Signature.parse(str(ONE)) == ONE


def test_unlike_results_refuse_to_be_compared_and_say_why():
    other = Signature("kid", (("n", "5000/10000"), ("fx", "dinov2-vitl14@99"), ("subsets", "100x1000"), ("seed", "1")))
    ONE.check_comparable(ONE)
    with pytest.raises(IncompatibleError, match=r"fx: inception-fid@1a2b3c4d and dinov2-vitl14@99; seed: 0 and 1"):
        ONE.check_comparable(other)
    with pytest.raises(IncompatibleError, match="fx"):
        ONE.check_comparable(other, ignored=("seed",))
    ONE.check_comparable(Signature("kid", (*ONE.fields[1:], ("n", "1/2"))), ignored=("n",))


@pytest.mark.parametrize("text", ["", "|n:1", "kid|n"])
def test_what_is_no_signature_is_refused(text):
    with pytest.raises(DataError, match="is not a signature"):
        Signature.parse(text)


@pytest.mark.parametrize("value", ["a|b", "a:b", "a\nb", "\x7f", "|", "", "é 😀", "a%7Cb", "\u2028", "x\\ny"])
def test_a_value_of_any_letters_is_read_back(value):
    one = Signature("kid", (("by", value), ("seed", "0")))
    assert Signature.parse(str(one)) == one and "\n" not in str(one)
    assert len(str(one).split("|")) == 3
