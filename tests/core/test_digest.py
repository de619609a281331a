"""Results that are known by the digests of what they depend on."""

from finc_eval.core.digest import Latest


def test_the_latest_results_are_made_once_and_older_ones_again():
    made = []
    latest = Latest(2)

    def ask(digest):
        return latest.of(digest, lambda: made.append(digest) or f"of {digest}")

    assert [ask(digest) for digest in "abab"] == ["of a", "of b", "of a", "of b"] and made == ["a", "b"]
    ask("c")
    assert [ask(digest) for digest in "cba"] == ["of c", "of b", "of a"] and made == ["a", "b", "c", "a"]
